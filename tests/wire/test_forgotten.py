"""Openers that models forget: a model that has begun its call without one goes on with it, and is not led astray."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, tool
from toolgram.styles.registry import all_styles
from toolgram.wire.forgotten import without_forgotten

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get_weather", WEATHER)]}
# What stands before the beginning of the call, that beginning, and the rest.
CALLS = {
    "qwen_xml": (
        "<tool_call>\n",
        "<function=get_weather>\n",
        "<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>",
        '{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
    ),
    "deepseek_v3_1": (
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>",
        '{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ),
    "deepseek_v3_2": (
        "<｜DSML｜function_calls>\n",
        '<｜DSML｜invoke name="get_weather">\n',
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
    ),
}


def plan(style: str, **more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style=style)


@pytest.mark.parametrize("style", CALLS)
@pytest.mark.parametrize("said", ["", "I will look that up.\n\n"])
def test_a_call_without_its_opener_is_admitted_and_read(style: str, said: str) -> None:
    opener, begin, rest = CALLS[style]
    lead = f"{said.strip()}\n\n" if style == "deepseek_v3_2" else said
    made = plan(style)
    assert made.constraint is not None
    grammar = made.constraint.grammar
    texts = {lead + opener + begin + rest, lead + begin + rest}
    assert all(grammar.accepts(text) for text in texts)
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    for text in texts:
        message = made.parse(text)
        assert [(call.name, call.arguments) for call in message.tool_calls] == [("get_weather", '{"city": "Oslo"}')]
        assert (message.content or "").strip() == said.strip()


@pytest.mark.parametrize("style", CALLS)
def test_where_a_call_must_be_made_its_opener_is_written(style: str) -> None:
    opener, begin, rest = CALLS[style]
    must = plan(style, tool_choice="required")
    assert must.constraint is not None
    lead = "\n\n" if style == "deepseek_v3_2" else ""
    assert must.constraint.grammar.accepts(lead + opener + begin + rest)
    assert not must.constraint.grammar.accepts(lead + begin + rest)


def test_a_call_that_closes_the_reasoning_needs_its_opener() -> None:
    opener, begin, rest = CALLS["qwen_xml"]
    made = plan("qwen_xml", calls_close_reasoning=True, reasoning_max_tokens=100)
    assert made.constraint is not None
    grammar, thought = made.constraint.grammar, "<think>\nThe weather is needed.\n"
    assert grammar.accepts(thought + opener + begin + rest)
    assert grammar.accepts(f"{thought}</think>\n\n{begin}{rest}")
    assert not grammar.accepts(thought + begin + rest)
    assert made.parse(f"{thought}</think>\n\n{begin}{rest}").reasoning == "The weather is needed."


def test_the_styles_whose_openers_are_forgotten() -> None:
    changed = {style.name for style in all_styles() if without_forgotten(style.wire) != style.wire}
    forgotten = {"qwen_xml", "kimi_k2", "deepseek_r1", "deepseek_v3_1", "deepseek_v3_2", "deepseek_v4"}
    assert changed == forgotten | {"granite_3_3", "command_r", "mixtral"}  # the latter misspell a mark


R1 = """\
<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
```json
{"city": "Oslo"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"""
MISSPELLED = [
    ("kimi_k2", "<|tool_call_section_begin|>" + "".join(CALLS["kimi_k2"][1:])),
    *(
        ("deepseek_r1", f"<｜tool{begin}｜>{R1}")
        for begin in ("_calls_begin", " calls begin", r"\_calls\_begin", "▁calls")
    ),
    ("deepseek_v3_2", "\n\n" + "".join(CALLS["deepseek_v3_2"]).replace("function_calls", "tool_calls")),
    ("granite_3_3", '<tool_call>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'),
    ("mixtral", '<tool\\_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool\\_call>'),
]


@pytest.mark.parametrize(("style", "text"), MISSPELLED)
def test_a_mark_that_is_read_may_be_written(style: str, text: str) -> None:
    """Else its last sign could not be: what is read as a mark is no text."""
    made = plan(style)
    assert made.constraint is not None
    grammar = made.constraint.grammar
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert ebnf_accepts(grammar.to("ebnf"), text)
    assert gbnf_accepted(grammar.to("gbnf"), {text}) == {text}
    (call,) = made.parse(text).tool_calls
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Oslo"}')
    assert made.parse(text).content is None
    must = plan(style, tool_choice="required").constraint
    assert must is not None
    assert not must.grammar.accepts(text)
