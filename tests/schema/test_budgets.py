"""No schema takes for ever: what is too large is refused, or relaxed, with its place; equal schemas are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolgram import InvalidSchema, UnsupportedSchema, schema_grammar, work
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.regular.automata import of_texts
from toolgram.grammar.regular.regex import pattern
from toolgram.work import TooLarge, limited, spend


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    made: Any = {"type": "string"}
    for _ in range(depth):
        made = wrap(made)
    return made


def branch(number: int) -> dict[str, Any]:
    kind = {"const": f"c{number}"}
    return {"type": "object", "properties": {f"k{number}": {"type": "string"}, "kind": kind}, "required": ["kind"]}


def chains(keyword: str) -> dict[str, Any]:
    """Two chains of definitions, each of which uses the next one twice."""

    def link(letter: str, number: int) -> dict[str, Any]:
        reference = {"$ref": f"#/$defs/{letter}{number + 1}"}
        return {"type": "object", "properties": {"a": reference, "b": reference}, "required": ["a", "b"]}

    links = {f"{letter}{number}": link(letter, number) for letter in "de" for number in range(25)}
    last = {"d25": {"type": "string"}, "e25": {"type": "string"}}
    return {"$defs": links | last, keyword: [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/e0"}]}


TOO_LARGE: dict[str, tuple[Callable[[], Any], str, str]] = {
    "an enum of 10 MB": (lambda: {"items": {"enum": [f"x{n:08d}" for n in range(900_000)]}}, "/items", "enum"),
    "100,000 schemas": (
        lambda: {"items": {"anyOf": [{"minLength": n} for n in range(100_000)]}},
        "/items/anyOf/29998",
        "size",
    ),
    "100,000 levels of items": (lambda: nested(100_000, lambda s: {"items": s}), "/items" * 50, "nesting"),
    "100,000 levels of not": (lambda: nested(100_000, lambda s: {"not": s}), "/not" * 50, "nesting"),
    "100,000 levels of a constant": (lambda: {"const": nested(100_000, lambda s: [s])}, "", "nesting"),
    "counts of counts": (lambda: {"type": "string", "pattern": "(a{1,1000}){1,1000}"}, "", "pattern"),
    "a long pattern": (lambda: {"type": "string", "pattern": "a" * 1_000_000}, "", "pattern"),
    "many states": (lambda: {"type": "string", "pattern": "a.{20}b"}, "", "pattern"),
    "the product of many languages": (
        lambda: {"allOf": [{"type": "string", "pattern": f"{chr(97 + n % 26)}{n}"} for n in range(12)]},
        "",
        "allOf",
    ),
    "branches that multiply": (
        lambda: {"allOf": [{"anyOf": [{"properties": {f"{key}{n}": {}}} for n in range(60)]} for key in "ab"]},
        "",
        "allOf",
    ),
    "definitions that double": (lambda: chains("allOf"), "", "allOf"),
    "definitions that double and overlap": (lambda: chains("oneOf"), "", "oneOf"),
    "a count of declared keys": (
        lambda: {"type": "object", "properties": {f"p{n}": {} for n in range(2000)}, "maxProperties": 1000},
        "",
        "size",
    ),
    "a bound of many digits": (lambda: {"type": "number", "minimum": int("12345" * 100)}, "", "minimum"),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_is_refused_with_its_place_or_relaxed(name: str) -> None:
    make, pointer, keyword = TOO_LARGE[name]
    with pytest.raises(UnsupportedSchema) as caught:
        schema_grammar(make())
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)
    grammar = schema_grammar(make(), "relaxed")
    assert keyword in {each.keyword for each in grammar.relaxations}


LARGE: dict[str, tuple[Callable[[], Any], str, str]] = {
    "500 properties": (
        lambda: {"type": "object", "properties": {f"property_{n}": {"type": "null"} for n in range(500)}},
        '{"property_7": null, "property_499": null, "other": 1}',
        '{"property_8": 1}',
    ),
    "200 branches": (lambda: {"anyOf": [branch(n) for n in range(200)]}, '{"kind": "c199"}', '{"kind": "c200"}'),
    "an enum of 500": (lambda: {"enum": [*range(500)]}, "499", "500"),
    "a text of 5,000": (lambda: {"const": "a" * 5_000}, f'"{"a" * 5_000}"', '"a"'),
    "the smallest double": (lambda: {"type": "number", "minimum": 5e-324}, f"0.{'0' * 300}1", f"0.{'0' * 323}4"),
    "below the smallest double": (
        lambda: {"type": "number", "minimum": 0, "exclusiveMaximum": 5e-324},
        f"0.{'0' * 323}4",
        f"0.{'0' * 322}1",
    ),
    "a large integer": (lambda: {"type": "integer", "minimum": 10**300, "maximum": 10**4000}, "9" * 3000, "9" * 300),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_compiled(name: str) -> None:
    make, valid, invalid = LARGE[name]
    grammar = schema_grammar(make())
    assert grammar.accepts(valid)
    assert not grammar.accepts(invalid)
    assert grammar.to("gbnf")
    assert grammar.to("ebnf")


def test_arrays_of_a_billion_items_are_told_apart_by_their_first_ones() -> None:
    arrays = [{"type": "array", "minItems": 10**9, "items": {"type": kind}} for kind in ("string", "null")]
    assert not schema_grammar({"oneOf": arrays}).relaxations


def test_a_document_costs_the_same_whatever_was_compiled_before() -> None:
    text = "^(?:[a-c]{3}x|d+)$"

    def cost() -> int:
        with limited(work.MAX_WORK) as meter:
            pattern(text)
        return work.MAX_WORK - meter.left

    first = cost()
    assert cost() == first > 0


def test_limits_inside_of_limits_are_their_own() -> None:
    with limited(3):
        with limited(10):
            spend(9)
        spend(3)
        with pytest.raises(TooLarge):
            spend(1)
    spend(1_000_000_000)  # where there is no limit


def test_languages_of_texts() -> None:
    language = of_texts(["ab", "abc", "", "xbc", "\ud800"])
    assert language.finite_texts(9) == ("", "ab", "abc", "xbc")
    with pytest.raises(TooLarge):
        of_texts(str(number) for number in range(100_000))


# Known schemas


def test_an_equal_schema_gets_the_same_grammar() -> None:
    def schema() -> dict[str, Any]:
        return {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": [1, True, "1"]}}}

    assert schema_grammar(schema()) is schema_grammar(schema())
    assert schema_grammar(schema()) is not schema_grammar(schema(), "relaxed")
    assert schema_grammar(schema()) is not schema_grammar(schema(), any_order=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}}),
        ({"const": 1}, {"const": True}),
        ({"const": 1}, {"const": "1"}),
    ],
)
def test_schemas_that_differ_do_not_share_a_grammar(one: Any, other: Any) -> None:
    assert rules(schema_grammar(one)) != rules(schema_grammar(other))


def test_what_is_no_json_is_refused_whatever_was_compiled_before() -> None:
    schema_grammar({"enum": [["a"]]})
    with pytest.raises(InvalidSchema, match="tuple is no JSON value"):
        schema_grammar({"enum": [("a",)]})
    schema_grammar({"properties": {"1": {}}})
    with pytest.raises(InvalidSchema, match="is not an object of schemas"):
        schema_grammar({"properties": {1: {}}})


def test_a_schema_that_changes_after_it_was_compiled_is_another_one() -> None:
    schema: dict[str, Any] = {"const": "before"}
    schema_grammar(schema)
    schema["const"] = "after"
    assert schema_grammar(schema).accepts('"after"')
    schema["const"] = "before"
    assert schema_grammar(schema).accepts('"before"')


def test_the_grammar_of_a_schema_with_a_resolver_is_made_anew() -> None:
    found: dict[str, Any] = {"http://x/y": {"const": 1}}
    schema = {"$ref": "http://x/y"}
    assert schema_grammar(schema, resolver=found.get).accepts("1")
    found["http://x/y"] = {"const": 2}
    assert schema_grammar(schema, resolver=found.get).accepts("2")


def rules(grammar: Grammar) -> list[tuple[str, Any]]:
    return [*grammar.rules.items()]


@pytest.mark.parametrize("count", [10_000])
def test_thousands_of_properties_and_branches_become_rules(count: int) -> None:
    keys = {f"property_{n}": {"type": "null"} for n in range(count)}
    assert schema_grammar({"type": "object", "properties": keys}).to("gbnf").count("property_") >= count
    assert len(schema_grammar({"anyOf": [branch(n) for n in range(count // 5)]}).rules) > count // 5
