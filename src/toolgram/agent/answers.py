"""The typed answer of a run: its schema, with bounds for the last step, and its value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from toolgram.agent.bounds import Room, bounded
from toolgram.conversation.message import Message
from toolgram.errors import GrammarError, InvalidOutput, InvalidRequest
from toolgram.planning.plan import Plan
from toolgram.schema import schema_grammar, written
from toolgram.schema.python_types import NoSchema, PythonType, python_type
from toolgram.schema.types import Canonical
from toolgram.schema.writing.json_style import Spelling
from toolgram.schema.writing.values import spell_as

Schema = Mapping[str, Any]

_PARTS = (1, 2, 4, 8, 16, 32)  # by what the room of an answer is divided, the narrower it is to be
MOST_TIGHT = len(_PARTS)
_ANY = Spelling()  # without a cap on numbers


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

    def response_format(self, tokens: int | None = None, tightness: int = 0) -> Schema:
        """The answer as a response format.

        With `tokens` it is one that a model can write with so many: at a `tightness` of 0 it has as many characters in
        its free strings, all together, and it is the narrower the higher that is, up to MOST_TIGHT.
        """
        schema = self.schema if tokens is None else _narrowed(self.schema, tokens, tightness)
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": schema}}

    def value(self, message: Message) -> Any:
        """The value of the message, of the type or the schema that was given, whatever bounds it was asked for in.

        Raises InvalidOutput.
        """
        text = message.content or ""
        if self._type is not None:
            return self._type.read(text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidOutput(("", f"the answer is not whole, valid JSON: {error}")) from error
        if spell_as(self._kind, value, _ANY) is None:
            raise InvalidOutput(("", "the answer does not match its schema"))
        return value

    @cached_property
    def _kind(self) -> Canonical:
        kind, _ = written(self.schema, lambda made: made, pointer="", mode="relaxed", closed=False, spelling=_ANY)
        return kind


def fits(made: Plan, tokens: int) -> bool:
    """Whether every answer that the plan allows can be written with so many tokens, reasoning aside: no token of text
    is shorter than a byte."""
    longest = None if made.constraint is None else made.constraint.grammar.longest
    return longest is not None and longest <= tokens


def _narrowed(schema: Schema, tokens: int, tightness: int) -> Schema:
    """The schema with bounds, the narrowest up to `tightness` that leave an answer; itself where none do."""
    for narrow in range(tightness, -1, -1):
        made = bounded(schema, _room(tokens, narrow))
        try:
            _ = schema_grammar(made, mode="relaxed").shortest
        except GrammarError:
            continue
        return made
    return schema


def _room(tokens: int, tightness: int) -> Room:
    if tightness == MOST_TIGHT:
        return Room(0, items=1, levels=1, least=1)
    return Room(tokens // _PARTS[tightness], items=max(1, 8 >> tightness), levels=max(1, 3 - tightness))
