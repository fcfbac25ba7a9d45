"""gpt-oss: messages to the user among its thoughts, in any order, where nothing else is asked of a turn."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram.styles.registry import all_styles
from toolgram.wire.asides import with_asides

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("get_weather", WEATHER)]}
THOUGHT, WORDS, ANSWER = "thought", "words", "answer"
MESSAGES = {
    THOUGHT: "<|channel|>analysis<|message|>Hm.",
    WORDS: "<|channel|>commentary<|message|>I look. ",
    ANSWER: "<|channel|>final<|message|>Rain.",
}
CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
LEAD, END = "<|start|>assistant", "<|end|>"
ORDERS = [order for length in (1, 2, 3) for order in product(MESSAGES, repeat=length)]


def plan(**more: Any) -> toolgram.Plan:
    return toolgram.plan({**BODY, **more}, CHATML, style="harmony")


def grammar_of(**more: Any) -> toolgram.Grammar:
    made = plan(**more)
    assert made.constraint is not None
    return made.constraint.grammar


def turn(*messages: str) -> str:
    return f"{END}{LEAD}".join((LEAD + messages[0], *messages[1:]))


def texts(order: tuple[str, ...]) -> tuple[str, str, str]:
    """A turn, the same with the end of its last message, and the same with a call behind it."""
    messages = [MESSAGES[each] for each in order]
    return turn(*messages), turn(*messages) + END, turn(*messages, CALL)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_messages_in_any_order_are_read(order: tuple[str, ...]) -> None:
    said = "".join(MESSAGES[each].rpartition(">")[2] for each in order if each != THOUGHT)
    thought = "Hm." * order.count(THOUGHT)
    for text in texts(order):
        message = plan().parse(text)
        assert (message.content or "", message.reasoning or "") == (said, thought)
        assert bool(message.tool_calls) == (CALL in text)
        made = plan()
        assert joined(fed(made.reader(), text)) == joined(fed(made.reader(), text, [1] * len(text)))


def test_messages_in_any_order_are_admitted_by_all_dialects() -> None:
    grammar = grammar_of()
    admitted = {text for order in ORDERS for text in texts(order)}
    assert all(grammar.accepts(text) for text in admitted)
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    assert all(lark_accepts(lark, text) and ebnf_accepts(ebnf, text) for text in admitted)
    assert gbnf_accepted(grammar.to("gbnf"), admitted) == admitted


def test_where_nothing_may_be_called_words_may_follow_words() -> None:
    grammar = grammar_of(tool_choice="none")
    assert all(grammar.accepts(text) for order in ORDERS for text in texts(order)[:2])
    assert not grammar.accepts(texts(("thought",))[2])


def test_where_a_call_must_be_made_only_thoughts_come_before_it() -> None:
    grammar = grammar_of(tool_choice="required")
    assert grammar.accepts(turn(MESSAGES[THOUGHT], CALL) + END)
    assert not grammar.accepts(turn(MESSAGES[WORDS], CALL))
    assert not grammar.accepts(turn(MESSAGES[THOUGHT]))


def test_an_answer_in_a_schema_is_the_only_one() -> None:
    schema = {"type": "object", "properties": {"rain": {"type": "boolean"}}, "required": ["rain"]}
    grammar = grammar_of(response_format={"type": "json_schema", "json_schema": {"name": "rain", "schema": schema}})
    answer = '<|channel|>final<|message|>{"rain": true}'
    assert grammar.accepts(turn(MESSAGES[THOUGHT], answer) + END)
    assert not grammar.accepts(turn(MESSAGES[WORDS], answer))
    assert not grammar.accepts(turn(answer, answer))
    assert not grammar.accepts(turn(MESSAGES[THOUGHT]))


def test_the_style_whose_models_do_so() -> None:
    assert {style.name for style in all_styles() if with_asides(style.wire) != style.wire} == {"harmony"}


def test_what_holds_a_mark_cannot_be_written() -> None:
    assert plan().write(toolgram.Message(content="Say <|end|>.")) is None
    assert plan().write(toolgram.Message(content="Say <|end|>.", reasoning="Hm.")) is None
    assert plan().write(toolgram.Message(content="Rain.", reasoning="Say <|end|>.")) is None
