"""The lazy form: what comes before a call is free, and from its trigger on the grammar is that of the whole."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepts
from made_up import MADE_UP
from oracles import lark_accepts, structural_tag_accepts
from situations import ANSWER, CHATML, WEATHER, tool
from toolgram import GrammarError
from toolgram.grammar.constraint import Constraint
from toolgram.styles.native import NATIVE

# A call begins as an answer does, in a header or with a recipient, or by its first character.
WITHOUT = {
    *("harmony", "functionary_v3", "functionary_v2", "thoughtful_steps"),
    *("llama_3", "llama_4", "pythonic", "xlam", "command_r", "glm_4"),
}
STYLES = [style.name for style in NATIVE if style.name not in WITHOUT] + ["long"]


def planned(template: toolgram.ChatTemplate = CHATML, style: str | None = None, **more: Any) -> toolgram.Plan:
    request = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool("look", WEATHER), tool("get", None)]}
    return toolgram.plan(request | more, template, style)


@cache
def constraint(style: str) -> Constraint:
    found = planned(style=style).constraint
    assert found is not None
    return found


@pytest.mark.parametrize("style", STYLES)
def test_from_the_trigger_on_it_is_the_grammar_of_the_whole(style: str) -> None:
    whole, lazy = constraint(style), constraint(style).lazy()
    assert lazy.trigger
    tag, lark, gbnf = lazy.structural_tag(), lazy.grammar.to("lark"), lazy.grammar.to("gbnf")
    for seed in range(8):
        text = lazy.grammar.sample(seed)
        assert text.startswith(lazy.trigger)
        assert any(whole.grammar.accepts(space + text) for space in ("", "\n", "\n\n", " "))
        assert lark_accepts(lark, text)
        assert gbnf_accepts(gbnf, text)
        assert structural_tag_accepts(tag, "Let me see. " + text)
        assert structural_tag_accepts(tag, text)
        assert not structural_tag_accepts(tag, text.replace("look", "loot").replace("get", "git"))
    assert structural_tag_accepts(tag, "It will rain.")


@pytest.mark.parametrize("style", STYLES)
def test_a_sentence_with_a_call_goes_on_as_the_lazy_form_says(style: str) -> None:
    whole, lazy = constraint(style), constraint(style).lazy()
    assert lazy.trigger
    called = [text for text in map(whole.grammar.sample, range(30)) if lazy.trigger in text and "<think>" not in text]
    for text in called:
        assert lazy.grammar.accepts(text[text.index(lazy.trigger) :]), text


def test_the_lazy_form_binds_tokens() -> None:
    bound = constraint("hermes").lazy().bind({"<tool_call>": 7, "</tool_call>": 8})
    assert bound.trigger == "<tool_call>"
    assert bound.grammar.to("gbnf").startswith("root ::= <[7]> ")


def test_reasoning_that_the_prompt_opens_is_free_too() -> None:
    template = toolgram.ChatTemplate(CHATML.source + "{% if add_generation_prompt %}<think>\n{% endif %}")
    plan = planned(template, "hermes")
    assert plan.constraint is not None
    lazy = plan.constraint.lazy()
    assert lazy.grammar.accepts('<tool_call>\n{"name": "get", "arguments": {}}\n</tool_call>')
    assert not lazy.grammar.accepts("<tool_call> or not </think>")


@pytest.mark.parametrize("style", sorted(WITHOUT))
def test_a_style_whose_calls_begin_as_answers_do_has_none(style: str) -> None:
    with pytest.raises(GrammarError, match="no mark of this style tells that a call begins"):
        constraint(style).lazy()


def test_calls_that_each_begin_with_the_name_of_their_tool_have_none_where_there_are_several() -> None:
    template = MADE_UP["names and keys as tags"].template
    one, several = planned(template, tools=[tool("get", None)]).constraint, planned(template).constraint
    assert one is not None
    assert several is not None
    assert one.lazy().trigger == "<get>"
    with pytest.raises(GrammarError, match="each tool has a mark of its own"):
        several.lazy()


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "required"},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}}},
    ],
)
def test_what_must_be_constrained_from_the_start_has_none(more: dict[str, Any]) -> None:
    plan = planned(style="hermes", **more)
    assert plan.constraint is not None
    with pytest.raises(GrammarError, match="neither required nor beside a response schema"):
        plan.constraint.lazy()
