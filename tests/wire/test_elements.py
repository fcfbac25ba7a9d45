"""Arguments as nested elements: what the grammar admits is valid when it is read, what is written reads back."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from oracles import ebnf_accepts, lark_accepts
from situations import callable_tools, fed
from toolgram import Message, ToolCall
from toolgram.conversation.events import Unreadable
from toolgram.planning.plan import same_message
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.styles.native.minimax_m3 import MINIMAX_M3
from toolgram.wire.reader import Reader

TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["value"],
}
EITHER = [
    {"enum": ["a", "b"]},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "object", "properties": {"x": {"type": "null"}}},
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "either": {"anyOf": EITHER},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {},
        "tree": {"$ref": "#/$defs/tree"},
        "number": {"type": ["integer", "null"], "minimum": 3},
        "object": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
        "a>b": {"type": "string"},
    },
    "$defs": {"tree": TREE},
    "required": ["tags"],
}
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
LEAD = "]<]minimax[>["


def spec_of(schema: dict[str, Any]) -> TurnSpec:
    return TurnSpec(MINIMAX_M3.wire, callable_tools({"f": schema}), "only", parallel=True, answer=None, stops=())


@pytest.fixture(scope="module")
def turn() -> CompiledTurn:
    return compile_turn(spec_of(SCHEMA))


def read(turn: CompiledTurn, text: str, cuts: list[int] | None = None) -> Message:
    events = fed(Reader(turn.program, expected=turn.expected), text, cuts)
    assert not [event for event in events if isinstance(event, Unreadable)], text
    return Message.from_events(events)


def called(arguments: Any) -> Message:
    return Message(tool_calls=(ToolCall("f", json.dumps(arguments)),))


def test_what_is_admitted_is_valid_and_the_dialects_agree(turn: CompiledTurn) -> None:
    lark, ebnf = turn.grammar.to("lark"), turn.grammar.to("ebnf")
    for seed in range(60):
        text = turn.grammar.sample(seed)
        message = read(turn, text)
        assert message == read(turn, text, [1] * len(text))
        for call in message.tool_calls:
            VALIDATOR.validate(json.loads(call.arguments))
        assert len(text) > 3000 or (lark_accepts(lark, text) and ebnf_accepts(ebnf, text))


@pytest.mark.parametrize(
    "arguments",
    [
        {"tags": []},
        {"tags": ["x", "<b>\n</tags>"], "either": "a", "pair": [1, "k"], "map": {"k": 1}, "any": {"k": [1]}},
        {"tags": [], "tree": {"value": 1, "children": [{"value": 2}, {"value": 3, "children": []}]}},
        {"tags": [], "number": None, "object": {}},
        {"tags": [], "either": {"x": None}},
        {"tags": [], "either": [1, 2]},
    ],
    ids=str,
)
def test_what_is_written_is_admitted_and_reads_back(turn: CompiledTurn, arguments: Any) -> None:
    text = turn.write(called(arguments))
    assert text is not None
    assert turn.grammar.accepts(text)
    assert same_message(read(turn, text), called(arguments))


def test_what_is_null_may_be_left_out_as_the_template_does_it() -> None:
    null = {"type": ["string", "null"]}
    inner = {"type": "object", "properties": {"a": null, "b": {"type": "integer"}}, "required": ["a", "b"]}
    properties = {"city": null, "days": {"type": "integer"}, "in": inner, "lone": {**inner, "required": ["a"]}}
    schema = {"type": "object", "properties": properties, "required": ["city", "days", "in", "lone"]}
    turn = compile_turn(spec_of(schema))

    def text(days: str) -> str:
        said = f"{days}{LEAD}<in>{LEAD}<b>1{LEAD}</b>{LEAD}</in>{LEAD}<lone>{LEAD}</lone>"
        return f'{LEAD}<tool_call>\n{LEAD}<invoke name="f">{said}{LEAD}</invoke>\n{LEAD}</tool_call>'

    whole = text(f"{LEAD}<days>2{LEAD}</days>")
    message = called({"city": None, "days": 2, "in": {"a": None, "b": 1}, "lone": {"a": None}})
    assert turn.grammar.accepts(whole)
    assert turn.write(message) == whole
    for cuts in (None, [1] * len(whole)):
        assert same_message(read(turn, whole, cuts), message)
    assert not turn.grammar.accepts(text(""))  # what may not be null is not left out
    # Where keys are counted, or objects of several types are expected, each key is there.
    for limits in ({"minProperties": 2}, {"anyOf": [{"required": ["city"]}, {"required": ["days"]}]}):
        counted = compile_turn(spec_of({"type": "object", "properties": {"city": null, "days": null}, **limits}))
        for seed in range(20):
            (*_, call) = read(counted, counted.grammar.sample(seed)).tool_calls
            assert json.loads(call.arguments)


def test_an_object_whose_keys_no_schema_names_may_have_nothing_in_it() -> None:
    turn = compile_turn(spec_of({"type": "object", "properties": {"map": {"type": "object"}}, "required": ["map"]}))
    text = turn.write(called({"map": {}}))
    assert text is not None
    assert f"{LEAD}<map>{LEAD}</map>" in text
    assert turn.grammar.accepts(text)
    assert turn.grammar.accepts(text.replace("<map>", "<map>{}"))
    assert same_message(read(turn, text), called({"map": {}}))


@pytest.mark.parametrize(
    "arguments",
    [
        {"tags": [LEAD]},  # a string cannot say the mark of the tags
        {"tags": [], "a>b": "text"},  # nor a tag this key
        {"tags": [], "any": "5"},  # this would read as a number
        {"tags": [], "either": []},  # and this as an empty string
    ],
    ids=str,
)
def test_what_would_read_otherwise_is_not_written(turn: CompiledTurn, arguments: Any) -> None:
    assert turn.write(called(arguments)) is None


def test_elements_of_the_template_are_read_where_no_schema_tells(turn: CompiledTurn) -> None:
    inside = f"{LEAD}<k>1{LEAD}</k>{LEAD}<l>{LEAD}<item>a{LEAD}</item>{LEAD}</l>"
    text = (
        f'{LEAD}<tool_call>\n{LEAD}<invoke name="f">{LEAD}<any>{inside}{LEAD}</any>{LEAD}</invoke>\n{LEAD}</tool_call>'
    )
    assert same_message(read(turn, text), called({"any": {"k": 1, "l": ["a"]}}))


def test_items_are_not_counted_between_tags() -> None:
    tags = {"type": "array", "items": {"enum": ["a", "b"]}, "contains": {"const": "a"}}
    schema = {"type": "object", "properties": {"tags": tags}, "required": ["tags"]}
    counted = compile_turn(spec_of(schema))
    found = [(each.pointer, each.keyword) for each in counted.grammar.relaxations]
    assert found == [("/tools/0/function/parameters/properties/tags", "items")]
    text = counted.write(called({"tags": ["b", "a"]}))
    assert text is not None
    assert counted.grammar.accepts(text)
    assert json.loads(read(counted, text).tool_calls[0].arguments) == {"tags": ["b", "a"]}
    assert counted.write(called({"tags": ["b"]})) is None


@pytest.mark.parametrize(
    ("pattern", "forbidden", "holds_json"), [("^[0-9a-f]{4}-$", "12ab-", True), ("^[0-9]+x?$", "12x", False)]
)
def test_json_is_not_said_beside_strings_that_hold_it(pattern: str, forbidden: str, *, holds_json: bool) -> None:
    schema = {"type": "object", "properties": {"id": {"not": {"type": "string", "pattern": pattern}}}}
    either = compile_turn(spec_of(schema))
    assert ("json-object ::=" in either.grammar.to("gbnf")) is not holds_json
    for value in ({"a": [1, "x"]}, [1], 12, None, "words"):
        text = either.write(called({"id": value}))
        assert text is not None
        assert either.grammar.accepts(text)
        assert same_message(read(either, text), called({"id": value}))
    text = either.write(called({"id": "words"}))
    assert text is not None
    assert not either.grammar.accepts(text.replace("words", forbidden))


def test_a_type_may_be_an_option_inside_of_itself() -> None:
    node: dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "string"}]}
    properties = {"left": node, "right": node, "size": {"type": "integer"}}
    tree = {"type": "object", "properties": properties, "required": ["size"], "additionalProperties": False}
    turn = compile_turn(spec_of({**tree, "$defs": {"node": tree}}))
    arguments = {"left": {"left": "x", "size": 1}, "size": 2}
    text = turn.write(called(arguments))
    assert text is not None
    assert turn.grammar.accepts(text)
    assert lark_accepts(turn.grammar.to("lark"), text)
    assert ebnf_accepts(turn.grammar.to("ebnf"), text)
    assert same_message(read(turn, text), called(arguments))


def test_a_key_that_another_requires_may_stand_before_it() -> None:
    keys = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    turn = compile_turn(spec_of({"type": "object", "properties": keys, "dependentRequired": {"a": ["b"]}}))
    text = turn.write(called({"a": 1, "b": 1}))
    assert text is not None
    turned = re.sub(r"(?<=[</])[ab](?=>)", lambda key: {"a": "b", "b": "a"}[key[0]], text)
    for each in (text, turned):
        assert turn.grammar.accepts(each)
        assert lark_accepts(turn.grammar.to("lark"), each)
        assert same_message(read(turn, each), called({"a": 1, "b": 1}))
    assert turn.write(called({"a": 1})) is None
