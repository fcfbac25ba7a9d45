"""DSML, the markup of DeepSeek V3.2 and V4."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, tool

BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "What time is it?"}],
    "tools": [tool("now", {"type": "object", "properties": {}}), tool("get_weather", WEATHER)],
}
SECTIONS = {"deepseek_v3_2": "function_calls", "deepseek_v4": "tool_calls"}


@pytest.mark.parametrize("style", SECTIONS)
@pytest.mark.parametrize("between", ["", "\n"])
def test_a_call_without_parameters_may_have_an_empty_line_in_their_place(style: str, between: str) -> None:
    made = toolgram.plan(BODY, CHATML, style=style)
    invoke = f'<｜DSML｜invoke name="now">\n{between}</｜DSML｜invoke>\n'
    text = f"\n\n<｜DSML｜{SECTIONS[style]}>\n{invoke}{invoke}</｜DSML｜{SECTIONS[style]}>"
    assert made.constraint is not None
    grammar = made.constraint.grammar
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert ebnf_accepts(grammar.to("ebnf"), text)
    assert gbnf_accepted(grammar.to("gbnf"), {text}) == {text}
    assert [(call.name, call.arguments) for call in made.parse(text).tool_calls] == [("now", "{}")] * 2
