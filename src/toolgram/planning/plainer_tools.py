"""Tools as those templates take them that do not take every JSON Schema: plainer in the prompt, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolgram.caching import Document, parsed, weighed

Tool = Mapping[str, Any]
Schema = dict[str, Any]
_EMPTY: Schema = {"description": "", "parameters": {"type": "object", "properties": {}}}
_ONE, _NAMED = frozenset(("items", "additionalProperties")), frozenset(("properties", "$defs"))
_SEVERAL = frozenset(("anyOf", "oneOf", "allOf", "items", "prefixItems"))
_MAY_BE_NULL = ("const", "default")
_DEEPEST = 24
_OBJECTS = (dict, Mapping)  # checking for a dict is fast, for an abstract class it is not


def filled(tool: Tool) -> Tool:
    """The tool with what it need not have: a description and parameters, and a description of each parameter.

    What says nothing is left out (`null`, and `true` where a schema stands), so that each schema is an object.
    """
    return _filled(Document.of(tool))


def plain(tool: Tool) -> Tool:
    """As `filled`, with one type in place of a type and null, without null by default, with what objects hold, and with
    one schema for the items of an array."""
    return _plainer(Document.of(tool))


@weighed(parsed)
def _filled(tool: Document) -> Tool:
    return _with_parameters(tool.value, lambda schema: _described(_schema(schema)))


@weighed(parsed)
def _plainer(tool: Document) -> Tool:
    return _with_parameters(tool.value, lambda schema: _described(_plain(_schema(schema))))


def _with_parameters(tool: Tool, change: Callable[[Any], Schema]) -> Tool:
    given = {key: value for key, value in tool["function"].items() if value is not None and value is not True}
    function = {**_EMPTY, **given}
    if isinstance(function["parameters"], _OBJECTS):
        function["parameters"] = change(function["parameters"])
    return {**tool, "function": function}


def _inside(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> Schema:
    """The schema with `change` made to each schema directly inside it."""
    made = dict(schema)
    for key, given in schema.items():
        if key in _SEVERAL and isinstance(given, Sequence) and not isinstance(given, str):
            made[key] = [change(each) for each in cast("Sequence[Any]", given)]
        elif key in _ONE and (isinstance(given, _OBJECTS) or (key == "items" and isinstance(given, bool))):
            made[key] = change(given)
        elif key in _NAMED and isinstance(given, _OBJECTS):
            made[key] = {name: change(each) for name, each in cast("Mapping[str, Any]", given).items()}
    return made


def _schema(schema: Any, depth: int = 0) -> Schema:
    if not isinstance(schema, _OBJECTS) or depth > _DEEPEST:
        return {}
    given = cast("Mapping[str, Any]", schema)
    said = {key: value for key, value in given.items() if value is not None or key in _MAY_BE_NULL}
    return _inside(said, lambda each: _schema(each, depth + 1))


def _described(schema: Schema) -> Schema:
    if not isinstance(properties := schema.get("properties"), _OBJECTS):
        return schema
    named = cast("Mapping[str, Schema]", properties)
    return {**schema, "properties": {name: {"description": "", **each} for name, each in named.items()}}


def _plain(schema: Schema) -> Schema:
    made = _described(_inside(schema, _plain))
    match made.get("type"):
        case [*types]:
            left = [each for each in types if each != "null"]
            made["type"] = left[0] if len(left) == 1 else left
        case "null":
            del made["type"]
        case _:
            pass
    if isinstance(items := made.get("items"), list):  # one schema for each item, as drafts before 2020-12 have it
        first = cast("list[Schema]", items)
        kinds = [each for at, each in enumerate(first) if each not in first[:at]]
        made |= {"prefixItems": first, "items": {"anyOf": kinds} if len(kinds) > 1 else kinds[0] if kinds else {}}
    if "default" in made and made["default"] is None:
        del made["default"]
    if made.get("type") == "object" and not isinstance(made.get("additionalProperties"), _OBJECTS):
        made["additionalProperties"] = {}
    return made
