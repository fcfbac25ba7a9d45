"""The last answer of a run is bounded: within what was asked for, and within its room."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from situations import CHATML
from toolgram import Grammar, plan, schema_grammar
from toolgram.agent.answers import MOST_TIGHT, AnswerType
from toolgram.agent.bounds import Room, bounded
from toolgram.conversation.message import Message
from toolgram.errors import InvalidOutput
from toolgram.grammar.ir import Expr, Ref, Text, chars, choice, repeat, seq

MESSAGES = [{"role": "user", "content": "Go."}]

FREE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 40},
        "note": {"type": ["string", "null"]},
        "kind": {"enum": ["a", "b"]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 10},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
        "free": {"type": "object", "additionalProperties": {"type": "string"}},
        "type": {"type": "string"},
    },
    "required": ["title", "note", "kind", "day", "tags", "parts", "free", "type"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False}},
}


def test_what_is_free_gets_bounds_and_what_has_them_keeps_its_own() -> None:
    made: Any = bounded(FREE, Room(100))
    properties = made["properties"]
    assert properties["title"] == {"type": "string", "minLength": 40, "maxLength": 40}
    assert properties["note"]["maxLength"] == 12
    assert properties["kind"] == {"enum": ["a", "b"]}
    assert properties["day"] == {"type": "string", "format": "date"}
    assert properties["tags"]["items"]["maxLength"] == 5
    assert properties["tags"]["maxItems"] == 10
    assert properties["parts"]["maxItems"] == 8
    assert properties["type"]["maxLength"] == 12
    assert properties["free"]["maxProperties"] == 8
    assert properties["free"]["propertyNames"] == {"maxLength": 24}
    assert made["$defs"]["part"]["properties"]["name"]["maxLength"] == 12
    assert FREE["properties"]["note"] == {"type": ["string", "null"]}, "the schema that was given stays as it was"


@pytest.mark.parametrize("characters", [16, 200, 4000])
def test_a_bounded_answer_is_one_that_was_asked_for(characters: int) -> None:
    grammar = schema_grammar(bounded(FREE, Room(characters)), mode="relaxed")
    validator = jsonschema_rs.validator_for(FREE)
    for seed in range(20):
        text = grammar.sample(seed)
        assert validator.is_valid(json.loads(text)), text


CIRCLES: dict[str, Any] = {
    "tree": {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                    "owner": {"$ref": "#/$defs/Owner"},
                },
                "required": ["name", "children"],
                "additionalProperties": False,
            },
            "Owner": {
                "type": "object",
                "properties": {"node": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            },
        },
    },
    "itself": {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
    "anything": {},
    "list of anything": {"type": "array"},
    "object of anything": {"type": "object"},
    "pattern": {"type": "string", "pattern": "^[a-z]+ [A-Z]{20,}$"},
    "deep": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}},
}


@pytest.mark.parametrize("name", CIRCLES)
def test_whatever_an_answer_may_hold_there_is_an_end_to_it(name: str) -> None:
    schema = CIRCLES[name]
    validator = jsonschema_rs.validator_for(schema)
    answer = AnswerType.of(schema)
    lengths: list[int] = []
    for tightness in range(MOST_TIGHT + 1):
        given = {"messages": MESSAGES, "response_format": answer.response_format(600, tightness)}
        made = plan(given, CHATML, style="hermes_2_pro")
        assert made.constraint is not None
        longest = made.constraint.grammar.longest
        assert longest is not None
        for seed in range(20):
            text = made.constraint.grammar.sample(seed)
            assert len(text.encode()) <= longest
            assert validator.is_valid(json.loads(text)), text
        lengths.append(longest)
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] <= 350  # a key of 24 characters, each in an escape of twelve
    assert answer.schema is schema, "the schema that was given stays as it was"


def test_what_needs_more_than_it_may_have_is_not_narrowed() -> None:
    deep: dict[str, Any] = {"type": "null"}
    for _ in range(3):
        deep = {"type": "object", "properties": {"in": deep}, "required": ["in"], "additionalProperties": False}
    node = {"type": "object", "properties": {"down": {"anyOf": [{"$ref": "#/$defs/Node"}, deep]}}, "required": ["down"]}
    answer = AnswerType.of({"$defs": {"Node": node}, "$ref": "#/$defs/Node"})
    made = plan({"messages": MESSAGES, "response_format": answer.response_format(9, MOST_TIGHT)}, CHATML)
    assert made.constraint is not None
    assert json.loads(made.constraint.grammar.sample(0))["down"]["in"]
    endless = {"type": "array", "items": {"$ref": "#"}, "minItems": 1, "maxItems": 3}
    assert AnswerType.of(endless).response_format(9, MOST_TIGHT)["json_schema"]["schema"] == endless


NAMED: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
AGED: dict[str, Any] = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
TAGGED: dict[str, Any] = {"type": "object", "properties": {"tags": {"type": "array"}, "n": {"type": "integer"}}}
KINDS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"kind": {"const": kind}, "text": {"type": "string"}},
        "required": ["kind", "text"],
        "additionalProperties": False,
    }
    for kind in ("a", "b")
]
# Several schemas for one value: the schema, what is still taken when it is narrow, and what is not.
TOGETHER: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "unevaluated keys": (
        {"type": "object", "allOf": [NAMED, AGED], "unevaluatedProperties": False},
        [{"name": "Ann", "age": 3}],
        [{"name": "Ann", "age": 3, "z": 1}],
    ),
    "a list among others": (
        {"type": "object", "allOf": [NAMED, TAGGED], "unevaluatedProperties": False},
        [{"name": "x", "tags": ["a"]}],
        [],
    ),
    "unevaluated items": (
        {"type": "array", "prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
        [[1]],
        [[1, 2], [1, "a"]],
    ),
    "one of overlapping options": (
        {"oneOf": [{"type": "string", "maxLength": 100}, {"type": "string", "minLength": 50}]},
        ["a"],
        ["a" * 60],
    ),
    "one of overlapping definitions": (
        {
            "oneOf": [{"$ref": "#/$defs/short"}, {"type": "string", "minLength": 50}],
            "$defs": {"short": {"type": "string", "maxLength": 100}},
        },
        ["a"],
        ["a" * 60],
    ),
    "one of kinds": ({"oneOf": KINDS}, [{"kind": "b", "text": "t"}], [{"kind": "b", "text": "t" * 99}]),
    "keys by an option": (
        {"type": "object", "anyOf": [{"properties": {"a": AGED}, "required": ["a"], "additionalProperties": False}]},
        [{"a": {"age": 1}}],
        [{"b": 1}],
    ),
    "needed keys by an option": (
        {"properties": {"a": AGED, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": {"age": 1}}],
        [{}],
    ),
    "a definition beside others": (
        {"allOf": [{"$ref": "#/$defs/base"}, NAMED], "$defs": {"base": {"type": "object"}}},
        [{"name": "x"}],
        [{}],
    ),
    "not a long text": (
        {"type": "string", "not": {"$ref": "#/$defs/long"}, "$defs": {"long": {"type": "string", "minLength": 20}}},
        ["a"],
        ["a" * 20],
    ),
    "few that are counted": (
        {"type": "array", "items": {"type": "integer"}, "contains": {"type": "integer"}, "maxContains": 1},
        [[1]],
        [[1, 2]],
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_a_narrow_answer_is_one_that_was_asked_for_whatever_speaks_of_it_together(name: str) -> None:
    schema, taken, refused = TOGETHER[name]
    validator = jsonschema_rs.validator_for(schema)
    answer = AnswerType.of(schema)
    for room in (Room(24, items=2), Room(400)):
        grammar = schema_grammar(bounded(schema, room), mode="relaxed")
        for seed in range(30):
            value = json.loads(grammar.sample(seed))
            assert validator.is_valid(value), value
            assert answer.value(Message(json.dumps(value))) == value
    narrow = schema_grammar(bounded(schema, Room(24, items=2)), mode="relaxed")
    assert all(validator.is_valid(value) and narrow.accepts(json.dumps(value)) for value in taken)
    assert not any(narrow.accepts(json.dumps(value)) for value in refused)


@pytest.mark.parametrize("text", ["[1]", "{}", '{"name": 5}', "{", "null", "1e999", '{"name": NaN}'])
def test_an_answer_is_of_its_schema_whatever_the_engine_enforced(text: str) -> None:
    with pytest.raises(InvalidOutput):
        AnswerType.of(NAMED).value(Message(text))
    assert AnswerType.of(NAMED).value(Message('{"more": 1, "name": "x"}')) == {"more": 1, "name": "x"}


def test_the_longest_sentence() -> None:
    def longest(expr: Expr) -> int | None:
        return Grammar({"root": expr, "on": choice(seq("a", Ref("on")), "b")}).longest

    assert longest(seq("é", repeat(chars("aé€"), 1, 3))) == 2 + 3 * 3
    assert longest(choice("abc", "de", Text(("x",)))) == 3
    assert longest(repeat(chars("a"))) is None
    assert longest(repeat(choice("", Text(())), 0, None)) == 0
    assert longest(Ref("on")) is None
