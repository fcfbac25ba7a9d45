"""The keywords of JSON Schema: what their values must look like, and which of them no grammar here enforces."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from toolgram.errors import InvalidSchema

_MAX_SHOWN = 40  # characters of a value in a message
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")


def is_number(value: object) -> bool:
    """A JSON number: no boolean, not infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """A non-negative integer, which may be written 2.0."""
    return is_number(value) and cast("float", value) >= 0 and cast("float", value) % 1 == 0


def is_schema(value: object) -> bool:
    """An object or a boolean."""
    return isinstance(value, dict | bool)


def _is_list_of(check: Callable[[object], bool], least: int = 0) -> Callable[[object], bool]:
    def checked(value: object) -> bool:
        if not isinstance(value, list):
            return False
        items = cast("list[object]", value)
        return len(items) >= least and all(check(item) for item in items)

    return checked


def _is_map_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    def checked(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        members = cast("dict[object, object]", value)
        return all(isinstance(key, str) and check(item) for key, item in members.items())

    return checked


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _is_kind(value: object) -> bool:
    return isinstance(value, str) and value in KINDS


_strings = _is_list_of(_is(str))
_schemas = _is_list_of(is_schema, 1)
_schema_map = _is_map_of(is_schema)

_SHAPES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "type": (lambda v: _is_kind(v) or _is_list_of(_is_kind, 1)(v), f"is not one of {', '.join(KINDS)}, or a list"),
    "properties": (_schema_map, "is not an object of schemas"),
    "patternProperties": (_schema_map, "is not an object of schemas"),
    "dependentSchemas": (_schema_map, "is not an object of schemas"),
    "$defs": (_is(dict), "is not an object"),
    "definitions": (_is(dict), "is not an object"),
    "required": (_strings, "is not a list of strings"),
    "dependentRequired": (_is_map_of(_strings), "is not an object of lists of strings"),
    "dependencies": (_is_map_of(lambda v: is_schema(v) or _strings(v)), "is not an object of schemas or lists"),
    "enum": (_is(list), "is not a list"),
    "prefixItems": (_is_list_of(is_schema), "is not a list of schemas"),
    "items": (lambda v: is_schema(v) or _is_list_of(is_schema)(v), "is not a schema"),
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), (_schemas, "is not a list of schemas with at least one")),
    **dict.fromkeys(
        (
            *("additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if", "then", "else"),
            *("unevaluatedProperties", "unevaluatedItems"),
        ),
        (is_schema, "is neither an object nor a boolean"),
    ),
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
            *("minContains", "maxContains"),
        ),
        (is_count, "is not a non-negative integer"),
    ),
    **dict.fromkeys(("minimum", "maximum"), (is_number, "is not a number")),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum"),
        (lambda v: is_number(v) or isinstance(v, bool), "is neither a number nor a boolean"),
    ),
    "multipleOf": (lambda v: is_number(v) and cast("float", v) > 0, "is not a positive number"),
    **dict.fromkeys(
        ("pattern", "$ref", "$dynamicRef", "$recursiveRef", "$anchor", "$schema"), (_is(str), "is not a string")
    ),
    "uniqueItems": (_is(bool), "is not a boolean"),
}


def check_shapes(schema: Mapping[str, object], pointer: str) -> None:
    """Raises InvalidSchema where the value of a keyword has the wrong type."""
    for keyword, value in schema.items():
        check, complaint = _SHAPES.get(keyword, (None, ""))
        if check and not check(value):
            shown = "" if isinstance(value, list | dict) else f"{_shown(value)} "
            raise InvalidSchema(pointer, keyword, f"{shown}{complaint}")


def _shown(value: object) -> str:
    """A value that has no others in it, as JSON writes it, cut where it is long."""
    try:
        text = json.dumps(value, default=repr)
    except ValueError:  # an integer of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


Schema = Mapping[str, Any]

_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"), 2019),
    **dict.fromkeys(("minContains", "maxContains", "$recursiveRef"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), 2020),
}


def known(schema: Schema, draft: int | None) -> Schema:
    """The schema without the keywords that its draft does not know, which say nothing there."""
    if draft is None or (later := _later_than(draft)).isdisjoint(schema):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword not in later}


@cache
def _later_than(draft: int) -> frozenset[str]:
    return frozenset(keyword for keyword, since in _SINCE.items() if since > draft)


STRING = ("minLength", "maxLength", "pattern")
NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
ARRAY = (
    *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
    *("contains", "unevaluatedItems"),
)
OBJECT = (
    *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
    *("maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
)
OF_ONE_KIND = frozenset((*STRING, *NUMBER, *ARRAY, *OBJECT))
IN_PLACE = ("$ref", "$dynamicRef", "$recursiveRef", "anyOf", "oneOf", "allOf", "if", "dependentSchemas")
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
BESIDES_KINDS = frozenset(
    (
        *("const", "enum", "not", "then", "else", "contains", "dependentRequired", "dependencies"),
        *(*IN_PLACE, *UNEVALUATED),
    )
)
"""What says more of a value than its kind, and what it may be of that kind."""


def applies_others(schema: Schema) -> bool:
    """Whether the schema applies other schemas to the same value, or counts items."""
    return any(keyword in schema for keyword in (*IN_PLACE, "contains"))


_SAYING = frozenset(("type", "enum", "const", "description", "properties", "items", *IN_PLACE))
_OTHERS = frozenset(
    (
        *("title", "description", "format", "id", "default", "example", "examples"),
        *("contentMediaType", "contentEncoding", "contentSchema", "discriminator", "externalDocs", "xml"),
    )
)


def strays(schema: Schema) -> tuple[str, ...]:
    """The keys that are no keywords and say what a value is, where there are no `properties`: they belong there.

    To the specification they say nothing.
    """
    if "properties" in schema or "patternProperties" in schema or schema.get("type", "object") != "object":
        return ()
    return tuple(key for key in schema if _strays(key, schema[key]))


def _strays(key: str, value: object) -> bool:
    if key in _SHAPES or key in _OTHERS or key.startswith(("x-", "$")):
        return False
    if isinstance(value, dict):
        return not _SAYING.isdisjoint(cast("Schema", value))
    return isinstance(value, str) and value in KINDS
