"""Answers as Python objects: a response format that is a type, and the value of a message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from toolgram.conversation.message import Message
from toolgram.errors import InvalidOutput, InvalidRequest
from toolgram.planning.turn import CompiledTurn

if TYPE_CHECKING:
    from toolgram.schema.python_types import PythonType

_JSON = (str, int, float, list, tuple, Mapping)  # a response format made of these is none of Python's types


def typed_answer(request: Any) -> tuple[Any, PythonType | None]:
    """The request with a JSON Schema in place of a response format that is a type, and that type.

    Raises InvalidRequest where the format is neither JSON nor a type that JSON Schema can express.
    """
    if not isinstance(request, Mapping):
        return request, None
    body = cast("Mapping[str, Any]", request)
    given = body.get("response_format")
    if given is None or isinstance(given, _JSON):
        return body, None
    from toolgram.schema.python_types import NoSchema, python_type  # which loads much of pydantic

    try:
        kind = python_type(given)
    except NoSchema as error:
        raise InvalidRequest("/response_format", f"must be an object as in OpenAI's API, or a type: {error}") from error
    format_ = {"type": "json_schema", "json_schema": {"name": kind.name, "schema": kind.schema}}
    return {**body, "response_format": format_}, kind


def answer_of(message: Message, kind: PythonType | None, turn: CompiledTurn) -> Any:
    """The value of an answer, checked by its type, else by the schema of the turn.

    Raises InvalidOutput, and InvalidRequest where the request asks for no form.
    """
    if turn.answer is None and turn.plain is None:
        raise InvalidRequest("/response_format", "there is none, so that the answer is the text: message.content")
    if message.tool_calls:
        raise InvalidOutput(("", f"the message is no answer but a call of {message.tool_calls[0].name!r}"))
    text = message.content
    if text is None:
        raise InvalidOutput(("", "the message has no content"))
    if kind is not None:
        return kind.read(text)
    if turn.plain is not None:
        if not turn.plain.accepts(text):
            raise InvalidOutput(("", "the text is not one that the response format allows"))
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(("", f"the content is not whole, valid JSON: {error}")) from error
    if turn.answer is not None and turn.answer(value) is None:
        raise InvalidOutput(("", "the value does not match the schema of the response format"))
    return value
