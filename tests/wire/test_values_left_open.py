"""The last value of a call, which models forget to close: they must close it where a grammar holds them, else a reader
ends it where the call ends."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, fed, joined, tool

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "maxLength": 30},
        "named": {"type": "string", "minLength": 1},
        "times": {"type": "integer"},
        "items": {"type": "array", "items": {"type": "string"}},
    },
}
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Write."}], "tools": [tool("write", SCHEMA)]}
LEAD, CLOSED = "<tool_call>\n<function=write>\n", "\n</parameter>\n"
ENDS = ("</function>\n</tool_call>", "</function></tool_call>")
VALUES = {
    "text": ("Oslo", '{"text": "Oslo"}'),
    "short": ("a < b\n", '{"short": "a < b\\n"}'),
    "named": ("<function>x</function>", '{"named": "<function>x</function>"}'),
    "times": ("5", '{"times": 5}'),
    "items": ('["\\n</function>\\n</tool_call>", "b"]', '{"items": ["\\n</function>\\n</tool_call>", "b"]}'),
}


def plan(**more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style="qwen_xml")


def written(key: str, end: str = CLOSED) -> str:
    return f"<parameter={key}>\n{VALUES[key][0]}{end}"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("key", VALUES)
def test_a_value_that_nobody_closed_ends_where_the_call_does(key: str, end: str) -> None:
    made = plan()
    text = LEAD + written(key, "\n") + end
    (call,) = made.parse(text).tool_calls
    assert (call.arguments, call.incomplete) == (VALUES[key][1], False)
    whole = joined(fed(made.reader(), text))
    assert all(joined(fed(made.reader(), text, [size] * len(text))) == whole for size in (1, 2, 3, 7, 20))
    twice = made.parse(f"{text}\n{text}").tool_calls
    assert [each.arguments for each in twice] == [VALUES[key][1]] * 2
    both = made.parse(LEAD + written("text") + written(key, "\n") + end).tool_calls[0].arguments
    assert key == "text" or both == '{"text": "Oslo", ' + VALUES[key][1].removeprefix("{")


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_models_that_are_held_close_it(choice: str) -> None:
    made = plan(tool_choice=choice)
    assert made.constraint is not None
    grammar = made.constraint.grammar
    open_, whole = LEAD + written("text", "\n") + ENDS[0], LEAD + written("text") + ENDS[0]
    inline = LEAD + "<parameter=text>\nSee <function>x</function>, </functions>.\n</parameter>\n" + ENDS[0]
    within = LEAD + "<parameter=text>\nOslo\n</function>\n</parameter>\n" + ENDS[0]
    texts = {open_: False, whole: True, inline: True, within: False}
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for text, good in texts.items():
        assert (grammar.accepts(text), lark_accepts(lark, text), ebnf_accepts(ebnf, text)) == (good, good, good), text
    assert gbnf_accepted(grammar.to("gbnf"), texts) == {text for text, good in texts.items() if good}


def test_what_would_be_read_as_the_end_is_not_written() -> None:
    made = plan()
    for text, writable in {"a </function> b": True, "\n</function>": False, "</function>\n</tool_call>": True}.items():
        message = toolgram.Message(tool_calls=(toolgram.ToolCall("write", f'{{"text": {_json(text)}}}'),))
        assert made.writable(message) == writable, text


@pytest.mark.parametrize("text", ["a\n</function>\nb", "a\n</function>\n\n</tool_call>", "a </function>\n</tool_call>"])
def test_tags_that_end_no_call_are_text(text: str) -> None:
    (call,) = plan().parse(f"{LEAD}<parameter=text>\n{text}{CLOSED}{ENDS[0]}").tool_calls
    assert call.arguments == f'{{"text": {_json(text)}}}'


def _json(text: str) -> str:
    return '"' + text.replace("\n", "\\n") + '"'
