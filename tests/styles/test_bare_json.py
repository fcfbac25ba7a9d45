"""Llama's calls are bare JSON objects: those that begin as none are answers, and a brace is no promise of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool

BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Rain in Oslo, in JSON?"}],
    "tools": [tool("get_weather", WEATHER), tool("wait", {"type": "object", "properties": {}})],
}
CALL = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'
ANSWERS = (
    '{"rain": true}',
    '{"names": ["Oslo"]}',
    '{"city": {"name": "get_weather", "parameters": {"city": "Oslo"}}}',
    f'{{"call": {CALL}}} is what I would say.',
    '{"parameters": {"city": "Oslo"}, "name": "get_weather"}',
    '{"name": "Oslo", "rain": true}',
    '{"name":"Oslo"}',
    '{"name": ["Oslo"]}',
    '{"type": "city", "id": 3}',
    '{"type": "city", "name": "get_weather", "parameters": {}}',
    '{"id": 3, "name": "get_weather", "parameters": {}}',
    '{"n\\u0061me": "get_weather", "parameters": {}}',
    "{city} is a placeholder",
    "{}",
    '{"',
    "{",
)
# A grammar does not admit these, as it would not know soon enough; who writes them nevertheless has written no call.
NO_CALLS = (
    '{"name": "get_storm", "parameters": {"city": "Oslo"}}',
    '{"name": "storms", "parameters": {"city": "Oslo"}}',
    '{"name": "\\u0067et_storm"}',
    '{"name": "oslo"}',
    '{"type": "functional"}',
    '{\n  "rain": true\n}',
)


def plan(style: str, **more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style=style)


def grammar_of(made: toolgram.Plan) -> toolgram.Grammar:
    assert made.constraint is not None
    return made.constraint.grammar


@pytest.mark.parametrize("style", ["llama_3", "llama_4"])
@pytest.mark.parametrize("text", [*ANSWERS, *NO_CALLS])
def test_an_object_that_is_no_call_is_read_as_the_answer(style: str, text: str) -> None:
    made = plan(style)
    message = made.parse(text)
    assert (message.content, message.tool_calls) == (text, ())
    assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))


@pytest.mark.parametrize("answer", [None, {"type": "json_object"}], ids=["text", "json"])
def test_marks_before_an_object_that_is_no_call_are_no_part_of_the_answer(answer: dict[str, Any] | None) -> None:
    made = plan("llama_4", **({"response_format": answer} if answer else {}))
    message = made.parse(f'<|python_start|>{{"rain": true}}<|python_end|>{CALL}')
    assert message.content == '{"rain": true}'
    assert [call.name for call in message.tool_calls] == ["get_weather"]


@pytest.mark.parametrize("style", ["llama_3", "llama_4"])
def test_such_answers_are_admitted_where_their_first_key_tells(style: str) -> None:
    grammar = grammar_of(plan(style))
    texts = {CALL, *ANSWERS}
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    assert all(grammar.accepts(text) for text in texts)
    assert all(lark_accepts(lark, text) and ebnf_accepts(ebnf, text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert not any(grammar.accepts(text) for text in NO_CALLS)
    assert not any(lark_accepts(lark, text) or ebnf_accepts(ebnf, text) for text in NO_CALLS)


@pytest.mark.parametrize("style", ["llama_3", "llama_4"])
def test_a_turn_that_must_call_begins_as_before(style: str) -> None:
    grammar = grammar_of(plan(style, tool_choice="required"))
    assert grammar.accepts(CALL)
    assert not any(grammar.accepts(text) for text in ANSWERS)


ODD_CALLS = (
    CALL.replace("parameters", "arguments"),
    json.dumps(json.loads(CALL), indent=2),
    f'{{"type": "function", "function": {CALL}}}',
    f'{{"function": {CALL}}}',
    CALL.replace('"parameters"', '"reason": "rain", "parameters"'),
    '{"name": "get_weather", "parameters": "{\\"city\\": \\"Oslo\\"}"}',
)


@pytest.mark.parametrize("text", ODD_CALLS)
def test_calls_are_read_that_are_written_otherwise(text: str) -> None:
    made = plan("llama_3")
    (call,) = made.parse(text).tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Oslo"})
    assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))
    assert not grammar_of(made).accepts(text)


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("style", ["llama_3", "llama_4"])
def test_calls_in_the_form_of_the_api_are_calls(style: str, choice: str) -> None:
    made = plan(style, tool_choice=choice)
    text = CALL.replace("{", '{"type": "function", ', 1)
    (call,) = made.parse(text).tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Oslo"}')
    grammar = grammar_of(made)
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for one in (CALL, text):
        assert grammar.accepts(one)
        assert lark_accepts(lark, one)
        assert ebnf_accepts(ebnf, one)
        assert not grammar.accepts(one.replace("city", "town"))
    assert gbnf_accepted(grammar.to("gbnf"), {CALL, text}) == {CALL, text}


def test_several_calls_are_read_and_admitted_where_they_are_asked_for() -> None:
    text = f"{CALL}; {CALL}"
    made = plan("llama_3", parallel_tool_calls=True)
    assert [call.name for call in made.parse(text).tool_calls] == ["get_weather"] * 2
    assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))
    assert grammar_of(made).accepts(text)
    single = plan("llama_3", parallel_tool_calls=False)
    assert len(single.parse(text).tool_calls) == 2
    assert not grammar_of(single).accepts(text)


@pytest.mark.parametrize("between", ["; ", ";", ", ", "\n", ""])
def test_several_calls_are_read_whatever_stands_between(between: str) -> None:
    made = plan("llama_3", parallel_tool_calls=True)
    for after in ("", " That is all."):
        text = f'{CALL}{between}{{"name": "wait", "parameters": {{}}}}{after}'
        message = made.parse(text)
        assert [call.name for call in message.tool_calls] == ["get_weather", "wait"]
        assert message.content == (after or None)
        assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))


def test_a_call_may_leave_out_arguments_that_are_none() -> None:
    (call,) = plan("llama_3").parse('{"name": "wait"}').tool_calls
    assert (call.name, call.arguments) == ("wait", "{}")


def test_a_call_that_was_cut_off_is_no_answer() -> None:
    made = plan("llama_3")
    reader = made.reader()
    events = [*reader.feed(CALL[:30]), *reader.finish(cut=True)]
    message = toolgram.Message.from_events(events)
    assert not message.content
