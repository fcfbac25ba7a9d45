"""Models say what they are about to do, and then call as if they had said nothing, on a line of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram import Message

TOOLS = [tool("get_weather", WEATHER), tool("wait", {"type": "object", "properties": {}})]
FENCE = "```json\n"
ON_LINES = '```json\n{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Oslo"\n  }\n}\n```'
CALLS = {
    "llama_3": '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
    "llama_4": '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
    "pythonic": '[get_weather(city="Oslo")]',
    "xlam": '[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    "qwen_coder": '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
}
EACH = [*CALLS.items(), ("qwen_coder", ON_LINES), ("qwen_coder", ON_LINES.replace("  ", "    "))]
WORDS = (
    "I will look.",
    '{"a": 1}',
    "Not [wait]:\n[0]\nnor",
    '{"name": "Oslo"}\n{"name": "Bern"}',
    "```json\n{}\n```\n",
)


def plan(style: str, **more: Any) -> toolgram.Plan:
    body = {"messages": [{"role": "user", "content": "?"}], "tools": TOOLS, **more}
    return toolgram.plan(body, CHATML, style=style)


def grammar_of(made: toolgram.Plan) -> toolgram.Grammar:
    assert made.constraint is not None
    return made.constraint.grammar


@pytest.mark.parametrize(("style", "call"), EACH)
def test_a_call_may_follow_words_on_a_line_of_its_own(style: str, call: str) -> None:
    made = plan(style)
    grammar = grammar_of(made)
    texts = {f"{words}\n{call}" for words in WORDS}
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    for words in WORDS:
        text = f"{words}\n{call}"
        assert grammar.accepts(text), text
        assert lark_accepts(lark, text), text
        assert ebnf_accepts(ebnf, text), text
        message = made.parse(text)
        assert message.content == words.removesuffix("\n")  # no empty line
        assert [(each.name, json.loads(each.arguments)) for each in message.tool_calls] == [
            ("get_weather", {"city": "Oslo"})
        ]
        assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))


@pytest.mark.parametrize("call", [CALLS["qwen_coder"], ON_LINES])
def test_several_may_stand_in_one_fence(call: str) -> None:
    text = f"So:\n{call.removesuffix('```')}{call.removeprefix(FENCE)}"
    message = plan("qwen_coder").parse(text)
    assert (message.content, len(message.tool_calls)) == ("So:", 2)
    grammar = grammar_of(plan("qwen_coder"))
    assert grammar.accepts(text)
    assert lark_accepts(grammar.to("lark"), text)
    assert not grammar_of(plan("qwen_coder", parallel_tool_calls=False)).accepts(text)


@pytest.mark.parametrize(("style", "call"), EACH)
def test_what_only_begins_as_one_is_text(style: str, call: str) -> None:
    made = plan(style)
    for text in (
        f"Say {call}",  # not on a line of its own
        "See\n" + call.replace("get_weather", "storms"),
        "See\n" + call[: call.index("get_weather") + 2],
        "See\n" + call[: call.index("get_weather")] + "Oslo",
    ):
        assert grammar_of(made).accepts(text), text
        assert made.parse(text) == Message(text)
        assert joined(fed(made.reader(), text, [1] * len(text))) == joined(fed(made.reader(), text))


@pytest.mark.parametrize(("style", "call"), EACH)
def test_nothing_follows_such_calls(style: str, call: str) -> None:
    grammar = grammar_of(plan(style))
    assert grammar.accepts(f"I will look.\n{call}\n")
    assert not grammar.accepts(f"I will look.\n{call}\nI have looked.")


@pytest.mark.parametrize(("style", "call"), EACH)
def test_words_are_no_part_of_a_turn_that_must_call(style: str, call: str) -> None:
    assert not grammar_of(plan(style, tool_choice="required")).accepts(f"I will look.\n{call}")


@pytest.mark.parametrize(("style", "call"), EACH)
def test_where_none_may_be_called_it_is_text(style: str, call: str) -> None:
    made = plan(style, tool_choice="none")
    assert made.parse(f"I will look.\n{call}") == Message(f"I will look.\n{call}")


@pytest.mark.parametrize(("style", "call"), EACH)
def test_such_text_cannot_be_written_as_an_answer(style: str, call: str) -> None:
    assert plan(style).write(Message(f"I will look.\n{call}")) is None


@pytest.mark.parametrize("style", list(CALLS))
def test_one_call_alone_may_follow_words_where_no_more_may_be_made(style: str) -> None:
    grammar = grammar_of(plan(style, parallel_tool_calls=False))
    call = CALLS[style]
    assert grammar.accepts(f"I will look.\n{call}")
    assert not any(grammar.accepts(f"I will look.\n{call}{between}{call}") for between in ("", "\n", "; ", ", "))
