"""Calls that are bare JSON beside answers that are JSON too: the call wins, and only a call is one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from situations import callable_tools, fed
from toolgram import Message
from toolgram.caching import Document
from toolgram.conversation.events import Unreadable
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import Answer, TurnSpec
from toolgram.styles.native.llama3 import LLAMA_3
from toolgram.styles.native.pythonic import PYTHONIC
from toolgram.styles.native.xlam import XLAM
from toolgram.wire.reader import Reader

TOOLS = callable_tools({"get": {"type": "object"}, "get_it": {"type": "object"}})
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
LIKE_A_CALL = {"type": "object", "properties": {"name": {"type": "string"}, "parameters": {}, "arguments": {}}}
ANSWERS: list[Any] = [
    {"type": "object"},
    PERSON,
    LIKE_A_CALL,
    {"type": "string"},
    {"type": "array", "items": LIKE_A_CALL},
]


def compiled(style: str, schema: Any) -> CompiledTurn:
    wire = {"llama_3": LLAMA_3, "xlam": XLAM, "pythonic": PYTHONIC}[style].wire
    answer = Answer(Document.of(schema), strict=False, pointer="")
    return compile_turn(TurnSpec(wire, TOOLS, "any", parallel=True, answer=answer, stops=()))


def read(turn: CompiledTurn, text: str, cuts: list[int] | None = None) -> Message:
    events = fed(Reader(turn.program, value=True, expected=turn.expected), text, cuts)
    assert not [event for event in events if isinstance(event, Unreadable)], text
    return Message.from_events(events)


@pytest.mark.parametrize("schema", ANSWERS, ids=str)
@pytest.mark.parametrize("style", ["llama_3", "xlam", "pythonic"])
def test_each_sentence_is_a_call_or_a_valid_answer(style: str, schema: Any) -> None:
    turn = compiled(style, schema)
    validator = jsonschema_rs.validator_for(schema)
    seen: set[bool] = set()
    for seed in range(60):
        text = turn.grammar.sample(seed)
        message = read(turn, text)
        assert message == read(turn, text, [1] * len(text))
        seen.add(bool(message.tool_calls))
        if message.tool_calls:
            assert message.content is None
        else:
            assert json.loads(message.content or "") == json.loads(text)
            validator.validate(json.loads(text))
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        ('{"name": "get", "parameters": {}}', True),
        ('{"name": "get_it", "parameters": {}}', True),
        ('{"name": "Bob", "parameters": {}}', False),
        ('{"name": "get", "parameters": 5}', False),
        ('{"name": "get"}', False),
    ],
)
def test_a_call_is_an_object_that_names_a_tool_and_holds_arguments(text: str, is_call: bool) -> None:
    turn = compiled("llama_3", LIKE_A_CALL)
    assert turn.grammar.accepts(text)
    assert bool(read(turn, text).tool_calls) is is_call


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('[get(a="x", b=[1, None]), get_it()]', [("get", {"a": "x", "b": [1, None]}), ("get_it", {})]),
        ("<|python_start|>[get(a=True)]<|python_end|>", [("get", {"a": True})]),
        ('[get(a="x"b=2)]', [("get", {"a": "x", "b": 2})]),
        ("[get(a=two words, b=2)]", [("get", {"a": "two words", "b": 2})]),
        ("[link](https://example.org) and more", []),
        ("[1, 2] is a list, get(1) is not", []),
        ("[other(a=1)]", []),
        ("[ge", []),
        ("[", []),
        ("No tool fits.", []),
    ],
)
def test_a_list_of_python_calls_is_one_only_with_the_name_of_a_tool(text: str, calls: list[Any]) -> None:
    turn = compile_turn(TurnSpec(PYTHONIC.wire, TOOLS, "any", parallel=True, answer=None, stops=()))
    for cuts in (None, [1] * len(text)):
        message = Message.from_events(fed(Reader(turn.program, expected=turn.expected), text, cuts))
        assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == calls
        assert (message.content or "") == ("" if calls else text)
