"""Llama's tags before a call, which its models write unasked: where they may call, they may write them."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram import Message, ToolCall

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get_weather", WEATHER)]}


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("llama_3", '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}'),
        ("pythonic", '<|python_start|>[get_weather(city="Oslo")]<|python_end|>'),
    ],
)
def test_a_tagged_call_is_admitted(style: str, text: str, choice: str) -> None:
    plan = toolgram.plan({**BODY, "tool_choice": choice}, CHATML, style=style)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert ebnf_accepts(grammar.to("ebnf"), text)
    assert gbnf_accepted(grammar.to("gbnf"), [text]) == {text}
    (call,) = plan.parse(text).tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Oslo"}')


def test_a_call_in_python_after_the_tag_is_read() -> None:
    """As Llama 3.3 writes it; a grammar leads on to JSON there."""
    plan = toolgram.plan(BODY, CHATML, style="llama_3")
    assert plan.constraint is not None
    for text in ('<|python_tag|>get_weather(city="Oslo")', '<|python_tag|>get_weather.call(city="Oslo")'):
        assert not plan.constraint.grammar.accepts(text)
        whole = fed(plan.reader(), text)
        assert joined(whole) == joined(fed(plan.reader(), text, [1] * len(text)))
        assert Message.from_events(whole) == Message(tool_calls=(ToolCall("get_weather", '{"city": "Oslo"}'),))
