"""Llama's tags before a call, which its models write unasked: one that may call or not may write them."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, tool

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get_weather", WEATHER)]}


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("llama_3", '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}'),
        ("pythonic", '<|python_start|>[get_weather(city="Oslo")]<|python_end|>'),
    ],
)
def test_a_tagged_call_is_admitted_where_the_model_chooses(style: str, text: str) -> None:
    plan = toolgram.plan(BODY, CHATML, style=style)
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert ebnf_accepts(grammar.to("ebnf"), text)
    assert gbnf_accepted(grammar.to("gbnf"), [text]) == {text}
    (call,) = plan.parse(text).tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Oslo"}')
    required = toolgram.plan({**BODY, "tool_choice": "required"}, CHATML, style=style).constraint
    assert required is not None
    assert not required.grammar.accepts(text)
