"""The form of an answer by the names that other servers have for it, and grammars that a request brings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepts
from oracles import ebnf_accepts, lark_accepts
from situations import CHATML, WEATHER, tool
from toolgram import InvalidRequest, Message
from toolgram.api.chat.request import read_chat_request
from toolgram.grammar.dialects.gbnf_reader import read_gbnf
from toolgram.grammar.grammar import Grammar
from toolgram.styles.registry import find_style, style_names

ASKED = [{"role": "user", "content": "Which?"}]
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
LIST = 'root ::= item ("\\n" item)*\nitem ::= "- " [a-z]+ "."?\n'
"""A list of words."""
OPENED = "<|im_start|>{{ 'user' }}\n{{ messages[-1].content }}<|im_end|>\n<|im_start|>assistant\n<think>\n"
"""A template that begins each answer with reasoning."""


def planned(style: str = "hermes", **fields: Any) -> toolgram.Plan:
    return toolgram.plan({"messages": ASKED, **fields}, CHATML, style)


def gbnf(plan: toolgram.Plan) -> str:
    assert plan.constraint is not None
    return plan.constraint.grammar.to("gbnf")


@pytest.mark.parametrize(
    ("given", "format_"),
    [
        ({"structured_outputs": {"json": SCHEMA}}, {"type": "json_schema", "schema": SCHEMA}),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, {"type": "json_schema", "schema": SCHEMA}),
        ({"structured_outputs": {"json_object": True, "regex": None}}, {"type": "json_object"}),
        ({"structured_outputs": {"regex": "a+", "json_object": False}}, {"type": "regex", "regex": "a+"}),
        ({"structured_outputs": {"choice": ["a", "b"]}}, {"type": "choice", "choice": ["a", "b"]}),
        ({"structured_outputs": {"grammar": LIST}}, {"type": "grammar", "grammar": LIST}),
        ({"guided_json": SCHEMA}, {"type": "json_schema", "schema": SCHEMA}),
        ({"guided_json": json.dumps(SCHEMA)}, {"type": "json_schema", "schema": SCHEMA}),
        ({"guided_regex": "a+"}, {"type": "regex", "regex": "a+"}),
        ({"guided_choice": ["a", "b"]}, {"type": "choice", "choice": ["a", "b"]}),
        ({"guided_grammar": LIST}, {"type": "grammar", "grammar": LIST}),
        ({"json_schema": SCHEMA}, {"type": "json_schema", "schema": SCHEMA}),
        ({"json_schema": SCHEMA, "response_format": {"type": "text"}}, {"type": "json_schema", "schema": SCHEMA}),
        ({"ebnf": LIST}, {"type": "grammar", "grammar": LIST}),
        ({"grammar": LIST}, {"type": "grammar", "grammar": LIST}),
        ({"regex": "a+"}, {"type": "regex", "regex": "a+"}),
        ({"choice": ["a", "b"]}, {"type": "choice", "choice": ["a", "b"]}),
        # Hugging Face's clients: https://github.com/huggingface/huggingface.js/issues/932
        ({"response_format": {"type": "json", "value": SCHEMA}}, {"type": "json_schema", "schema": SCHEMA}),
        ({"response_format": {"type": "json_object", "value": SCHEMA}}, {"type": "json_schema", "schema": SCHEMA}),
        ({"response_format": {"type": "json", "value": json.dumps(SCHEMA)}}, {"type": "json_schema", "schema": SCHEMA}),
        (
            {"response_format": {"type": "json_schema", "value": {"name": "id", "schema": SCHEMA}}},
            {"type": "json_schema", "schema": SCHEMA},
        ),
        ({"response_format": {"type": "regex", "value": "a+"}}, {"type": "regex", "regex": "a+"}),
    ],
    ids=lambda each: "-".join(each) if "type" not in each else each["type"],
)
def test_the_names_of_other_servers_mean_the_same(given: dict[str, Any], format_: dict[str, Any]) -> None:
    plan, usual = planned(**given), planned(response_format=format_)
    assert gbnf(plan) == gbnf(usual)
    assert plan.prompt == usual.prompt
    assert read_chat_request({"messages": ASKED, **given}).generation.ignored == ()


@pytest.mark.parametrize(
    ("given", "place", "reason"),
    [
        ({"guided_json": SCHEMA, "response_format": {"type": "json_object"}}, "/guided_json", "response_format"),
        (
            {"structured_outputs": {"json": SCHEMA, "regex": "a"}},
            "/structured_outputs/json",
            "structured_outputs/regex",
        ),
        ({"grammar": LIST, "choice": ["a"]}, "/grammar", "choice"),
        ({"guided_json": "{"}, "/guided_json", "JSON text"),
        ({"guided_json": 1}, "/guided_json", "a schema is an object"),
        ({"guided_json": False}, "/guided_json", "no answer can match"),
        ({"structured_outputs": {"json": False}}, "/structured_outputs/json", "no answer can match"),
        ({"guided_regex": "("}, "/guided_regex", "not closed at offset 0"),
        ({"response_format": {"type": "json"}}, "/response_format", "must be"),
        ({"response_format": {"type": "regex"}}, "/response_format", "must be"),
        ({"response_format": {"type": "json", "value": 1}}, "/response_format/value", "a schema is an object"),
        ({"structured_outputs": {"regex": "("}}, "/structured_outputs/regex", "not closed at offset 0"),
        ({"structured_outputs": {"structural_tag": "{}"}}, "/structured_outputs/structural_tag", "give tools"),
        ({"ebnf": "root ::= other"}, "/ebnf", "is not GBNF"),
        ({"response_format": {"type": "grammar", "grammar": "root"}}, "/response_format/grammar", "is not GBNF"),
        ({"grammar": LIST, "tools": [tool("look", WEATHER)]}, "/grammar", "does not go with tools"),
        ({"grammar": 'root ::= "a" "<thi" "nk>"'}, "/grammar", "'<think>', which is a mark of the model's format"),
        ({"grammar": 'root ::= [a-z] (" b<|im_end|>" root)?'}, "/grammar", "a mark of the model's format"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(given: dict[str, Any], place: str, reason: str) -> None:
    with pytest.raises((InvalidRequest, toolgram.InvalidSchema), match=reason) as raised:
        planned(**given)
    assert raised.value.pointer == place


def test_how_vllm_keeps_to_a_form_is_no_business_of_ours() -> None:
    given = {"structured_outputs": {"choice": ["a"], "disable_fallback": True}}
    assert read_chat_request({"messages": ASKED, **given}).generation.ignored == (
        "structured_outputs.disable_fallback",
    )


def test_rules_may_be_named_as_xgrammar_has_them() -> None:
    sql = 'root ::= a_query\n\n    a_query ::= "SELECT " Column (", " Column)*\n    Column ::= "col_1" | "col-2"'
    grammar = Grammar(read_gbnf(gbnf(planned(guided_grammar=sql))))
    for text, expected in (("SELECT col_1", True), ("SELECT col_1, col-2", True), ("SELECT ", False)):
        assert grammar.accepts(text) == expected
        assert gbnf_accepts(grammar.to("gbnf"), text) == expected
        assert lark_accepts(grammar.to("lark"), text) == expected


def test_a_grammar_is_that_of_the_answer() -> None:
    grammar = Grammar(read_gbnf(gbnf(planned(grammar=LIST))))
    for text in ("- a", "- a.\n- bc", "- a\n", "a", "", "- a.\n- bc..", "<think>"):
        expected = all(line.rstrip(".").removeprefix("- ").isalpha() and line[:2] == "- " for line in text.split("\n"))
        expected = expected and ".." not in text
        assert grammar.accepts(text) == expected, text
        assert gbnf_accepts(grammar.to("gbnf"), text) == expected
        assert lark_accepts(grammar.to("lark"), text) == expected
        assert ebnf_accepts(grammar.to("ebnf"), text) == expected


@pytest.mark.parametrize("style", style_names())
def test_in_every_style_the_answer_keeps_to_it(style: str) -> None:
    plan, own = planned(style, grammar=LIST), Grammar(read_gbnf(LIST))
    assert plan.constraint is not None
    for seed in range(20):
        text = plan.constraint.grammar.sample(seed)
        message = plan.parse(text)
        assert own.accepts(message.content or "")
        assert message.tool_calls == ()
        reader = plan.reader()
        events = [event for at in range(0, len(text), 3) for event in reader.feed(text[at : at + 3])]
        assert Message.from_events([*events, *reader.finish()]) == message


def test_it_does_not_stand_in_json() -> None:
    steps = find_style("thoughtful_steps")
    assert steps is not None
    always = replace(steps, without_tools=steps.wire)
    with pytest.raises(InvalidRequest, match="its answers in JSON") as raised:
        toolgram.plan({"messages": ASKED, "grammar": LIST}, CHATML, always)
    assert raised.value.pointer == "/grammar"


def test_reasoning_that_the_prompt_began_is_ended_before_it() -> None:
    template = toolgram.ChatTemplate(OPENED, "", "<|im_end|>")
    plan = toolgram.plan({"messages": ASKED, "grammar": LIST}, template, "hermes")
    assert plan.constraint is not None
    assert not plan.constraint.grammar.accepts("- a")
    assert plan.constraint.grammar.accepts("Hm.\n</think>\n\n- a")
    assert plan.parse("Hm.\n</think>\n\n- a") == Message("- a", reasoning="Hm.")
    assert plan.after_reasoning == len("</think>\n\n- a")


@pytest.mark.parametrize(
    "given", [{"choice": ["yes", "no"]}, {"grammar": 'root ::= "no" | "yes"'}, {"regex": "no|yes"}]
)
def test_room_is_kept_for_an_answer_that_is_text(given: dict[str, Any]) -> None:
    template = toolgram.ChatTemplate(OPENED, "", "<|im_end|>")
    assert toolgram.plan({"messages": ASKED, **given}, template, "hermes").after_reasoning == len("</think>\n\nno")
