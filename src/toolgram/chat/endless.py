"""Which values of a schema may be ended where they only repeat themselves: those without a bound that are no code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from toolgram.planning.plan import Plan

Kind = Literal["string", "array"]

_BOUNDS: dict[Kind, frozenset[str]] = {
    "string": frozenset(("maxLength", "pattern", "format", "enum", "const", "contentMediaType", "contentEncoding")),
    "array": frozenset(("maxItems", "enum", "const", "contentMediaType")),
}
CODE = re.compile(
    "base64|body|cmd|code|command|contents?|css|csv|data|diff|expression|file|html|input|javascript|json|markdown|"
    "output|patch|pattern|program|python|query|regex|script|shell|snippet|source|sql|string|svg|template|text|xml|yaml"
)
"""A string carries code, or may, if its name or description has such a word."""
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_MOST_SCHEMAS = 200  # that say something of one value

_Schema = Mapping[str, Any]


def may_be_ended(plan: Plan, call: int | None, name: str, pointer: str, kind: Kind, text: str) -> bool:
    """Whether the value at `pointer` in the arguments of a call of `name`, or in the answer, may be ended early.

    `text` is its JSON so far. It may if no schema that says something of it bounds it. Where it holds a string, it must
    be none that may carry code: by the words of its name and description, or since it has a line break.
    """
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    schema = _schema(plan, call, name)
    found = list(_schemas(schema, schema, steps, _MOST_SCHEMAS))
    if any(each is None or not _BOUNDS[kind].isdisjoint(each) for each in found):
        return False
    if kind == "array" and '"' not in text:
        return True
    key = next((step for step in reversed(steps) if not step.isdigit()), "")
    about = " ".join(str(each.get(word, "")) for each in found if each for word in ("title", "description"))
    return "\\n" not in text and not any(CODE.fullmatch(word.lower()) for word in _WORD.findall(f"{key} {about}"))


def _schema(plan: Plan, call: int | None, name: str) -> Any:
    if call is None:
        return plan.request.response_format.schema if plan.request.response_format else None
    return next((tool.parameters for tool in plan.request.tools if tool.name == name), None)


def _schemas(schema: Any, root: Any, steps: Sequence[str], left: int) -> Iterator[_Schema | None]:
    """The schemas that say something of the value to which the steps lead; None for one that is not understood."""
    if left <= 0 or schema is False:
        yield None
    elif isinstance(schema, Mapping):
        one = cast("_Schema", schema)
        if "$ref" in one or "$dynamicRef" in one:
            yield from _schemas(_target(one.get("$ref"), root), root, steps, left - 1)
        for word in ("allOf", "anyOf", "oneOf"):
            for branch in one.get(word, ()):
                yield from _schemas(branch, root, steps, left // 2)
        for word in ("then", "else"):
            if word in one:
                yield from _schemas(one[word], root, steps, left // 2)
        if not steps:
            yield one
        else:
            for below in _below(one, steps[0]):
                yield from _schemas(below, root, steps[1:], left)


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
            yield False  # as drafts before 2020-12 have it: not looked into
        else:
            yield items


def _target(reference: Any, root: Any) -> Any:
    """What a reference within the document means; False where it is another kind of reference."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, Mapping) or key not in root:
            return False
        root = cast("_Schema", root)[key]
    return root
