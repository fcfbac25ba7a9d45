"""Calls that are a bare list: a bracket is no promise of one, and answers may begin with it."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool

BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Rain in Oslo?"}],
    "tools": [tool("get_weather", WEATHER), tool("wait", {"type": "object", "properties": {}})],
}
CALLS = {
    "pythonic": '[get_weather(city="Oslo")]',
    "xlam": '[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
}
ANSWERS = (
    "[Oslo](https://oslo.no) is wet.",
    "[x] look outside\n[ ] take a coat",
    "[ ] take a coat",
    "[1, 2, 3]",
    '["rain", "sun"]',
    '[{"rain": true}]',
    "[[1]]",
    "[]",
    "[",
    "[rain()]",
    "[{}]",
)
# A grammar does not admit these, as it would not know soon enough; who writes them nevertheless has written no call.
NO_CALLS = {
    "pythonic": ("[get_weather](https://oslo.no)", "[get_weather_of(1)]", "[wait]", "[\nget_weather\n]", "[  ]"),
    "xlam": ('[{"name": "oslo"}]', '[{"name": "get_storm", "arguments": {}}]', "[\n1\n]", "[  ]"),
}
EACH = [(style, text) for style in CALLS for text in (*ANSWERS, *NO_CALLS[style])]


def plan(style: str, **more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style=style)


def grammar_of(made: toolgram.Plan) -> toolgram.Grammar:
    assert made.constraint is not None
    return made.constraint.grammar


@pytest.mark.parametrize(("style", "text"), EACH)
def test_a_list_of_no_calls_is_read_as_the_answer(style: str, text: str) -> None:
    made = plan(style)
    message = made.parse(text)
    assert (message.content, message.tool_calls) == (text, ())
    assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))


@pytest.mark.parametrize("style", list(CALLS))
def test_such_answers_are_admitted_where_their_beginning_tells(style: str) -> None:
    grammar = grammar_of(plan(style))
    texts = {CALLS[style], *ANSWERS}
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    assert all(grammar.accepts(text) for text in texts)
    assert all(lark_accepts(lark, text) and ebnf_accepts(ebnf, text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    assert not any(grammar.accepts(text) for text in NO_CALLS[style])
    assert not any(lark_accepts(lark, text) or ebnf_accepts(ebnf, text) for text in NO_CALLS[style])


@pytest.mark.parametrize("style", list(CALLS))
def test_a_turn_that_must_call_begins_as_before(style: str) -> None:
    grammar = grammar_of(plan(style, tool_choice="required"))
    assert grammar.accepts(CALLS[style])
    assert not any(grammar.accepts(text) for text in ANSWERS)
