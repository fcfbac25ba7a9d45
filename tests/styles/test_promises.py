"""A mark that ends each message, and that calls begin with: a model that ends its answer with it promises no call."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, fed, joined, tool
from toolgram.styles.choose import choose_style
from toolgram.styles.turn_edges import promise

# As GigaChat 3 has it, in words of its own: nobody has seen this one.
TEMPLATE = toolgram.ChatTemplate(
    "{% if tools %}tools<|who|>\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|over|>\n\n{% endif %}"
    "{% for message in messages %}{{ message.role }}<|who|>\n{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<|over|>\n\nuse<|who|>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}{% endfor %}'
    "<|over|>\n\n{% endfor %}{% if add_generation_prompt %}assistant<|who|>\n{% endif %}"
)
CALL = '<|over|>\n\nuse<|who|>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}'
ENDS = ("", "<|over|>", "<|over|>\n\n", "<|over|>\n\nuser", "<|over|>\n\nuser<|who|>\n")


def plan(choice: str) -> toolgram.Plan:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [tool("get_weather", WEATHER)],
        "tool_choice": choice,
    }
    return toolgram.plan(body, TEMPLATE)


def grammar_of(made: toolgram.Plan) -> toolgram.Grammar:
    assert made.constraint is not None
    return made.constraint.grammar


@pytest.mark.parametrize("end", ENDS)
def test_an_answer_may_end_as_the_template_ends_it(end: str) -> None:
    made = plan("auto")
    assert grammar_of(made).accepts(f"It rains.{end}")
    message = made.parse(f"It rains.{end}")
    assert (message.content, message.tool_calls) == ("It rains.", ())


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_call_may_end_so_too(choice: str, end: str) -> None:
    made = plan(choice)
    assert grammar_of(made).accepts(CALL + end)
    message = made.parse(CALL + end)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("get_weather", '{"city": "Oslo"}')]
    assert not message.content
    assert grammar_of(made).accepts("It rains." + end) == (choice == "auto")


def test_all_dialects_admit_that_and_streams_read_it() -> None:
    made = plan("auto")
    grammar = grammar_of(made)
    texts = {text + end for text in ("It rains.", CALL, f"I look.{CALL}") for end in ENDS}
    assert all(lark_accepts(grammar.to("lark"), text) and ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
    assert gbnf_accepted(grammar.to("gbnf"), texts) == texts
    for text in texts:
        whole, pieces = fed(made.reader(), text), fed(made.reader(), text, [1] * len(text))
        assert joined(whole) == joined(pieces)


def test_a_template_that_tells_the_two_apart_promises_nothing() -> None:
    style, _ = choose_style(TEMPLATE, None)
    assert promise(TEMPLATE, style) == ("<|over|>", "\n\nuser<|who|>\n")
    assert promise(CHATML, choose_style(CHATML, None)[0]) is None
