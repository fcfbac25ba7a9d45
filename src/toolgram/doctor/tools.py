"""What is wrong with a set of tools, without any model: names, schemas, and what each of them costs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from toolgram.errors import Relaxation, ToolgramError, json_pointer
from toolgram.planning.plan import Plan, plan
from toolgram.schema import schema_grammar
from toolgram.schema.reading.keywords import IN_PLACE, strays
from toolgram.template.chat_template import ChatTemplate

Level = Literal["error", "warning", "note"]
Json = Mapping[str, Any]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COSTLY = 4_000  # characters of GBNF for one pattern
_BOUNDED = frozenset(("maxLength", "pattern", "format", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"))
_MENDS = {
    "uniqueItems": "take it out and check it when the call comes, or list what items may be by `enum`",
    "pattern": "a pattern without lookaround and backreferences",
    "$ref": "write the schema where it is referred to",
    "contains": "say what the items are by `items` or `prefixItems`",
    "multipleOf": "bounds (`minimum`, `maximum`), so that the multiples can be counted",
    "propertyNames": "name the properties, or a `pattern` for their names",
    "type": "bounds (`minimum`, `maximum`) for numbers",
}
_CHECK = "check it when the call comes"
_BRANCH = re.compile(r"/(anyOf|oneOf|allOf)/\d+$|/not$")  # whose keys may be described around it
_OF_OTHER_KEYS = frozenset(("patternProperties", "additionalProperties", "unevaluatedProperties", *IN_PLACE))


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """Something to know of a tool: an error keeps it from being called, a warning lets wrong calls pass, a note costs.

    `pointer` is into the list of tools, `mend` the smallest edit that helps.
    """

    code: str
    level: Level
    tool: str
    pointer: str
    what: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class ToolCost:
    """What a tool adds to a request: tokens (or characters) of the prompt, and characters of GBNF.

    `seconds` is what making its grammar by itself takes, the first time.
    """

    tool: str
    prompt: int
    grammar: int
    seconds: float


def lint_tools(tools: Sequence[Any]) -> tuple[ToolFinding, ...]:
    """What is wrong with tools in OpenAI's shape, the gravest first."""
    found = [*_names(tools)]
    for at, function in _functions(tools):
        found += _tool(at, function)
    return tuple(sorted(found, key=lambda each: ("error", "warning", "note").index(each.level)))


def costs(
    tools: Sequence[Any], template: ChatTemplate, count: Callable[[Plan], int] = lambda plan: len(plan.prompt)
) -> Iterator[ToolCost]:
    """What each tool costs with a chat template; `count` measures a prompt. Raises what `toolgram.plan` raises."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}]}
    every = count(plan({**body, "tools": tools}, template)) if tools else 0
    for at, function in _functions(tools):
        others = [tool for other, tool in enumerate(tools) if other != at]
        began = time.perf_counter()
        alone = plan({**body, "tools": [tools[at]], "tool_choice": "required"}, template)
        grammar = alone.constraint.grammar.to("gbnf") if alone.constraint else ""
        seconds = time.perf_counter() - began
        without = count(plan({**body, "tools": others} if others else body, template))
        yield ToolCost(_name(function), every - without, len(grammar), seconds)


def _functions(tools: Sequence[Any]) -> Iterator[tuple[int, Json]]:
    """The functions among the tools; what is none has a finding of its own."""
    for at, tool in enumerate(tools):
        function = cast("Json", tool).get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping):
            yield at, cast("Json", function)


def _name(function: Json) -> str:
    return str(function.get("name") or "")


def _names(tools: Sequence[Any]) -> Iterator[ToolFinding]:
    at_all = dict(_functions(tools))
    for at in range(len(tools)):
        if at not in at_all:
            yield ToolFinding("no-function", "error", "", json_pointer(at), "it is no function", "see OpenAI's shape")
    seen: dict[str, str] = {}
    for at, function in at_all.items():
        name, place = _name(function), json_pointer(at, "function", "name")
        if not _NAME.fullmatch(name):
            mend = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:64] or "a name"
            yield ToolFinding(
                "name", "error", name, place, f"{name!r} is no name that the APIs take", f'"name": "{mend}"'
            )
        alike = re.sub(r"[^a-z0-9]", "", name.lower())
        if seen.get(alike) == name:
            yield ToolFinding("same-name", "error", name, place, "two tools have this name", "rename one of them")
        elif alike in seen:
            what = f"it differs from {seen[alike]!r} by its spelling alone: models mix them up"
            yield ToolFinding("alike", "warning", name, place, what, "give it another word")
        seen.setdefault(alike, name)


def _tool(at: int, function: Json) -> Iterator[ToolFinding]:
    name, place = _name(function), json_pointer(at, "function")
    if not str(function.get("description") or "").strip():
        yield ToolFinding(
            "no-description", "warning", name, place, "it has no description", '"description": "What it is for."'
        )
    schema: Any = function.get("parameters", {})
    root = f"{place}/parameters"
    try:
        grammar = schema_grammar(schema, mode="relaxed")
        grammar.to("gbnf")  # which fails where no value is valid
    except ToolgramError as error:
        yield ToolFinding("schema", "error", name, root, str(error), "mend the schema there")
        return
    for relaxation in grammar.relaxations:
        yield _relaxed(name, root, relaxation)
    for pointer, each in _schemas(schema):
        yield from _keys(name, root, pointer, each)
    unbounded = [(pointer, kind) for pointer, each in _schemas(schema) if (kind := _unbounded(each))]
    for kind, mend in (("string", '"maxLength": 200'), ("array", '"maxItems": 20')):
        pointers = [pointer for pointer, its in unbounded if its == kind]
        if pointers:
            more = f", and {len(pointers) - 1} more" if len(pointers) > 1 else ""
            what = f"{kind}s without a bound may go on to the end of the context{more}"
            yield ToolFinding(f"unbounded-{kind}", "note", name, root + pointers[0], what, mend)
    for pointer, each in _schemas(schema):
        if isinstance(pattern := each.get("pattern"), str) and (size := _size(each)) > _COSTLY:
            what = f"the grammar of its pattern has {size} characters: {pattern[:60]!r}"
            mend = "smaller counts in the pattern, or `maxLength` in their place"
            yield ToolFinding("costly-pattern", "warning", name, root + pointer, what, mend)


def _keys(name: str, root: str, pointer: str, schema: Json) -> Iterator[ToolFinding]:
    """What is wrong with the keys of an object: they stand beside `properties`, or are required and not described."""
    if outside := strays(schema):
        what = f"outside of `properties`, where they are no arguments: {', '.join(map(repr, outside))}"
        mend = f'"properties": {{{", ".join(f"{json.dumps(key)}: …" for key in outside)}}}'
        yield ToolFinding("outside-properties", "warning" if pointer else "error", name, root + pointer, what, mend)
    described: Any = schema.get("properties")
    if not isinstance(described, Mapping) or not _OF_OTHER_KEYS.isdisjoint(schema) or _BRANCH.search(pointer):
        return
    for key in schema.get("required", ()):
        if key not in described:
            what = f"{key!r} is required, and described nowhere: any value is taken for it"
            mend = f'"required" without it, or {json.dumps(key)} among "properties"'
            yield ToolFinding("not-described", "warning", name, root + pointer, what, mend)


def _relaxed(name: str, root: str, relaxation: Relaxation) -> ToolFinding:
    stricter = relaxation.kind == "stricter"
    what = f"{relaxation.keyword} is {'stricter than asked' if stricter else 'not enforced'}: {relaxation.enforced}"
    return ToolFinding(
        "stricter" if stricter else "not-enforced",
        "note" if stricter else "warning",
        name,
        root + relaxation.pointer,
        what,
        _MENDS.get(relaxation.keyword, _CHECK),
    )


def _schemas(schema: Any, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """The schemas in a schema with their places, those that it refers to once, where they are defined."""
    if not isinstance(schema, Mapping):
        return
    one = cast("Json", schema)
    yield pointer, one
    for word in ("properties", "$defs", "definitions", "patternProperties"):
        members = one.get(word)
        if isinstance(members, Mapping):
            for key, each in cast("Json", members).items():
                yield from _schemas(each, pointer + json_pointer(word, key))
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        listed = one.get(word)
        if isinstance(listed, list):
            for at, each in enumerate(cast("list[Any]", listed)):
                yield from _schemas(each, pointer + json_pointer(word, at))
    for word in ("items", "additionalProperties", "contains", "not"):
        yield from _schemas(one.get(word), pointer + json_pointer(word))


def _unbounded(schema: Json) -> Literal["string", "array", ""]:
    if schema.get("type") == "string" and _BOUNDED.isdisjoint(schema):
        return "string"
    if schema.get("type") == "array" and "maxItems" not in schema and "enum" not in schema and "const" not in schema:
        return "array"
    return ""


def _size(schema: Json) -> int:
    """How many characters the grammar of a string has."""
    words = ("type", "pattern", "minLength", "maxLength")
    try:
        return len(schema_grammar({word: schema[word] for word in words if word in schema}, mode="relaxed").to("gbnf"))
    except ToolgramError:
        return 0  # which is told where the whole schema is read
