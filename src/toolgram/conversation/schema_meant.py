"""A schema as the client that sent it means it, where its language has no better way to write that.

Go writes a list or an object that was never set as null, and Lua and PHP an empty list and an empty object alike::

    {"type": "object", "properties": null, "required": null}        a tool without parameters, from Go
    {"type": "object", "properties": [], "required": {}}            the same, from Lua or PHP

MCP servers send such schemas, and clients pass them on (https://github.com/coder/coder/pull/23538,
https://github.com/opencode-ai/opencode/pull/278, https://github.com/neutree-ai/neutree/pull/493,
https://github.com/avante-corp/avante.nvim/pull/2803).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from sys import getsizeof
from typing import Any, cast

from toolgram.caching import TOGETHER, packed_once, remembers

_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))  # of schemas
_OBJECTS = _BY_NAME | {"dependencies", "dependentRequired"}
_EMPTY: dict[str, tuple[type, Callable[[], Any]]] = {
    **dict.fromkeys(_OBJECTS, (list, dict[str, Any])),
    "required": (dict, list[Any]),
}
"""What may stand where another kind is meant, if it is empty, and what is meant."""
_LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))  # of schemas
_SCHEMAS = frozenset(
    (
        *("items", "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
        *("unevaluatedProperties", "unevaluatedItems"),
    )
)
_BOUNDS = (
    *("minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties", "uniqueItems"),
)
_UNSET = _OBJECTS | _LISTS | _SCHEMAS | {"required", "enum", "pattern", *_BOUNDS}
_DEEPEST = 50  # schemas inside each other; no grammar is made of more


@remembers
def schema_meant(schema: Any) -> Any:
    """The schema without keywords that are null, which none of these may be, and with empty lists and objects as their
    places need them; itself where there is nothing to be changed. What else is wrong with it stays.
    """
    try:
        key = (packed_once(schema),)
    except (TypeError, RecursionError):  # it is no JSON, or nested deeper than anything that is looked at
        return _meant_by(schema, 0)
    if TOGETHER.recall(schema_meant, key):
        return schema
    meant = _meant_by(schema, 0)
    if meant is schema:
        TOGETHER.note(schema_meant, key, result=True, weight=getsizeof(key[0]))
    return meant


def _meant_by(schema: Any, depth: int) -> Any:
    if not schema and isinstance(schema, list):
        return dict[str, Any]()
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return cast("Any", schema)
    given = cast("dict[str, Any]", schema)
    said = {keyword: value for keyword, value in given.items() if value is not None or keyword not in _UNSET}
    return _kept({keyword: _meant(keyword, value, depth) for keyword, value in said.items()}, given)


def _meant(keyword: str, value: Any, depth: int) -> Any:
    written, meant = _EMPTY.get(keyword, (None, None))
    if not value and meant is not None and type(value) is written:
        return meant()
    if isinstance(value, dict) and keyword in _BY_NAME:
        named = cast("dict[str, Any]", value)
        return _kept({name: _meant_by(each, depth + 1) for name, each in named.items()}, named)
    if isinstance(value, list) and keyword in _LISTS:
        listed = cast("list[Any]", value)
        parts = [_meant_by(each, depth + 1) for each in listed]
        return listed if all(map(is_, parts, listed)) else parts
    return _meant_by(value, depth + 1) if keyword in _SCHEMAS else cast("Any", value)


def _kept(made: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The given object, if the one that was made has the very same members."""
    return given if len(made) == len(given) and all(map(is_, made.values(), given.values())) else made
