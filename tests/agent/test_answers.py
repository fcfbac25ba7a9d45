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
    assert lengths[-1] <= 200
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


def test_the_longest_sentence() -> None:
    def longest(expr: Expr) -> int | None:
        return Grammar({"root": expr, "on": choice(seq("a", Ref("on")), "b")}).longest

    assert longest(seq("é", repeat(chars("aé€"), 1, 3))) == 2 + 3 * 3
    assert longest(choice("abc", "de", Text(("x",)))) == 3
    assert longest(repeat(chars("a"))) is None
    assert longest(repeat(choice("", Text(())), 0, None)) == 0
    assert longest(Ref("on")) is None
