"""Sets of tools beyond all measure: what they take is in proportion to them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import toolgram
from situations import CHATML
from toolgram.caching import TOGETHER, size_of
from toolgram.grammar.dialects.lark import growth, parts, repair
from toolgram.grammar.grammar import Grammar


def tools(count: int, properties: int) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(properties)}}
    return [{"type": "function", "function": {"name": f"f{i}", "parameters": schema}} for i in range(count)]


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    calls, function = list[None](), getattr(module, name)

    def called(*given: Any) -> Any:
        calls.append(None)
        return function(*given)

    monkeypatch.setattr(module, name, called)
    return calls


@pytest.mark.parametrize("made", [lambda: tools(1100, 2), lambda: tools(1, 150)], ids=["tools", "properties"])
def test_many_lexemes_grow_in_one_pass(monkeypatch: pytest.MonkeyPatch, made: Callable[[], Any]) -> None:
    searches = counted(monkeypatch, growth, "reachable")
    looks = counted(monkeypatch, repair, "conflicts")
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": made()}, CHATML)
    assert plan.constraint is not None
    assert plan.constraint.grammar.to("lark")
    assert len(looks) == 1
    assert len(searches) == 1  # what a rule leads to is not looked for at each call of it


def grammar_of(offered: list[dict[str, Any]], style: str | None = None, **said: str) -> Grammar:
    messages = [{"role": "user", "content": "Hi."}]
    if said:
        messages += [{"role": "assistant", "content": "Hi.", **said}, *messages]
    plan = toolgram.plan({"messages": messages, "tools": offered}, CHATML, style=style)
    assert plan.constraint is not None
    return plan.constraint.grammar


@pytest.mark.parametrize(
    ("style", "properties", "ways", "of_all"),
    [(None, 7, 1, 1), ("llama_3", 2, 3, 2)],  # a Llama may write a call in two ways, and in one of them after words
    ids=["rules", "small calls in the root"],
)
def test_of_a_set_with_one_tool_more_that_tool_alone_is_written(
    monkeypatch: pytest.MonkeyPatch, style: str | None, properties: int, ways: int, of_all: int
) -> None:
    some = tools(30, properties)
    assert grammar_of(some[:-1], style).to("lark")
    lowered = counted(monkeypatch, import_module("toolgram.grammar.dialects.lark.lower"), "LoweredRule")
    looked_at = counted(monkeypatch, parts, "first_of_safe")
    more = grammar_of(some, style)
    assert more.to("lark")
    own = sum(name.startswith("f29") for name in more.rules)
    assert len(lowered) <= of_all + own  # the root, and the rest of text
    assert len(looked_at) == ways
    one_more = len(lowered)
    assert grammar_of(some[::-1], style).to("lark")
    assert len(lowered) == one_more + of_all
    assert len(looked_at) == ways


@pytest.mark.parametrize("style", ["deepseek_v3_1", "gemma_4", "glm_4_5", "glm_4_7", "kimi_k2", "qwen_xml"])
def test_calls_that_may_close_the_reasoning_are_looked_at_by_themselves(
    monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    whole = counted(monkeypatch, repair, "_at_once")
    assert grammar_of(tools(12, 3), style, reasoning_content="Well.").to("lark")
    assert not whole


def test_a_choice_of_all_calls_is_written_once() -> None:
    """A family of models that may call after words, and in the midst of its thoughts, begins calls in many places."""
    lark = grammar_of(tools(12, 3), "glm_4_7", reasoning_content="Well.").to("lark")
    assert sum("f0_call_rest | f1_call_rest" in line for line in lark.splitlines()) == 1


def test_what_is_remembered_of_tools_changes_no_grammar() -> None:
    some = tools(12, 4)
    rules = grammar_of(some).rules
    TOGETHER.forget()
    by_itself = Grammar(rules).to("lark")
    TOGETHER.forget()
    for others in (some[3:], [*some[:5], *tools(15, 9)[12:]]):
        assert grammar_of(others).to("lark") != by_itself
    assert Grammar(rules).to("lark") == by_itself


def test_what_is_kept_with_an_expression_does_not_grow_with_the_rules_that_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}

    def written(name: str) -> Grammar:
        grammar = grammar_of([{"type": "function", "function": {"name": name, "parameters": schema}}])
        assert grammar.to("lark")
        return grammar

    TOGETHER.forget()
    kept = [*written("f0").rules.values()]
    for count in range(3):
        written(f"g{count}")
    few = size_of(kept, 1 << 24)
    for count in range(3, 9):
        written(f"g{count}")
    assert size_of(kept, 1 << 24) == few
