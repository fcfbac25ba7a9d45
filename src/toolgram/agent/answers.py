"""The typed answer of a run: its schema, with bounds for the last step, and its value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolgram.conversation.message import Message
from toolgram.errors import InvalidOutput, InvalidRequest
from toolgram.schema.python_types import NoSchema, PythonType, python_type

Schema = Mapping[str, Any]

_ITEMS = 8  # of a list, and members of an object with free keys, in a bounded answer
_LEAST = 12  # characters of a string in a bounded answer, at least
_ONE = ("items", "additionalProperties", "additionalItems", "contains", "unevaluatedItems", "unevaluatedProperties")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_FIXED = ("enum", "const", "pattern", "format")


@dataclass(frozen=True)
class AnswerType:
    """The form of an answer: a Python type that pydantic takes, or a JSON Schema."""

    name: str
    schema: Schema
    _type: PythonType | None = None

    @staticmethod
    def of(given: Any) -> AnswerType:
        """The form that a type or a JSON Schema stands for. Raises InvalidRequest."""
        if isinstance(given, Mapping):
            return AnswerType("answer", cast("Schema", given))
        try:
            kind = python_type(given)
        except NoSchema as error:
            raise InvalidRequest("/answer", f"must be a type, or a JSON Schema: {error}") from error
        return AnswerType(kind.name, kind.schema, kind)

    def response_format(self, characters: int | None = None) -> Schema:
        """The answer as a response format; with `characters` its free strings have about so many, all together."""
        schema = self.schema if characters is None else bounded(self.schema, characters)
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": schema}}

    def value(self, message: Message) -> Any:
        """The value of the message. Raises InvalidOutput."""
        text = message.content or ""
        if self._type is not None:
            return self._type.read(text)
        try:
            return json.loads(text)
        except ValueError as error:
            raise InvalidOutput(("", f"the answer is not whole, valid JSON: {error}")) from error


def bounded(schema: Schema, characters: int) -> Schema:
    """The schema with bounds on what it leaves free: strings, lists and keys.

    `characters` is for all strings of an answer, roughly. What has bounds of its own keeps them where they are
    narrower, and a least length is kept always. Strings with a pattern or a format are as long as these say.
    """
    free = _count(schema)
    each = max(_LEAST, characters // max(1, free))
    return _mapped(schema, lambda inner: _with_bounds(inner, each))


def _with_bounds(schema: dict[str, Any], characters: int) -> dict[str, Any]:
    if any(key in schema for key in _FIXED):
        return schema
    kinds = _kinds(schema)
    if "string" in kinds:
        schema["maxLength"] = _within(schema, "maxLength", "minLength", characters)
    if "array" in kinds and "items" in schema:
        schema["maxItems"] = _within(schema, "maxItems", "minItems", _ITEMS)
    if "object" in kinds and schema.get("additionalProperties", False) is not False:
        needed = len(cast("dict[str, Any]", schema.get("properties", {}))) + _ITEMS
        schema["maxProperties"] = _within(schema, "maxProperties", "minProperties", needed)
    return schema


def _within(schema: Schema, most: str, least: str, bound: int) -> int:
    """The bound, no wider than the schema's own and no narrower than what it needs at least."""
    return max(int(schema.get(least, 0)), min(int(schema.get(most, bound)), bound))


def _kinds(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _count(schema: Any) -> int:
    """How many free strings an answer has, those in lists as often as a bounded list may have them."""
    if not isinstance(schema, Mapping):
        return 0
    here = cast("Schema", schema)
    own = 1 if "string" in _kinds(here) and not any(key in here for key in _FIXED) else 0
    return own + sum(_count(inner) * (_ITEMS if many else 1) for inner, many in _inside(here))


def _inside(schema: Schema) -> Iterator[tuple[Any, bool]]:
    for key in _ONE:
        if isinstance(schema.get(key), Mapping):
            yield schema[key], True
    for key in _SEVERAL:
        if isinstance(schema.get(key), list):
            yield from ((each, False) for each in schema[key])
    for key in _NAMED:
        if isinstance(schema.get(key), Mapping):
            yield from ((each, False) for each in schema[key].values())


def _mapped(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The schema with every schema inside of it, and itself, changed; a copy."""
    if not isinstance(schema, Mapping):
        return schema
    made = dict(cast("Schema", schema))
    for key in _ONE:
        if isinstance(made.get(key), Mapping):
            made[key] = _mapped(made[key], change)
    for key in _SEVERAL:
        if isinstance(made.get(key), list):
            made[key] = [_mapped(each, change) for each in made[key]]
    for key in _NAMED:
        if isinstance(made.get(key), Mapping):
            made[key] = {name: _mapped(each, change) for name, each in made[key].items()}
    return change(made)
