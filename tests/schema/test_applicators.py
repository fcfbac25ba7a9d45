"""Keywords that look at what others say of a value, count, or are negated: just the valid values, by jsonschema-rs."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgram.errors import GrammarError, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.schema import RuleNames, Spelling, compile_schema, schema_grammar
from toolgram.schema.writing.values import spell_as

SHORT = Spelling(integer_digits=7, fraction_digits=4)  # a float holds it all
KEYS = ("a", "b", "ab", "c")
SCALARS = st.sampled_from([None, True, 0, 1, 2, 1.5, "", "a", "b", "ab"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
ARRAYS = st.lists(st.sampled_from([0, 1, 2, "a", "b", True, [1], {"a": 1}]), max_size=5)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), SCALARS, max_size=4)
LEAVES = st.sampled_from(
    [True, False, {}, {"type": "string"}, {"type": "integer"}, {"const": 1}, {"enum": ["a", 1, None]}, {"minimum": 1}]
)


@st.composite
def schemas(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    key, count = st.sampled_from(KEYS), st.integers(0, 3)
    several = st.lists(inner, min_size=1, max_size=3)
    fields: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["object", "array", ["object", "string"]]),
        "properties": st.dictionaries(key, inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "propertyNames": st.sampled_from([{"pattern": "a"}, {"maxLength": 1}]),
        "required": st.lists(key, unique=True, max_size=2),
        "minProperties": count,
        "maxProperties": count,
        "dependentSchemas": st.dictionaries(key, inner, max_size=1),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "items": inner,
        "unevaluatedItems": inner,
        "contains": inner,
        "minContains": count,
        "maxContains": count,
        "minItems": count,
        "maxItems": count,
        "uniqueItems": st.booleans(),
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, min_size=1, max_size=4))
    return {name: draw(fields[name]) for name in chosen}


SCHEMAS = st.recursive(LEAVES, schemas, max_leaves=6)


def judge_of(schema: Any) -> Any:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False)


def check(schema: Any, values: list[Any], seeds: range, *, any_order: bool = False) -> bool:
    """Checks the values, and sentences of the grammar; False where exact mode refuses."""
    judge = judge_of(schema)
    try:
        made = compile_schema(
            schema,
            pointer="",
            mode="exact",
            closed=False,
            spelling=SHORT,
            names=RuleNames("root"),
            root_name="value",
            any_order=any_order,
        )
    except UnsupportedSchema:
        return False
    grammar = Grammar({"root": made.expr, **made.rules})
    for value in values:
        text = spell_as(made.type, value, SHORT)
        assert (text is not None) == judge.is_valid(value), value
        assert text is None or grammar.accepts(text), text
        if not judge.is_valid(value):
            assert not grammar.accepts(json.dumps(value))
    try:
        sentences = [grammar.sample(seed) for seed in seeds]
    except GrammarError:
        return True  # there are no values at all
    for sentence in sentences:
        assert judge.is_valid(json.loads(sentence)), sentence
    return True


@settings(max_examples=60)
@given(SCHEMAS, st.lists(VALUES | ARRAYS | OBJECTS, min_size=4, max_size=8), st.booleans())
def test_any_schema(schema: Any, values: list[Any], any_order: bool):
    check(schema, values, range(4), any_order=any_order)


@settings(max_examples=60)
@given(SCHEMAS, st.lists(VALUES | ARRAYS | OBJECTS, min_size=4, max_size=8), st.booleans())
def test_relaxed_mode_takes_any_schema_and_every_valid_value(schema: Any, values: list[Any], any_order: bool):
    made = compile_schema(
        schema,
        pointer="",
        mode="relaxed",
        closed=False,
        spelling=SHORT,
        names=RuleNames("root"),
        root_name="value",
        any_order=any_order,
    )
    judge = judge_of(schema)
    for value in values:
        spelled = spell_as(made.type, value, SHORT)
        assert spelled is not None if judge.is_valid(value) else spelled is None or made.relaxations


NUMBERS_OR_TEXTS = [[], [1], ["a"], [1, 1], ["a", 1], [1, "a", 1], ["a", "a"], [1, 1, 1], {}, "a"]
OBJECT_VALUES = [{}, {"a": 1}, {"a": "a"}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, {"b": 1, "c": "x"}, 1]
ITEM_VALUES = [[], [1], ["a"], [1, 2], [1, "a"], ["a", "b"], [1, "a", "b"], ["b", "b"], [1, 2, 3], {"a": 1}]
TREE: dict[str, Any] = {
    "$id": "https://example.com/strict",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
    "$defs": {
        "tree": {
            "$id": "tree",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        *(
            ({"contains": {"type": "integer"}} | counts, NUMBERS_OR_TEXTS)
            for counts in (
                {},
                {"minContains": 0},
                {"minContains": 2},
                {"maxContains": 1},
                {"minContains": 2, "maxContains": 2, "items": {"type": ["integer", "string"]}},
                {"minContains": 2, "maxContains": 1},
                {"minItems": 2, "prefixItems": [{"type": "string"}]},
            )
        ),
        ({"allOf": [{"contains": {"const": 1}}, {"contains": {"const": "a"}}]}, NUMBERS_OR_TEXTS),
        ({"not": {"items": {"type": "integer"}}}, NUMBERS_OR_TEXTS),
        ({"not": {"contains": {"const": 1}, "minItems": 2}}, NUMBERS_OR_TEXTS),
        ({"items": {"enum": [1, "a"]}, "uniqueItems": True}, NUMBERS_OR_TEXTS),
        ({"uniqueItems": True, "maxItems": 1}, NUMBERS_OR_TEXTS),
        ({"allOf": [{"uniqueItems": True}, {"enum": [[1, "a"], [1, 1], ["a", "a"]]}]}, NUMBERS_OR_TEXTS),
        (
            {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "uniqueItems": True},
            NUMBERS_OR_TEXTS,
        ),
        ({"not": {"additionalProperties": {"type": "integer"}}}, OBJECT_VALUES),
        ({"not": {"properties": {"a": True}, "additionalProperties": {"type": "integer"}}}, OBJECT_VALUES),
        ({"not": {"patternProperties": {"^[ab]": {"type": "integer"}}}, "maxProperties": 2}, OBJECT_VALUES),
        ({"not": {"not": {"maxProperties": 2}}}, OBJECT_VALUES),
        ({"not": {"propertyNames": {"enum": ["a", "b"]}}, "properties": {"c": {"const": "x"}}}, OBJECT_VALUES),
        ({"allOf": [{"enum": [{"a": 1, "b": 1}, {"a": 1}]}, {"minProperties": 2}]}, OBJECT_VALUES),
        ({"properties": {"a": True}, "anyOf": [{"properties": {"b": True}}, {"required": ["c"]}]}, OBJECT_VALUES),
        *(
            (schema | {"unevaluatedProperties": {"const": "x"}}, OBJECT_VALUES)
            for schema in (
                {"allOf": [{"properties": {"a": True}}, {"patternProperties": {"^b": True}}]},
                {"anyOf": [{"properties": {"a": {"const": 1}}}, {"required": ["b"], "properties": {"b": True}}]},
                {
                    "oneOf": [
                        {"required": ["a"], "properties": {"a": True}},
                        {"properties": {"b": True}, "required": ["c"]},
                    ]
                },
                {"if": {"required": ["a"]}, "then": {"properties": {"a": True}}, "else": {"properties": {"b": True}}},
                {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}},
                {"dependentSchemas": {"b": {"properties": {"a": True, "b": True}}}},
                {"not": {"not": {"properties": {"a": True, "b": True}}}},
                {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": True}}}},
                {"allOf": [{"properties": {"a": True}, "unevaluatedProperties": {"type": "integer"}}]},
            )
        ),
        *(
            (schema | {"unevaluatedItems": False}, ITEM_VALUES)
            for schema in (
                {"prefixItems": [True], "allOf": [{"prefixItems": [True, {"type": "string"}]}]},
                {"anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [True, {"const": "b"}]}]},
                {"contains": {"type": "string"}},
                {"prefixItems": [True], "contains": {"type": "string"}, "minContains": 0},
                {"if": {"contains": {"const": "a"}}, "then": {"contains": {"const": "b"}}},
                {"oneOf": [{"items": {"type": "string"}}, {"items": {"type": "integer"}, "minItems": 1}]},
            )
        ),
        (
            TREE,
            [{}, {"data": 1}, {"children": [{"data": 1}]}, {"children": [{"daat": 1}]}, {"daat": 1}, {"children": 1}],
        ),
    ],
)
@pytest.mark.parametrize("any_order", [False, True])
def test_exactly_the_valid_values(schema: dict[str, Any], values: list[Any], any_order: bool):
    assert check(schema, values, range(12), any_order=any_order)


DOCUMENTS: dict[str, Any] = {
    "https://example.com/list": {
        "type": "array",
        "items": {"$dynamicRef": "#item"},
        "$defs": {"any": {"$dynamicAnchor": "item"}},
    },
    "https://example.com/names.json": {"$anchor": "name", "$defs": {"short": {"maxLength": 2}}, "type": "string"},
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"$ref": "https://example.com/names.json#/$defs/short"}, ['"ab"', "1"], ['"abc"']),
        ({"$id": "https://example.com/", "items": {"$ref": "names.json#name"}}, ['["abc"]'], ["[1]"]),
        (
            {
                "$id": "https://example.com/texts",
                "$ref": "list",
                "$defs": {"item": {"$dynamicAnchor": "item", "type": "string"}},
            },
            ['["a"]', "[]"],
            ["[1]", '"a"'],
        ),
        ({"$ref": "https://example.com/list"}, ["[1]", "[]"], ["1"]),
    ],
)
def test_other_documents(schema: dict[str, Any], good: list[str], bad: list[str]):
    with pytest.raises(UnsupportedSchema, match="there is no document"):
        schema_grammar(schema)
    grammar = schema_grammar(schema, resolver=DOCUMENTS.get)
    assert all(grammar.accepts(text) for text in good)
    assert not any(grammar.accepts(text) for text in bad)


def test_recursive_references_of_2019():
    schema = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$id": "https://example.com/strict",
        "$recursiveAnchor": True,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "tree",
                "$recursiveAnchor": True,
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$recursiveRef": "#"}}},
            }
        },
    }
    grammar = schema_grammar(schema)
    assert grammar.accepts('{"children": [{"children": []}]}')
    assert not grammar.accepts('{"children": [{"a": 1}]}')


def test_a_key_that_must_be_is_not_taken_back():
    """The last of two equal keys counts: after the one that must be there comes none that could be the same."""
    grammar = schema_grammar({"not": {"additionalProperties": {"type": "integer"}}, "type": "object"})
    assert grammar.accepts('{"a": 1, "b": "x"}')
    assert not grammar.accepts('{"a": "x", "a": 1}')


def test_too_many_orders_are_reported():
    schema = {"type": "object", "properties": {f"k{n}": {} for n in range(12)}, "required": ["k1", "k2"]}
    with pytest.raises(UnsupportedSchema, match="orders"):
        schema_grammar({"properties": {"a": schema}}, any_order=True)
    relaxed = schema_grammar({"properties": {"a": schema}}, "relaxed", any_order=True)
    assert [(each.pointer, each.keyword) for each in relaxed.relaxations] == [("/properties/a", "properties")]
    assert relaxed.accepts('{"a": {"k1": 1, "k2": 2}}')
    assert not relaxed.accepts('{"a": {"k2": 1, "k1": 2}}')


def test_a_part_whose_name_is_like_that_of_the_whole():
    schema = {"anyOf": [{"$ref": "#/$defs/+"}, {"type": "null"}], "$defs": {"+": {"type": ["boolean", "integer"]}}}
    assert schema_grammar(schema).accepts("null")


def test_items_that_all_differ_are_as_closed_as_others():
    schema = {
        "prefixItems": [{"$ref": "#/$defs/o"}, {"type": "string"}],
        "items": False,
        "type": "array",
        "uniqueItems": True,
        "$defs": {
            "o": {
                "type": "object",
                "properties": {"a": {"items": {"enum": [1, 2]}, "type": "array", "uniqueItems": True}},
            }
        },
    }
    made = compile_schema(
        schema,
        pointer="",
        mode="exact",
        closed=True,
        spelling=SHORT,
        names=RuleNames("root"),
        root_name="value",
    )
    grammar = Grammar({"root": made.expr, **made.rules})
    assert grammar.accepts('[{"a": [1, 2]}, "x"]')
    assert not grammar.accepts('[{"a": [1, 1]}, "x"]')
    assert not grammar.accepts('[{"b": 1}, "x"]')


def test_what_is_not_used_is_not_refused():
    counted = {"type": "object", "minProperties": 2}
    closed = {"properties": {"a": {}, "b": {}}, "additionalProperties": False}
    schema = {"allOf": [{"$ref": "#/$defs/counted"}, closed], "$defs": {"counted": counted}}
    assert schema_grammar(schema).accepts('{"a": 1, "b": 2}')
    assert not schema_grammar(schema).accepts('{"a": 1}')


def test_many_branches_that_speak_of_keys():
    """The ways in which branches hold together do not multiply where they speak of the same keys."""
    branches = [{"properties": {"a": {"minimum": n}, "b": {"type": ["integer", "string"]}}} for n in range(20)]
    grammar = schema_grammar({"anyOf": branches, "unevaluatedProperties": False, "type": "object"})
    assert grammar.accepts('{"a": 3, "b": "x"}')
    assert not grammar.accepts('{"c": 1}')
    others = [{"properties": {f"k{n}": {"minimum": n}}} for n in range(20)]
    with pytest.raises(UnsupportedSchema, match="too many cases"):
        schema_grammar({"anyOf": others, "unevaluatedProperties": False, "type": "object"})
