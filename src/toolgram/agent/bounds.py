"""A schema with bounds on what it leaves free, so that an answer is whole within the room that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from toolgram.agent.subschemas import (
    DEFINITIONS,
    OF_THE_SAME,
    ONE,
    Schema,
    definitions,
    kinds_of,
    mapped,
    narrowed,
    parts,
    schemas,
    shared_definitions,
    whole_definitions,
)
from toolgram.errors import GrammarError
from toolgram.grammar.components import components
from toolgram.schema import schema_grammar

_KEY = 24  # characters of a free key
_FIXED = ("enum", "const", "format")
_OF_OBJECTS = ("properties", "required", "additionalProperties", "patternProperties")
_OF_ARRAYS = ("items", "prefixItems")
_SAYS_WHICH = ("enum", "const", "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if")
_BESIDE = (*OF_THE_SAME, "$ref", "$dynamicRef", "if", "not")


@dataclass(frozen=True, slots=True)
class Room:
    """What an answer may have: about so many `characters` in all its free strings together, of `least` each; so many
    `items` in a list, and members of an object with free keys; and so many `levels` of what holds itself."""

    characters: int
    items: int = 8
    levels: int = 3
    least: int = 12


def bounded(schema: Schema, room: Room) -> Schema:
    """The schema with bounds on what it leaves free: strings, lists, keys, values of any kind, and what holds itself.

    What has bounds of its own keeps them where they are narrower, and what it needs at least is kept always. Strings
    with a format are as long as that says.
    """
    unrolled = _in_levels(schema, room.levels)
    whole, shared = whole_definitions(unrolled), shared_definitions(unrolled)
    concrete = narrowed(unrolled, partial(_of_some_kind, items=room.items, lists=_may_list(unrolled)), whole, shared)
    each = max(room.least, room.characters // max(1, _count(concrete, definitions(concrete), room.items, {})))
    return narrowed(concrete, lambda inner, _: _with_bounds(inner, each, room.items), whole, shared)


def _may_list(schema: Schema) -> bool:
    """Whether keys and items may be listed that were not: what is listed counts as evaluated."""
    return not any(key in each for each in schemas(schema) for key in ("unevaluatedItems", "unevaluatedProperties"))


def _of_some_kind(schema: dict[str, Any], shared: bool = False, *, items: int, lists: bool) -> dict[str, Any]:
    """What may be of any kind is plain: no list or object, which would be of anything again. Where the schema is
    `shared` others say what the value is; not all of them may name the keys."""
    if shared:
        return schema
    if "type" not in schema and not any(key in schema for key in _SAYS_WHICH):
        if any(key in schema for key in _OF_OBJECTS):
            schema["type"] = "object"
        elif any(key in schema for key in _OF_ARRAYS):
            schema["type"] = "array"
        else:
            schema["type"] = ["string", "number", "boolean", "null"]
    if not lists or any(key in schema for key in _BESIDE):
        return schema
    kinds = kinds_of(schema)
    if "array" in kinds and schema.get("items", True) is True:
        schema["items"] = _of_some_kind({}, items=items, lists=lists)
    if "object" in kinds and schema.get("additionalProperties", "properties" not in schema) is True:
        schema["additionalProperties"] = _of_some_kind({}, items=items, lists=lists)
    return schema


def _with_bounds(schema: dict[str, Any], characters: int, items: int) -> dict[str, Any]:
    kinds = kinds_of(schema)
    if "string" in kinds and _is_free(schema):
        most = max(int(schema.get("minLength", 0)), min(int(schema.get("maxLength", characters)), characters))
        schema = _of_pattern(schema, most) if "pattern" in schema else {**schema, "maxLength": most}
    if "array" in kinds and "items" in schema:
        least = int(schema.get("minItems", 0))
        schema["maxItems"] = max(least, min(int(schema.get("maxItems", items)), items))
    if "object" in kinds and (schema.get("additionalProperties", False) is not False or "patternProperties" in schema):
        most = len(cast("Schema", schema.get("properties", {}))) + items
        least = int(schema.get("minProperties", 0))
        schema["maxProperties"] = max(least, min(int(schema.get("maxProperties", most)), most))
        if "patternProperties" not in schema:
            schema.setdefault("propertyNames", {"maxLength": _KEY})
    return schema


def _is_free(schema: Schema) -> bool:
    """Whether a string of it may be of any length but for what `minLength`, `maxLength` and `pattern` say."""
    return not any(key in schema for key in _FIXED)


def _of_pattern(schema: dict[str, Any], most: int) -> dict[str, Any]:
    """The schema with a greatest length, or without, where a grammar cannot say pattern and length together."""
    own = {"type": "string", **{key: schema[key] for key in ("pattern", "minLength", "maxLength") if key in schema}}
    try:
        least = schema_grammar(own, mode="relaxed").shortest - len('""')
    except GrammarError:  # there is no such string
        return schema
    for part in (1, 2, 4, 8, most):
        length = max(least, most // part)
        if not schema_grammar({**own, "maxLength": length}, mode="relaxed").relaxations:
            return {**schema, "maxLength": length}
    return schema


def _count(schema: Any, defined: Schema, items: int, known: dict[str, int]) -> int:
    """How many free strings an answer has, those in lists as often as a bounded list may have them."""
    if not isinstance(schema, Mapping):
        return 0
    here = cast("Schema", schema)
    found = 1 if "string" in kinds_of(here) and _is_free(here) else 0
    if isinstance(name := here.get("$ref"), str):
        if name not in known:
            known[name] = 0  # what still refers to itself, by a way that is not known here
            known[name] = _count(defined.get(name), defined, items, known)
        found += known[name]
    for key, inner in parts(here):
        if key not in DEFINITIONS:
            found += _count(inner, defined, items, known) * (items if key in ONE else 1)
    return found


def _in_levels(schema: Schema, levels: int) -> Schema:
    """The schema without definitions that hold themselves: there is one for each level, and none below the last."""
    targets = definitions(schema)
    without = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    used = {name: [each for each in _references(target) if each in targets or each == "#"]
            for name, target in {**targets, "#": without}.items()}  # fmt: skip
    circular = {name for group in components(used) for name in group if len(group) > 1 or name in used[name]}
    if not circular:
        return schema
    new: dict[str, Any] = {}
    for level in range(levels):
        for name in circular:
            target = without if name == "#" else targets[name]
            new[_at_level(name, level)] = mapped(target, partial(_referring, circular, level + 1))
    new |= {_at_level(name, levels): False for name in circular}
    here = mapped(schema, partial(_referring, circular, 0))
    return {**here, "$defs": {**here.get("$defs", {}), **new}}


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        here = cast("Schema", schema)
        if isinstance(here.get("$ref"), str):
            yield here["$ref"]
        for _, inner in parts(here):
            yield from _references(inner)


def _referring(circular: set[str], level: int, schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("$ref") in circular:
        schema["$ref"] = f"#/$defs/{_at_level(schema['$ref'], level)}"
    return schema


def _at_level(name: str, level: int) -> str:
    return f"{name.rsplit('/', 1)[-1]}.level.{level}"
