"""The grammar of a schema accepts exactly the values that the schema admits, each in one spelling."""

import json

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgram.grammar.grammar import Grammar
from toolgram.schema import Compiled, RuleNames, Spelling, compile_schema
from toolgram.schema.writing.values import spell_as

KEYS = ("a", "b", "ab", 'q"', "é")
TEXTS = st.one_of(st.sampled_from(["", "a", "ab", '"', "\\", "\n\x01", "é", "😀"]), st.text(max_size=4))
NUMBERS = st.one_of(st.integers(-12, 12), st.sampled_from([0.5, -0.25, 1.0, 2.5, -3.75, 10.0, 1e20, 1e-7]))
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)


def _containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | TEXTS, inner, max_size=4)


VALUES = st.recursive(SCALARS, _containers, max_leaves=6)


@st.composite
def string_schemas(draw: st.DrawFn) -> dict[str, object]:
    limits = {"minLength": draw(st.integers(0, 3)), "maxLength": draw(st.integers(0, 5))}
    return {"type": "string", **{key: limits[key] for key in draw(st.sets(st.sampled_from(sorted(limits))))}}


@st.composite
def number_schemas(draw: st.DrawFn) -> dict[str, object]:
    names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    bound = st.integers(-12, 12) | st.sampled_from([0.5, -0.25, 2.5, 10.0])
    limits = draw(st.dictionaries(st.sampled_from(names), bound, max_size=2))
    return {"type": draw(st.sampled_from(["integer", "number"])), **limits}


def constant_schemas() -> st.SearchStrategy[object]:
    enums = st.lists(VALUES, max_size=4).map(lambda values: {"enum": values})
    return VALUES.map(lambda value: {"const": value}) | enums


@st.composite
def array_schemas(draw: st.DrawFn, inner: st.SearchStrategy[object]) -> dict[str, object]:
    schema: dict[str, object] = {"type": "array"}
    if draw(st.booleans()):
        schema["items"] = draw(inner)
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=3))
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        schema["maxItems"] = draw(st.integers(0, 4))
    return schema


@st.composite
def object_schemas(draw: st.DrawFn, inner: st.SearchStrategy[object]) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object"}
    schema["properties"] = draw(st.dictionaries(st.sampled_from(KEYS), inner, max_size=4))
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(inner | st.booleans())
    return schema


@st.composite
def combined_schemas(draw: st.DrawFn, inner: st.SearchStrategy[object]) -> dict[str, object]:
    schema: dict[str, object] = {
        draw(st.sampled_from(["anyOf", "allOf"])): draw(st.lists(inner, min_size=1, max_size=3))
    }
    if draw(st.booleans()):
        schema["type"] = draw(
            st.lists(st.sampled_from(["null", "string", "object", "array", "number"]), min_size=1, unique=True)
        )
    return schema


SHORT = Spelling(integer_digits=9, fraction_digits=5)  # numbers that doubles hold, as the judge reads them
REFERENCES = st.sampled_from(["#", "#/$defs/x", "#/$defs/y"]).map(lambda ref: {"$ref": ref})


def _nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return array_schemas(inner) | object_schemas(inner) | combined_schemas(inner)


PLAIN = st.one_of(st.booleans(), st.just({}), string_schemas(), number_schemas(), constant_schemas())
SCHEMAS = st.recursive(PLAIN, _nested, max_leaves=6)


@st.composite
def recursive_schemas(draw: st.DrawFn) -> dict[str, object]:
    """References that always stand inside an object or array, so that each has a meaning."""
    inner = PLAIN | REFERENCES
    guarded = object_schemas(inner) | array_schemas(inner)
    return {**draw(guarded), "$defs": {"x": draw(guarded | PLAIN), "y": draw(guarded)}}


def compiled(schema: object, spelling: Spelling = Spelling()) -> tuple[Compiled, Grammar]:  # noqa: B008 - frozen
    """The schema compiled as the plan layer does, and the grammar of it alone."""
    made = compile_schema(
        schema, pointer="", mode="exact", closed=False, spelling=spelling, names=RuleNames("root"), root_name="value"
    )
    return made, Grammar({"root": made.expr, **made.rules})


def check(schema: object, values: list[object]) -> None:
    """The grammar admits the value in its spelling if and only if jsonschema-rs calls the value valid."""
    made, grammar = compiled(schema)
    judge = jsonschema_rs.Draft202012Validator(schema)
    for value in values:
        text = spell_as(made.type, value, Spelling())
        assert (text is not None) == judge.is_valid(value), (value, text)
        if text is not None:
            assert json.loads(text) == value
            assert grammar.accepts(text), text


def empty(grammar: Grammar) -> bool:
    from toolgram.errors import GrammarError

    try:
        grammar.sample(0)
    except GrammarError:
        return True
    return False


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, st.lists(VALUES, max_size=6))
def test_values_are_sentences_if_and_only_if_they_are_valid(schema: object, values: list[object]):
    check(schema, values)


@settings(max_examples=100, deadline=None)
@given(recursive_schemas(), st.lists(VALUES, max_size=6))
def test_recursive_schemas(schema: object, values: list[object]):
    check(schema, values)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS | recursive_schemas(), st.integers(0, 1000))
def test_sentences_are_valid(schema: object, seed: int):
    made, grammar = compiled(schema, SHORT)
    if empty(grammar):
        return
    judge = jsonschema_rs.Draft202012Validator(schema)
    for step in range(3):
        text = grammar.sample(seed + step)
        value = json.loads(text)
        assert judge.is_valid(value), text
        again = spell_as(made.type, value, SHORT)
        assert again is not None, text
        assert grammar.accepts(again), again
