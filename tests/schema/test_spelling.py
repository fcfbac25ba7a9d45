"""One spelling for each JSON value."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgram.grammar.grammar import Grammar
from toolgram.schema import RuleNames, Spelling, compile_schema, schema_grammar, types
from toolgram.schema.reading.normalize import normalize
from toolgram.schema.types import ANY, Canonical
from toolgram.schema.writing.values import spell, spell_as

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
ANYTHING = schema_grammar(True)  # noqa: FBT003 - the schema true
ASCII = Spelling(item_separator=",", key_separator=":", ascii=True)
CAPPED = Spelling(integer_digits=19, fraction_digits=17)


def grammar_of(schema: object, spelling: Spelling) -> Grammar:
    made = compile_schema(
        schema, pointer="", mode="exact", closed=False, spelling=spelling, names=RuleNames("root"), root_name="value"
    )
    return Grammar({"root": made.expr, **made.rules})


ANY_ASCII = grammar_of({}, ASCII)
ANY_CAPPED = grammar_of({}, CAPPED)


@settings(deadline=None)
@given(VALUES)
def test_every_value_has_a_spelling(value: object):
    text = spell(value)
    assert json.loads(text) == value
    assert ANYTHING.accepts(text)


@settings(deadline=None)
@given(VALUES)
def test_ascii(value: object):
    text = spell(value, ASCII)
    assert text.isascii()
    assert json.loads(text) == value
    assert ANY_ASCII.accepts(text)


@settings(deadline=None)
@given(NUMBERS)
def test_capped_numbers(value: float):
    text = spell_as(Canonical(ANY, {}), value, CAPPED)
    if text is not None:
        assert json.loads(text) == value
        assert ANY_CAPPED.accepts(text)
    elif isinstance(value, float):
        assert abs(value) >= 1e308
    else:
        assert abs(value) >= 10**19


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1e16, "1e+16"),
        (1.5e-7, "1.5e-7"),
        (5e-324, "5e-324"),
        (10**30, "1" + "0" * 30),
        ('"\\/\b\f\n\r\t\x00\x1f\x7f é😀', '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f é😀"'),
        ({"b": [1, None], "a": {}}, '{"b": [1, null], "a": {}}'),
        ([], "[]"),
    ],
)
def test_spellings(value: object, text: str):
    assert spell(value) == text


@pytest.mark.parametrize(
    "text", ['"\\/"', '"\\u0041"', '"\\u000a"', '"\\u001F"', "[1,2]", "[ ]", "1E5", "1e5", "1e+05", "10e+5"]
)
def test_no_other_spelling(text: str):
    assert json.loads(text) is not None
    assert not ANYTHING.accepts(text)


def test_exponents_may_be_written_as_people_do():
    free = grammar_of({"type": "number"}, Spelling(free=True))
    for text in (
        "8.99e9",
        "1e+9",
        "50e-6",
        "-12.57e-7",
        "100.5e3",
        "1.5e307",
        "99e305",
        "5e-06",
        "12.5e-07",
        "1e+09",
        "1.5e+00",
        "1E9",
        "-1.5E-03",
        "0.5e-3",
        "0.25E+6",
        "0.9e307",
    ):
        assert free.accepts(text), text
        assert math.isfinite(json.loads(text))
    for text in ("1e", "1e09", "1e+009", "1e-000", "1e-010", "1000e3", "0e3", "99e306", "1e308", "01e3", "0.0e3", "1E"):
        assert not free.accepts(text), text
    for value in (8.99e9, 5e-05, 1e300, -1.5e-7):
        spelled = spell_as(Canonical(types.Number(), {}), value, Spelling(free=True))
        assert spelled == spell(value)
        assert free.accepts(spelled)
    assert not grammar_of({"type": "number"}, Spelling()).accepts("8.99e9")


@pytest.mark.parametrize("bound", ["minimum", "exclusiveMinimum"])
def test_numbers_above_zero_have_exponents_too(bound: str) -> None:
    spelling = Spelling(free=True)
    free = grammar_of({"type": "number", bound: 0}, spelling)
    for text in ("5e-06", "3.2e5", "1.5e+00", "1e300", "0.5", "7", "1E5", "0.5e-3"):
        assert free.accepts(text), text
    for text in ("-5e-06", "0e5", "-1", "0.0e5", "-0.5E-3"):
        assert not free.accepts(text), text
    assert free.accepts("0") == (bound == "minimum")
    kind = types.Number(low=Decimal(0), low_open=bound != "minimum")
    for value in (5e-06, 1e30, 320000.0):
        spelled = spell_as(Canonical(kind, {}), value, spelling)
        assert spelled is not None
        assert free.accepts(spelled)
        assert json.loads(spelled) == value
    for other in ({"minimum": 0, "maximum": 5}, {"minimum": 1}, {"minimum": 0, "multipleOf": 0.5}):
        assert not grammar_of({"type": "number", **other}, spelling).accepts("3.2e0")


@pytest.mark.parametrize(
    ("text", "free"),
    [
        (r'"Z\u00fcrich"', True),
        (r'"Z\u00FCrich"', True),
        (r'"http:\/\/x"', True),
        (r'"\ud83d\ude00"', True),
        (r'"\uD83D\uDE00"', True),
        (r'"\u0041"', True),
        (r'"\u000a"', True),
        (r'"\ud83d"', False),
        (r'"\ude00"', False),
        (r'"\ud83d\u0041"', False),
        (r'"\x41"', False),
        (r'"\u00"', False),
    ],
)
def test_escapes_may_be_those_that_a_model_copies(text: str, free: bool) -> None:
    spelling = Spelling(free=True)
    assert grammar_of({"type": "string"}, spelling).accepts(text) == free
    if free:
        length = len(json.loads(text))
        exact = {"type": "string", "minLength": length, "maxLength": length}
        assert grammar_of(exact, spelling).accepts(text)
        assert not grammar_of({**exact, "minLength": length + 1, "maxLength": length + 1}, spelling).accepts(text)
    assert not grammar_of({"type": "string"}, Spelling()).accepts(text)


def test_no_escape_spells_a_key_that_is_declared() -> None:
    schema = {"type": "object", "properties": {"ab": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    grammar = grammar_of(schema, Spelling(free=True))
    assert grammar.accepts(r'{"c\\d": "\u00e9"}')
    assert not grammar.accepts(r'{"\u0061b": "x"}')
    assert not grammar.accepts(r'{"a\u0062": "x"}')


def test_escapes_beyond_ascii():
    assert spell("é\u2028😀", ASCII) == '"\\u00e9\\u2028\\ud83d\\ude00"'
    assert not ANY_ASCII.accepts('"é"')
    assert not ANY_ASCII.accepts('"\\u0041"')
    assert not ANY_ASCII.accepts('"\\ud83d"')
    two = grammar_of({"type": "string", "minLength": 2, "maxLength": 2}, ASCII)
    assert two.accepts('"\\ud83d\\ude00\\n"')
    assert not two.accepts('"\\ud83d\\ude00"')


def test_other_keys_beyond_ascii():
    grammar = grammar_of({"type": "object", "properties": {"é": {"type": "null"}, "😀": {"type": "null"}}}, ASCII)
    assert grammar.accepts('{"\\u00e9":null}')
    assert not grammar.accepts('{"\\u00e9":1}')
    assert not grammar.accepts('{"\\ud83d\\ude00":1}')
    assert grammar.accepts('{"\\u00ea":1}')
    assert grammar.accepts('{"\\ud83d\\ude01":1}')


@pytest.mark.parametrize("value", [math.inf, math.nan, "\ud800", {1: 2}, object(), {"\udfff": 1}, [b"x", {1}]])
def test_no_json_value(value: object):
    with pytest.raises(ValueError, match="no JSON value"):
        spell(value)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "integer"}, 1.0, "1"),
        ({"type": "integer"}, 1e22, "1" + "0" * 22),
        ({"type": "integer"}, 1.5, None),
        ({"type": "number"}, 5, "5"),
        ({"type": "number", "minimum": 0}, 1e22, "1" + "0" * 22),
        ({"type": "number", "maximum": 1}, 1e-7, "0.0000001"),
        ({"const": 2.0}, 2, "2"),
        ({"const": 1e300}, 1e300, "1e+300"),
        ({"enum": [0.5]}, 0.5, "0.5"),
        ({"properties": {"a": True, "b": True}}, {"z": 1, "b": 2, "a": 3}, '{"a": 3, "b": 2, "z": 1}'),
        ({"properties": {"a": {"type": "integer"}}}, {"a": True}, None),
        ({"type": "string", "maxLength": 1}, "😀", '"😀"'),
        ({"type": "string", "maxLength": 1}, "ab", None),
    ],
)
def test_the_spelling_that_a_type_admits(schema: object, value: object, text: str | None):
    made = compile_schema(
        schema, pointer="", mode="exact", closed=False, spelling=Spelling(), names=RuleNames("root"), root_name="value"
    )
    assert spell_as(made.type, value, Spelling()) == text
    if text is not None:
        assert Grammar({"root": made.expr, **made.rules}).accepts(text)


def test_a_value_that_nests_absurdly_has_no_spelling():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert spell_as(Canonical(ANY, {}), value, Spelling()) is None


def test_rule_names():
    names = RuleNames("root")
    assert names.fresh("root") == "root-2"
    assert names.fresh("getWeather_arguments") == "get-weather-arguments"
    assert names.fresh("getWeather-arguments") == "get-weather-arguments-2"
    assert names.fresh("9 lives") == "r-9-lives"
    assert names.fresh("日本") == "r"
    assert names.shared("string", 1) == names.shared("string", 1) == "string"
    assert names.shared("string", 2) == "string-2"


def test_numbers_of_any_length_are_of_a_type_or_not():
    made = normalize({"type": "number", "multipleOf": 7, "exclusiveMaximum": 0})
    long = 7 * 10**400
    assert spell_as(made.type, -long, Spelling()) == str(-long)
    assert spell_as(made.type, 1 - long, Spelling()) is None
    assert spell_as(made.type, long, Spelling()) is None
