"""Which values of a schema may be ended where they only repeat themselves: those without a bound that are no code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from toolgram.planning.plan import Plan

Kind = Literal["string", "array", "object"]

_BOUNDS: dict[Kind, frozenset[str]] = {
    "string": frozenset(("maxLength", "pattern", "format", "enum", "const", "contentMediaType", "contentEncoding")),
    "array": frozenset(("maxItems", "enum", "const", "contentMediaType")),
    "object": frozenset(("maxProperties", "enum", "const")),
}
CODE = re.compile(
    "base64|body|cmd|code|command|contents?|css|csv|data|diff|expression|file|html|input|javascript|json|markdown|"
    "output|patch|pattern|program|python|query|regex|script|shell|snippet|source|sql|string|svg|template|text|xml|yaml"
)
"""A string carries code, or may, if its name or description has such a word."""
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)":')
_MOST_SCHEMAS = 200  # that are looked at for one value
_MOST_NAMES = 200
_NOT_UNDERSTOOD = object()

_Schema = Mapping[str, Any]


def may_be_ended(plan: Plan, call: int | None, name: str, pointer: str, kind: Kind, text: str) -> bool:
    """Whether the value at `pointer` in the arguments of a call of `name`, or in the answer, may be ended early.

    `text` is its JSON so far. It may if no schema that says something of it bounds it. Where it holds strings, there
    must be none that may carry code: by the words of names and descriptions, or since there is a line break.
    """
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    found = _schemas(_schema(plan, call, name), steps)
    if found is None or any(not _BOUNDS[kind].isdisjoint(each) for each in found):
        return False
    if kind == "array" and '"' not in text:
        return True
    names = (*(step for step in steps if not step.isdigit()), *_KEY.findall("" if kind == "string" else text))
    about = (str(each.get(word, "")) for each in found for word in ("title", "description"))
    words = _WORD.findall(" ".join((*names[-_MOST_NAMES:], *about)))
    return "\\n" not in text and not any(CODE.fullmatch(word.lower()) for word in words)


def _schema(plan: Plan, call: int | None, name: str) -> Any:
    if call is None:
        return plan.request.response_format.schema if plan.request.response_format else None
    return next((tool.parameters for tool in plan.request.tools if tool.name == name), None)


def _schemas(root: Any, steps: Sequence[str]) -> list[_Schema] | None:
    """The schemas that say something of the value to which the steps lead; None where there may be others."""
    found: list[_Schema] = []
    waiting: list[tuple[Any, int]] = [(root, 0)]  # schemas, with how many steps led there
    for _ in range(_MOST_SCHEMAS):
        if not waiting:
            return found
        schema, at = waiting.pop()
        if schema is _NOT_UNDERSTOOD:
            return None
        if not isinstance(schema, Mapping):
            continue
        one = cast("_Schema", schema)
        waiting += ((branch, at) for branch in _beside(one, root))
        if at == len(steps):
            found.append(one)
        else:
            waiting += ((below, at + 1) for below in _below(one, steps[at]))
    return None


def _beside(schema: _Schema, root: Any) -> Iterator[Any]:
    """The schemas that say something of the same value."""
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        yield _NOT_UNDERSTOOD
    if "$ref" in schema:
        yield _target(schema["$ref"], root)
    for word in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(word, ())
    for word in ("then", "else"):
        yield schema.get(word)
    yield from schema.get("dependentSchemas", {}).values()


def _below(schema: _Schema, step: str) -> Iterator[Any]:
    """The schemas of a member or item."""
    properties = schema.get("properties", {})
    if step in properties:
        yield properties[step]
    elif "patternProperties" in schema:
        yield from schema["patternProperties"].values()
    elif "additionalProperties" in schema:
        yield schema["additionalProperties"]
    if step.isdigit():
        prefix = schema.get("prefixItems", ())
        items = schema.get("items", True)
        if int(step) < len(prefix):
            yield prefix[int(step)]
        elif isinstance(items, list):
            yield _NOT_UNDERSTOOD  # as drafts before 2020-12 have it
        else:
            yield items


def _target(reference: Any, root: Any) -> Any:
    """What a reference within the document means."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return _NOT_UNDERSTOOD
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, Mapping) or key not in root:
            return _NOT_UNDERSTOOD
        root = cast("_Schema", root)[key]
    return root
