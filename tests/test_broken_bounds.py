"""Strings that break a bound which the grammar enforced roughly are told, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from situations import CHATML, tool
from toolgram.api.notes import notes_of
from toolgram.chat import Reply, generate_sync
from toolgram.chat.bounds import BrokenBound
from toolgram.engines.replay import Replay

BOUNDED = {"type": "string", "maxLength": 40}
LONG = {"type": "string", "minLength": 8}


def replied(properties: dict[str, Any], *calls: dict[str, str], strict: bool = False) -> Reply:
    """What comes of calls whose arguments are written between tags."""
    parameters = {"type": "object", "properties": properties, "required": [], "additionalProperties": False}
    offered = tool("set", parameters)
    offered["function"]["strict"] = strict
    request = {"messages": [{"role": "user", "content": "Do it."}], "tools": [offered], "tool_choice": "required"}
    plan = toolgram.plan(request | {"parallel_tool_calls": True}, CHATML, "qwen_xml")
    text = "\n".join(
        "<tool_call>\n<function=set>\n"
        + "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in call.items())
        + "</function>\n</tool_call>"
        for call in calls
    )
    assert strict or (plan.constraint is not None and plan.constraint.grammar.accepts(text))
    return generate_sync(plan, Replay([text]))


@pytest.mark.parametrize(
    ("value", "keyword"), [("x" * 40, None), ("<" * 41, "maxLength"), ("</" * 20, None), ("x" * 39 + "</", "maxLength")]
)
def test_a_string_that_is_longer_than_it_may_be(value: str, keyword: str | None) -> None:
    reply = replied({"a": BOUNDED}, {"a": value})
    assert json.loads(reply.message.tool_calls[0].arguments) == {"a": value}
    assert reply.broken_bounds == ((BrokenBound(0, "/a", keyword),) if keyword else ())


def test_each_call_and_each_string_is_told() -> None:
    reply = replied({"a": BOUNDED, "b/c": LONG}, {"a": "x"}, {"a": "<" * 50, "b/c": "short"}, {"b/c": "long enough"})
    assert reply.broken_bounds == (BrokenBound(1, "/a", "maxLength"), BrokenBound(1, "/b~1c", "minLength"))
    told = [{"call": each.call, "pointer": each.pointer, "keyword": each.keyword} for each in reply.broken_bounds]
    assert notes_of(reply)["broken_bounds"] == told


def test_a_string_that_may_be_something_else_breaks_none() -> None:
    either = {"anyOf": [BOUNDED, {"type": "string", "pattern": "^<+$"}]}
    assert replied({"a": either, "b": BOUNDED}, {"a": "<" * 50}).broken_bounds == ()


def test_what_is_cut_off_is_left_alone() -> None:
    plan_text = "<tool_call>\n<function=set>\n<parameter=a>\n" + "<" * 50
    request = {
        "messages": [{"role": "user", "content": "Do it."}],
        "tools": [tool("set", {"type": "object", "properties": {"a": BOUNDED}})],
    }
    plan = toolgram.plan(request, CHATML, "qwen_xml")
    assert generate_sync(plan, Replay([plan_text])).broken_bounds == ()
