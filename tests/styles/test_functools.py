"""The word functools opens calls where a bracket follows; alone it is a word of Python, and no promise of one."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool

BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "How do I remember results?"}],
    "tools": [tool("get_weather", WEATHER)],
}
ANSWERS = (
    "With `functools.lru_cache`.",
    "import functools\n\n@functools.cache\ndef f(): ...",
    "functools",
    "functools (",
)
CALL = 'functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'
STYLES = ("functools", "firefunction", "phi_4_mini")


@pytest.mark.parametrize("style", STYLES)
def test_answers_may_be_about_functools(style: str) -> None:
    made = toolgram.plan(BODY, CHATML, style=style)
    assert made.constraint is not None
    grammar = made.constraint.grammar
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for text in ANSWERS:
        assert made.parse(text).content == text
        assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))
        assert grammar.accepts(text)
        assert lark_accepts(lark, text)
        assert ebnf_accepts(ebnf, text)
    assert gbnf_accepted(grammar.to("gbnf"), set(ANSWERS)) == set(ANSWERS)


@pytest.mark.parametrize("style", STYLES)
def test_a_list_behind_the_word_is_read_as_calls(style: str) -> None:
    message = toolgram.plan(BODY, CHATML, style=style).parse(f"{ANSWERS[0]} {CALL}")
    assert (message.content or "").strip() == ANSWERS[0]
    assert [call.arguments for call in message.tool_calls] == ['{"city": "Oslo"}']
