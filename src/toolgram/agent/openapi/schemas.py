"""The schemas of an OpenAPI document as JSON Schemas of their own, in words of 3.1, with what a client sends alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolgram.work import spend

Json = Mapping[str, Any]

COMPONENT = "#/components/schemas/"
_CHARACTERS = 16  # of a text that cost a step


def object_or_nothing(value: Any) -> Json:
    """The value, or nothing where it is no object."""
    return cast("Json", value) if isinstance(value, Mapping) else {}


def steps(value: Any) -> int:
    """What a value costs without its parts: it stands in each tool that refers to it."""
    return 1 + len(value) // _CHARACTERS if isinstance(value, str) else 1


def schema_of(parameter: Json) -> Any:
    """The schema of a parameter, which may stand in a kind of content."""
    content = object_or_nothing(parameter.get("content"))
    inside = object_or_nothing(next(iter(content.values()), None))
    return parameter.get("schema", inside.get("schema", {}))


def described(schema: Any, description: Any) -> Any:
    """The schema with a description, unless it has one."""
    if not isinstance(schema, Mapping) or not description or "description" in schema or "$ref" in schema:
        return cast("Any", schema)
    return {**cast("Json", schema), "description": description}


def references(value: Any) -> Iterator[str]:
    """The names of the components that a schema refers to."""
    spend(1)
    if isinstance(value, Mapping):
        here = cast("Json", value)
        reference = here.get("$ref")
        if isinstance(reference, str) and reference.startswith(COMPONENT):
            yield reference[len(COMPONENT) :].split("/")[0]
        for each in here.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from references(each)


def own(value: Any) -> Any:
    """The schema with references into the components as references to its own definitions, in words of today."""
    spend(steps(value))
    if isinstance(value, Mapping):
        made = {key: own(each) for key, each in cast("Json", value).items()}
        reference = made.get("$ref")
        if isinstance(reference, str) and reference.startswith(COMPONENT):
            made["$ref"] = "#/$defs/" + reference[len(COMPONENT) :]
        return _since_3_1(_sent(made))
    if isinstance(value, list):
        return [own(each) for each in cast("list[Any]", value)]
    return value


def _sent(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of what is sent to a server: what only the server says is no part of it, required or not."""
    properties = object_or_nothing(schema.get("properties"))
    said = [name for name, each in properties.items() if object_or_nothing(each).get("readOnly") is True]
    if said:
        schema["properties"] = {name: each for name, each in properties.items() if name not in said}
        if isinstance(required := schema.get("required"), list):
            schema["required"] = [name for name in cast("list[Any]", required) if name not in said]
    return schema


def _since_3_1(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of version 3.0 as later ones have it: null as a type, exclusive bounds as numbers."""
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        del schema["nullable"]
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    return schema
