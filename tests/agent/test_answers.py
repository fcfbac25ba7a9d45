"""The last answer of a run is bounded: within what was asked for, and within its room."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from toolgram import schema_grammar
from toolgram.agent.answers import bounded

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
    made: Any = bounded(FREE, 100)
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
    assert made["$defs"]["part"]["properties"]["name"]["maxLength"] == 12
    assert FREE["properties"]["note"] == {"type": ["string", "null"]}, "the schema that was given stays as it was"


@pytest.mark.parametrize("characters", [16, 200, 4000])
def test_a_bounded_answer_is_one_that_was_asked_for(characters: int) -> None:
    grammar = schema_grammar(bounded(FREE, characters), mode="relaxed")
    validator = jsonschema_rs.validator_for(FREE)
    for seed in range(20):
        text = grammar.sample(seed)
        assert validator.is_valid(json.loads(text)), text
