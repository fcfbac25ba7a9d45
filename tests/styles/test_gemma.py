"""Gemma 4 at times forgets the token that opens a call: behind its thoughts it goes on with the call itself."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts, structural_tag_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram import Message, ToolCall

BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Rain in Oslo?"}],
    "tools": [tool("get_weather", WEATHER), tool("wait", {"type": "object", "properties": {}})],
    "reasoning_max_tokens": 500,
}
RAIN, WAIT = 'call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>', "call:wait{}<tool_call|>"
OSLO = ToolCall("get_weather", '{"city": "Oslo"}')
THOUGHT = "<|channel>thought\nRain.<channel|>"


def plan(**more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style="gemma_4")


def admitted(made: toolgram.Plan, *texts: str) -> set[str]:
    """Those of the texts that the grammar admits, on which the dialects agree."""
    assert made.constraint is not None
    grammar, tag = made.constraint.grammar, made.constraint.structural_tag()
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    yes = {text for text in texts if grammar.accepts(text)}
    assert {text for text in texts if lark_accepts(lark, text)} == yes
    assert {text for text in texts if ebnf_accepts(ebnf, text)} == yes
    assert {text for text in texts if structural_tag_accepts(tag, text)} == yes
    assert gbnf_accepted(grammar.to("gbnf"), set(texts)) == yes
    return yes


def read(made: toolgram.Plan, text: str) -> Message:
    """The message, which is the same however the text is cut."""
    whole = fed(made.reader(), text)
    assert joined(whole) == joined(fed(made.reader(), text, [1] * len(text)))
    return Message.from_events(whole)


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_call_without_its_token(choice: str) -> None:
    made = plan(tool_choice=choice)
    texts = (RAIN, THOUGHT + RAIN, f"{THOUGHT}{RAIN}<|tool_call>{WAIT}", f"{THOUGHT}<|tool_call>{RAIN}{WAIT}")
    assert admitted(made, *texts) == set(texts)
    assert [read(made, text).tool_calls for text in texts] == [(OSLO,), (OSLO,), *[(OSLO, ToolCall("wait", "{}"))] * 2]
    assert {read(made, text).content for text in texts} == {None}
    assert made.write(Message(None, "Rain.", (OSLO,))) == f"{THOUGHT}<|tool_call>{RAIN}"


def test_the_word_is_no_promise() -> None:
    made = plan()
    texts = ("call me", "call:", "call: Oslo", "call:other{a:1}", f"I write {WAIT.partition('<')[0]}", "cats")
    for text in (*texts, *(THOUGHT + text for text in texts)):
        assert admitted(made, text)
        assert read(made, text).content == text.removeprefix(THOUGHT)
    for text in ("call:get_weather is a tool", "call:get_weather_of{}", "call: get_weather"):  # not told soon enough
        assert not admitted(made, text)
        assert read(made, text) == Message(text)


def test_amid_thoughts_it_is_quoted() -> None:
    made = plan()
    text = f"<|channel>thought\nI could write {WAIT}.<channel|>Noon."
    assert admitted(made, text)
    assert read(made, text) == Message("Noon.", f"I could write {WAIT}.")
    text = f"<|channel>thought\nI look. <|tool_call>{RAIN}"
    assert admitted(made, text)
    assert read(made, text) == Message(None, "I look. ", (OSLO,))


def test_where_nothing_may_be_called_it_is_text() -> None:
    made = plan(tool_choice="none")
    assert read(made, RAIN.partition("<tool_call|>")[0]).content == RAIN.partition("<tool_call|>")[0]
