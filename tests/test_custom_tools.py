"""Custom tools: announced as functions of one string, constrained by their format, and told as custom calls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, TOOLS
from test_lark_patterns import EDITS
from toolgram.conversation.events import CustomCallStart, ToolCallStart

PATTERN = r"[a-z]{2,4} \d|<[/a-z]*>"


def grammar(definition: str, syntax: str = "regex") -> dict[str, Any]:
    return {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}


def custom(name: str, format_: Any = None) -> dict[str, Any]:
    return {
        "type": "custom",
        "custom": {"name": name, "description": "Runs", **({"format": format_} if format_ else {})},
    }


RUN, SAY = custom("run", grammar(PATTERN)), custom("say")


def planned(style: str = "long", tools: Any = (RUN, SAY, TOOLS[0]), choice: Any = "auto", **more: Any) -> toolgram.Plan:
    body = {"messages": [{"role": "user", "content": "Do."}], "tools": list(tools), "tool_choice": choice, **more}
    return toolgram.plan(body, CHATML, style=style)


def named(name: str) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name}}


@pytest.mark.parametrize("style", toolgram.style_names())
def test_every_style_writes_inputs_of_the_pattern_alone(style: str) -> None:
    plan = planned(style, choice=named("run"))
    assert plan.constraint is not None
    assert not plan.relaxations
    texts = {plan.constraint.grammar.sample(seed) for seed in range(4)}
    for text in texts:
        for call in plan.parse(text).tool_calls:
            assert isinstance(call, toolgram.CustomToolCall)
            assert re.fullmatch(PATTERN, call.input)
        assert lark_accepts(plan.constraint.grammar.to("lark"), text)
        assert ebnf_accepts(plan.constraint.grammar.to("ebnf"), text)
    assert gbnf_accepted(plan.constraint.grammar.to("gbnf"), texts) == texts
    call_id = plan.parse(min(texts, key=len)).tool_calls[0].id
    calls = [toolgram.ToolCall("run", json.dumps({"input": said}), call_id) for said in ("ls 5", "ls 55")]
    writable = [plan.writable(toolgram.Message(tool_calls=(call,))) for call in calls]
    if call_id is None or "run" not in call_id:
        assert writable == [True, False]


def test_a_call_is_told_in_the_shape_of_the_api() -> None:
    plan = planned()
    text = '<tool_call>\n{"name": "say", "arguments": {"input": "a \\"b\\""}}\n</tool_call>'
    assert plan.parse(text).to_openai()["tool_calls"] == [
        {"type": "custom", "custom": {"name": "say", "input": 'a "b"'}}
    ]
    reader = plan.reader()
    starts = [event for event in reader.feed(text) if isinstance(event, ToolCallStart)]
    assert starts == [CustomCallStart(0, "say")]
    lenient = plan.parse('{"name": "say", "arguments": {"input": "x"}}', lenient=True)
    assert lenient.to_openai()["tool_calls"] == [{"type": "custom", "custom": {"name": "say", "input": "x"}}]
    function = plan.parse('<tool_call>\n{"name": "get", "arguments": {}}\n</tool_call>').to_openai()["tool_calls"]
    assert function == [{"type": "function", "function": {"name": "get", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"input": "ab', "ab"),
        ('{"input": "a\\', "a"),
        ('{"input": "a\\u00', "a"),
        ('{"input": "a\\\\', "a\\"),
        ('{"input": "', ""),
        ('{"code": 1}', '{"code": 1}'),
        ("[", "["),
    ],
)
def test_of_a_call_that_was_cut_off_the_input_so_far_is_told(arguments: str, said: str) -> None:
    assert toolgram.CustomToolCall("say", arguments).input == said


@pytest.mark.parametrize("style", toolgram.style_names())
def test_every_style_writes_inputs_of_a_lark_grammar_alone(style: str) -> None:
    plan = planned(style, [custom("edit", grammar(EDITS, "lark"))], named("edit"))
    assert plan.constraint is not None
    assert not plan.relaxations
    text = plan.constraint.grammar.sample(3)
    assert lark_accepts(plan.constraint.grammar.to("lark"), text)
    assert ebnf_accepts(plan.constraint.grammar.to("ebnf"), text)
    calls = plan.parse(text).tool_calls
    assert calls
    assert all(isinstance(call, toolgram.CustomToolCall) and lark_accepts(EDITS, call.input) for call in calls)


@pytest.mark.parametrize("style", ["long", "hermes", "qwen_xml", "functionary_v2"])
def test_calls_of_the_history_are_in_the_prompt(style: str) -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls 5"}}
    messages = [
        {"role": "user", "content": "Do."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]
    plan = planned(style, messages=messages)
    assert "ls 5" in plan.prompt
    assert "done" in plan.prompt


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"tools": [custom("run", grammar("start: a", "lark"))]}, "/tools/0/custom/format/grammar/definition"),
        ({"tools": [custom("run", grammar("start: /(/", "lark"))]}, "/tools/0/custom/format/grammar/definition"),
        ({"tools": [custom("run", grammar("start: /a/", "yacc"))]}, "/tools/0/custom/format"),
        ({"tools": [custom("run", grammar("("))]}, "/tools/0/custom/format/grammar/definition"),
        ({"tools": [custom("run", grammar(r"(a)\1"))]}, "/tools/0/custom/format/grammar/definition"),
        ({"tools": [custom("run", {"type": "yaml"})]}, "/tools/0/custom/format"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "/tools/0/custom/name"),
        ({"tools": [RUN, custom("run")]}, "/tools/1/custom/name"),
        ({"choice": named("nothing")}, "/tool_choice/custom/name"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(body: dict[str, Any], pointer: str) -> None:
    with pytest.raises(toolgram.InvalidRequest) as raised:
        planned(**body)
    assert raised.value.pointer == pointer


def test_the_place_in_a_pattern_is_that_in_the_pattern_as_it_was_given() -> None:
    with pytest.raises(toolgram.InvalidRequest, match="nothing to repeat at offset 3"):
        planned(tools=[custom("run", grammar("ab***"))])


@pytest.mark.parametrize(
    ("call", "pointer"),
    [
        ({"type": "custom"}, "/custom"),
        ({"type": "custom", "custom": {"name": "run"}}, "/custom/input"),
        ({"type": "custom", "custom": {"input": "x"}}, "/custom/name"),
    ],
)
def test_a_malformed_call_of_the_history_is_refused(call: Any, pointer: str) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    with pytest.raises(toolgram.InvalidRequest) as raised:
        planned(messages=messages)
    assert raised.value.pointer == "/messages/1/tool_calls/0" + pointer


def test_allowed_tools_may_be_custom() -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("say")]}}
    plan = planned(choice=choice)
    assert plan.constraint is not None
    assert {call.name for call in plan.parse(plan.constraint.grammar.sample(3)).tool_calls} == {"say"}
