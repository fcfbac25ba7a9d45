"""Arguments between tags that are cut off or garbled: what is there is told, and what follows is still read."""

from __future__ import annotations

import pytest

import toolgram
from situations import CHATML, tool

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "place": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "short": {"type": "string", "maxLength": 2},
    },
}
REQUEST = {
    "messages": [{"role": "user", "content": "?"}],
    "tools": [tool("f", SCHEMA), tool("g", None)],
    "parallel_tool_calls": True,
}


def planned(style: str) -> toolgram.Plan:
    return toolgram.plan(REQUEST, CHATML, style=style)


GLM = "<tool_call>f<arg_key>city</arg_key><arg_value>Oslo</arg_value>"
DAYS = "<arg_key>days</arg_key><arg_value>"


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        ("<arg_key>da", '{"city": "Oslo", "da'),
        ("<arg_key>days</arg_k", '{"city": "Oslo", "days'),
        ("<arg_", '{"city": "Oslo"'),
        (DAYS + "12", '{"city": "Oslo", "days": 12'),
        (DAYS + "12</arg_v", '{"city": "Oslo", "days": 12'),
        (DAYS + "twelve", '{"city": "Oslo", "days": "twelve'),
        ('<arg_key>place</arg_key><arg_value>{"x": 1', '{"city": "Oslo", "place": {"x": 1'),
    ],
)
def test_what_arrived_of_a_key_or_value_is_told(rest: str, arguments: str) -> None:
    assert planned("glm_4_7").parse(GLM + rest).tool_calls[0].arguments == arguments


def test_brackets_too_many_are_dropped_and_other_text_is_kept() -> None:
    begin = '<tool_call>f<arg_key>place</arg_key><arg_value>{"x": 1}'
    plan = planned("glm_4_7")
    assert plan.parse(begin + "}</arg_value></tool_call>").tool_calls[0].arguments == '{"place": {"x": 1}}'
    garbled = plan.parse(begin + "</arg!</tool_call><tool_call>g</tool_call>")
    assert [call.name for call in garbled.tool_calls] == ["f", "g"]
    assert garbled.content == "</arg!"


def test_an_id_is_one_word_and_is_of_the_form() -> None:
    plan = planned("kimi_k2")

    def call(id_: str) -> toolgram.Message:
        return toolgram.Message(tool_calls=(toolgram.ToolCall("g", "{}", id_),))

    assert [plan.writable(call(f"functions.g:{n}")) for n in ("0", "9", "10", "999", "1000", "abcdefghi", "")] == [
        *[True] * 4,
        *[False] * 3,
    ]
    assert not plan.writable(call("functions.f:0"))
    assert not planned("mistral_small").writable(call("short"))
    section = "<|tool_calls_section_begin|><|tool_call_begin|>functions.g:0"
    broken = plan.parse(section + '<|tool_call_arg!|>{"a": 1}<|tool_call_end|><|tool_calls_section_end|>')
    assert '{"a": 1}' in (broken.content or "")


@pytest.mark.parametrize("style", ["glm_4_7", "qwen_xml", "deepseek_v3_2", "kimi_k3", "minimax_m3"])
def test_patterns_and_lengths_hold_between_raw_tags(style: str) -> None:
    plan = planned(style)
    assert {relaxation.keyword for relaxation in plan.relaxations} <= {"type"}
    said = toolgram.ToolCall("f", '{"code": "ABC", "short": "xy"}', "0" if style == "kimi_k3" else None)
    text = plan.write(toolgram.Message(tool_calls=(said,)))
    assert text is not None
    assert plan.constraint is not None
    grammar = plan.constraint.grammar
    assert grammar.accepts(text)
    assert not grammar.accepts(text.replace("ABC", "ABc"))
    assert not grammar.accepts(text.replace("xy", "xyz"))
