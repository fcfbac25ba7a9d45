"""What is no schema, or no sane one, is refused with a pointer and in bounded time; nothing else is ever raised."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.errors import InvalidSchema, UnsupportedSchema
from toolgram.schema import schema_grammar
from toolgram.schema.reading.keywords import KINDS

LATEST = "https://json-schema.org/draft/2020-12/schema"
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
NUMBERS = ("minimum", "maximum", "multipleOf")
SCHEMAS = ("not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems")
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
WRONG: dict[tuple[str, ...], tuple[Any, ...]] = {
    ("type",): (None, 5, "text", [], ["text"], [5], {}, {"type": "string"}),
    ("properties", "patternProperties", "dependentSchemas"): (None, 5, [], "x", {"a": 5}, {"a": []}, {5: {}}),
    ("$defs", "definitions"): (None, 5, [], "x"),
    ("required",): (None, True, "a", {}, [5], [None]),
    ("dependentRequired",): (None, [], {"a": "b"}, {"a": [5]}),
    ("dependencies",): (None, [], {"a": "b"}, {"a": [5]}, {"a": None}),
    ("enum",): (None, 5, "x", {}),
    ("prefixItems",): (None, 5, {}, [5]),
    ("items",): (None, 5, "x", [5]),
    ("anyOf", "oneOf", "allOf"): (None, 5, {}, [], [5], [[]]),
    (*SCHEMAS, *UNEVALUATED): (None, 5, [], "x"),
    (*COUNTS, "minContains", "maxContains"): (None, True, "1", -1, 1.5, [], float("nan"), float("inf"), -(10**400)),
    NUMBERS: (None, True, "1", [], {}, float("nan"), float("inf"), float("-inf")),
    ("multipleOf",): (0, -1, -(10**400)),
    ("exclusiveMinimum", "exclusiveMaximum"): (None, "1", [], float("nan"), float("-inf")),
    ("pattern", "$ref", "$dynamicRef", "$recursiveRef", "$anchor", "$schema", "$id"): (None, 5, [], {}),
    ("uniqueItems",): (None, 1, "true", []),
    ("const", "enum"): ([float("inf")], [{"a": float("nan")}], [b"bytes"], [{5: 5}], [{1, 2}]),
}
CASES = [(keyword, value) for keywords, values in WRONG.items() for keyword in keywords for value in values]


@pytest.mark.parametrize(("keyword", "value"), CASES, ids=lambda each: f"{each}"[:30])
@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_a_value_of_the_wrong_type_is_told_with_its_place(keyword: str, value: Any, mode: Any) -> None:
    for beside in ({}, {"type": "object"}, {"if": True, "contains": True}):
        with pytest.raises(InvalidSchema) as caught:
            schema_grammar({"properties": {"a/b": {**beside, keyword: value}}}, mode)
        assert caught.value.pointer.startswith("/properties/a~1b")
        assert keyword in (caught.value.keyword, *caught.value.pointer.split("/"))


@pytest.mark.parametrize("reference", ["#/$defs/none", "#/~2", "#/%zz", "#none", "#/$defs/a/type", "#/$defs/-1", "#/["])
@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_a_reference_to_nothing_is_told_with_its_place(reference: str, mode: Any) -> None:
    with pytest.raises(InvalidSchema) as caught:
        schema_grammar({"$defs": {"a": {"type": "string"}}, "items": [{"$ref": reference}]}, mode)
    assert caught.value.pointer.startswith("/items/0") or reference == "#/$defs/a/type"


@pytest.mark.parametrize("reference", ["http://[", "urn:x:y", "a b", "%", "other.json#/a"])
def test_a_reference_to_another_document_is_refused(reference: str) -> None:
    with pytest.raises((InvalidSchema, UnsupportedSchema)) as caught:
        schema_grammar({"properties": {"a": {"$ref": reference}}})
    assert caught.value.pointer == "/properties/a"
    assert caught.value.keyword == "$ref"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"allOf": [{"$ref": "#"}], "type": "object"},
        {"$ref": "#", "type": "object", "required": ["a"]},
        {"not": {"$ref": "#"}},
        {"oneOf": [{"$ref": "#"}, {"type": "null"}]},
        {"if": {"$ref": "#"}, "then": {"type": "null"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
    ],
)
def test_a_schema_that_asks_about_itself_is_refused(schema: Any) -> None:
    with pytest.raises((InvalidSchema, UnsupportedSchema)):
        schema_grammar(schema)


def test_definitions_that_are_made_while_they_are_referred_to_are_no_circle() -> None:
    inner = {"type": "object", "dependentSchemas": {"a": {"$ref": "#"}}}
    schema_grammar({"type": "array", "contains": inner, "minContains": 0})


@pytest.mark.parametrize("pattern", ["(", "[", "a{2,1}", "*", "(?<n>", "\\", "[z-a]", "(?'x')", "(" * 5000])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises((InvalidSchema, UnsupportedSchema)) as caught:
        schema_grammar({"items": {"type": "string", "pattern": pattern}})
    assert (caught.value.pointer, caught.value.keyword) == ("/items", "pattern")
    assert len(str(caught.value)) < 1000


def refusal_of(schema: Any, mode: Any) -> InvalidSchema | UnsupportedSchema | None:
    try:
        schema_grammar(schema, mode)
    except (InvalidSchema, UnsupportedSchema) as error:
        return error
    return None


def nested(keyword: str, depth: int, *, listed: bool = False) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {keyword: [schema] if listed else schema}
    return schema


@pytest.mark.parametrize("keyword", ["items", "not", "if", "contains", "additionalProperties", "propertyNames", "else"])
def test_absurd_nesting_is_refused(keyword: str) -> None:
    schema = nested(keyword, 3000) if keyword not in ("if", "else") else {"if": nested("if", 3000), "then": True}
    with pytest.raises((InvalidSchema, UnsupportedSchema)):
        schema_grammar(nested("allOf", 3000, listed=True) | schema)
    schema_grammar({"properties": {"a": nested("allOf", 3000, listed=True)}}, "relaxed")


HUGE: list[Any] = [
    {"minimum": 10**400},
    {"minimum": 10**400 + 1, "type": "integer"},
    {"maximum": -(10**5000) + 7},
    {"exclusiveMaximum": 5e-324, "type": "number"},
    {"minimum": 2.2250738585072014e-308, "maximum": 1.7976931348623157e308},
    {"multipleOf": 10**400},
    {"multipleOf": 5e-324},
    {"const": 10**5000},
    {"enum": [10**400, 1e308, 5e-324, -(10**400)]},
    {"minLength": 10**400, "type": "string"},
    {"maxLength": 10**400, "type": "string"},
    {"maxItems": 10**400, "minItems": 10**18},
    {"maxProperties": 10**400, "minProperties": 10**400},
    {"contains": True, "minContains": 10**400},
    {"contains": {"type": "null"}, "maxContains": 10**400, "minContains": 10**18},
    {"type": "string", "pattern": "^(a{1000}){1000}$"},
    {"type": "string", "pattern": "^(a|b|ab)*c{0,99999}$", "maxLength": 10**9},
    {"enum": ["same", "same", 1, 1.0, {"a": 1}, {"a": 1.0}] * 500},
    {"enum": [f"{index:01000}" for index in range(10_000)]},
    {"required": [f"key {index}" for index in range(3000)], "type": "object"},
    {"anyOf": [{"type": "string", "minLength": index} for index in range(2000)]},
    {"oneOf": [{"type": "string", "maxLength": index} for index in range(60)]},
    {"allOf": [{"not": {"const": index}} for index in range(500)], "type": "integer"},
    {"properties": {"a": nested("not", 40)}},
]


@pytest.mark.parametrize("schema", HUGE, ids=" ".join)
@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_huge_values_take_bounded_time(schema: Any, mode: Any) -> None:
    start = time.process_time()
    refusal = refusal_of(schema, mode)
    if refusal is None:
        schema_grammar(schema, mode).to("gbnf")
    else:
        assert (type(refusal), mode) == (UnsupportedSchema, "exact")
    assert time.process_time() - start < 5


KEYWORDS = sorted(
    {keyword for keywords in WRONG for keyword in keywords}
    | {"const", "format", "$dynamicAnchor", "id", "nullable", "default", "description", "a", "b"}
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([0.5, -1.5, float("nan"), float("inf"), 10**400, 1e300, 5e-324]),
    st.sampled_from(
        [*KINDS, "a", "^a", "(", "", "date", "regex", "#", "#/a", "#/properties/a", "#b", "%", "x:y", LATEST]
    ),
    st.just("http://json-schema.org/draft-04/schema#"),
    st.just("\ud800"),
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
    proper = {"type": st.sampled_from(KINDS), "properties": objects, "items": objects, "required": st.just(["a"])}
    return st.one_of(
        st.lists(inner, max_size=3),
        objects,
        st.tuples(objects, st.fixed_dictionaries({}, optional=proper)).map(lambda two: two[0] | two[1]),
        st.lists(objects, min_size=1, max_size=2),
    )


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_a_schema_that_is_but_itself_is_refused_by_the_keyword_that_says_so(keyword: str) -> None:
    draft = LATEST.replace("2020-12", "2019-09") if keyword == "$recursiveRef" else LATEST
    with pytest.raises(InvalidSchema, match="refers to itself") as told:
        schema_grammar({"$schema": draft, keyword: "#"})
    assert told.value.keyword == keyword


@given(st.recursive(LEAVES, _containers, max_leaves=12))
def test_random_json_as_a_schema_never_raises_anything_else(schema: Any) -> None:
    relaxed, exact = refusal_of(schema, "relaxed"), refusal_of(schema, "exact")
    assert relaxed is None or (isinstance(relaxed, InvalidSchema) and exact is not None)
    for refusal in (relaxed, exact):
        assert (
            refusal is None
            or refusal.pointer[:1] in ("", "/")
            or re.search(r"\$(dynamic|recursive)?[rR]ef", f"{schema}")
        )
