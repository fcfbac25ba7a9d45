"""Sets of tools that are like others: their grammars are the same as if nothing had been known of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import toolgram
from situations import CHATML, tool
from toolgram import InvalidRequest, UnsupportedSchema

PLACE = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
DEEP = {"type": "object", "properties": {"place": PLACE, "note": {"type": "string", "maxLength": 9}}}
TOOLS = [
    tool("look", DEEP),
    tool("look_again_at_the_same_place_in_the_world", {"type": "object", "properties": {"where": DEEP}}),
    tool("go", {"type": "object", "properties": {"way": {"$ref": "#/$defs/way"}}, "$defs": {"way": PLACE}}),
    tool("go_elsewhere", {"type": "object", "properties": {"way": {"$ref": "#/$defs/way"}}, "$defs": {"way": DEEP}}),
]
STYLES = ("hermes", "qwen_xml", "minimax_m3", "gemma_4", "pythonic", "long")


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] # pytest finds it
    _forget()
    yield
    _forget()


def _forget() -> None:
    for name in ("planning.tool_arguments", "planning.turn", "planning.plan"):
        for value in vars(import_module(f"toolgram.{name}")).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def _planned(tools: list[dict[str, Any]], style: str) -> toolgram.Plan:
    return toolgram.plan({"messages": [{"role": "user", "content": "Rain?"}], "tools": tools}, CHATML, style)


def _texts(tools: list[dict[str, Any]], style: str) -> list[object]:
    plan = _planned(tools, style)
    assert plan.constraint is not None
    return [plan.relaxations, *(plan.constraint.grammar.to(dialect) for dialect in ("gbnf", "lark", "ebnf"))]


@pytest.mark.parametrize("style", STYLES)
def test_what_is_known_of_tools_changes_no_grammar(style: str) -> None:
    sets = [TOOLS, TOOLS[:2], TOOLS[::-1], TOOLS[1:], [*TOOLS[2:], TOOLS[0]]]
    alone: list[list[object]] = []
    for tools in sets:
        _forget()
        alone.append(_texts(tools, style))
    assert [_texts(tools, style) for tools in sets] == alone


def test_equal_objects_of_two_tools_are_one_rule() -> None:
    plan = _planned(TOOLS[:2], "hermes")
    assert plan.constraint is not None
    assert plan.constraint.grammar.to("lark").count('"\\"city\\": "') == 1


def test_what_is_relaxed_or_wrong_is_said_where_it_stands_in_this_request() -> None:
    odd = tool("odd", {"type": "object", "properties": {"x": {"type": "array", "uniqueItems": True}}})
    for tools in ([odd, *TOOLS], [*TOOLS, odd]):
        (said,) = [each for each in _planned(tools, "hermes").relaxations if each.keyword == "uniqueItems"]
        assert said.pointer.startswith(f"/tools/{tools.index(odd)}/function/parameters/")
    exact = {**odd, "function": {**odd["function"], "strict": True}}
    for tools in ([exact, *TOOLS], [*TOOLS, exact]):
        with pytest.raises(UnsupportedSchema) as refused:
            _planned(tools, "hermes")
        assert refused.value.pointer.startswith(f"/tools/{tools.index(exact)}/")


def test_a_name_that_is_a_recipient_of_its_own_is_refused() -> None:
    for tools in ([tool("all", None)], [TOOLS[0], tool("all", None), TOOLS[1]]):
        with pytest.raises(InvalidRequest, match="cannot write a tool named"):
            _planned(tools, "functionary_v2")


@pytest.mark.parametrize("name", ["a>b", "x y", "x  y"])
def test_a_name_that_is_no_word_is_read_where_it_is_known(name: str) -> None:
    for tools in ([tool(name, None)], [TOOLS[0], tool(name, None), tool(name[:1], None)]):
        plan = _planned(tools, "pythonic")
        assert plan.constraint is not None
        text = f"[{name}(), {name}()]"
        assert plan.constraint.grammar.accepts(text)
        assert [call.name for call in plan.parse(text).tool_calls] == [name, name]
        assert plan.parse(f"[{name[:2]}é y()]").tool_calls == ()
