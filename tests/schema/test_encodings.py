"""Notations other than JSON: what the grammar admits, what is written, what they cannot say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.errors import UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.schema import RuleNames, Spelling, compile_schema
from toolgram.schema.types import ANY, Canonical
from toolgram.schema.writing.notation import PYTHON, Encoding
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.notation import Transcoder

GEMMA = Encoding("gemma", quote='<|"|>', escapes=False, bare_keys=True)
SHORT_QUOTE = Encoding("ticks", quote="`", escapes=False, bare_keys=True)
BARE = Encoding("bare", bare_keys=True, true="yes", false="no", null="nil")
SINGLE = replace(PYTHON, name="single", quote="'", other_quote='"')
ENCODINGS = (GEMMA, SHORT_QUOTE, BARE, PYTHON, SINGLE)
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)


def compiled(schema: object, encoding: Encoding, mode: str = "exact", *, any_order: bool = False) -> Any:
    """The schema compiled in an encoding, as a tool's parameters."""
    return compile_schema(
        schema,
        pointer="",
        mode=mode,
        closed=False,
        spelling=Spelling(encoding=encoding),
        names=RuleNames("root"),
        root_name="value",
        parameters=True,
        any_order=any_order,
    )


def grammar_of(schema: object, encoding: Encoding, **options: Any) -> Grammar:
    made = compiled(schema, encoding, **options)
    return Grammar({"root": made.expr, **made.rules}, made.relaxations)


def read(text: str, encoding: Encoding) -> object:
    pieces: list[str] = []
    reader = Transcoder(encoding, pieces.append)
    end, _ = reader.consume(text, 0)
    assert end == len(text)
    return json.loads("".join(pieces))


KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=8)
OBJECT: dict[str, Any] = {"type": "object"}
DECLARED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {}, "abc": {"type": "string"}, "b1": {"type": "null"}},
}
OPEN = {encoding: grammar_of(OBJECT, encoding) for encoding in ENCODINGS}


@each_encoding
@given(value=st.dictionaries(KEYS, VALUES, max_size=3))
def test_what_is_spelled_is_admitted_and_read_back(encoding: Encoding, value: dict[str, object]) -> None:
    text = spell_as(Canonical(ANY, {}), value, Spelling(encoding=encoding))
    if text is None:
        assert encoding.quote in json.dumps(value, ensure_ascii=False)
        return
    assert read(text, encoding) == value
    assert OPEN[encoding].accepts(text)


@each_encoding
@pytest.mark.parametrize("schema", [OBJECT, DECLARED], ids=["open", "declared"])
def test_every_sentence_is_read(encoding: Encoding, schema: dict[str, Any]) -> None:
    made = compiled(schema, encoding)
    grammar = Grammar({"root": made.expr, **made.rules})
    for seed in range(100):
        text = grammar.sample(seed)
        value = read(text, encoding)
        again = spell_as(made.type, value, Spelling(encoding=encoding))
        assert again is not None
        assert grammar.accepts(again)


@pytest.mark.parametrize(
    ("encoding", "value", "text"),
    [
        (GEMMA, {"a": 'x"\n', "b": [True, None]}, '{a: <|"|>x"\n<|"|>, b: [true, null]}'),
        (GEMMA, {"a": {"größe": {}}}, None),
        (GEMMA, {"a": '<|<|"|>'}, None),
        (SHORT_QUOTE, {"a": "x"}, "{a: `x`}"),
        (BARE, {"a": True, "b": [False, None, '"']}, r'{a: yes, b: [no, nil, "\""]}'),
        (PYTHON, {"a": True, "b": {"a b": None}}, '(a=True, b={"a b": None})'),
        (PYTHON, {"a": 'it\'s "so"'}, '(a="it\'s \\"so\\"")'),
        (SINGLE, {"a": 'it\'s "so"', "b": {"a'b": []}}, "(a='it\\'s \"so\"', b={'a\\'b': []})"),
        (PYTHON, {}, "()"),
        (PYTHON, {"a b": 1}, None),
        (PYTHON, {"": 1}, None),
    ],
)
def test_spellings(encoding: Encoding, value: object, text: str | None) -> None:
    assert spell_as(Canonical(ANY, {}), value, Spelling(encoding=encoding)) == text
    if text is None:
        with pytest.raises(ValueError, match="no JSON value"):
            spell(value, Spelling(encoding=encoding))
    else:
        assert OPEN[encoding].accepts(text)


@pytest.mark.parametrize("key", ["a b", "a:", 'a"', ""])
def test_a_key_that_cannot_be_written_is_refused_or_left_out(key: str) -> None:
    encoding = GEMMA
    declared: dict[str, Any] = {"type": "object", "properties": {key: {"type": "null"}}}
    schema = {"allOf": [True, declared]}
    with pytest.raises(UnsupportedSchema, match="cannot write the key") as refused:
        compiled(schema, encoding, "exact")
    pointer = f"/allOf/1/properties/{key}"
    assert refused.value.pointer == pointer
    for required, told in (([], "no such key"), ([key], "no object")):
        made = compiled({"allOf": [True, declared | {"required": required}]}, encoding, "relaxed")
        (relaxation,) = made.relaxations
        assert (relaxation.pointer, relaxation.keyword, relaxation.kind) == (pointer, "properties", "stricter")
        assert relaxation.enforced.startswith(told)


def test_keys_beyond_ascii_and_keywords_are_keys_too() -> None:
    schema = {"type": "object", "properties": {"größe": {"type": "null"}, "from": {"type": "null"}}}
    assert grammar_of(schema, PYTHON).accepts("(größe=None, from=None)")
    assert grammar_of(schema, GEMMA).accepts("{größe: null, from: null}")
    inside = {"type": "object", "properties": {"x": {"const": {"a b": 1}}}}
    assert grammar_of(inside, PYTHON).accepts('(x={"a b": 1})')


@pytest.mark.parametrize(
    ("key", "written"),
    [("Content-Type", "Content-Type"), ("1st", "1st"), ("a b", '"a b"'), ("it's", '"it\'s"'), ("=", '"="'), ("", '""')],
)
def test_a_keyword_that_is_no_identifier_stands_as_it_is_or_in_quotes(key: str, written: str) -> None:
    """A tool that needs a `Content-Type` could not be called."""
    schema = {"type": "object", "properties": {key: {"type": "null"}}, "required": [key], "additionalProperties": False}
    grammar = grammar_of(schema, PYTHON)
    assert grammar.accepts(f"({written}=None)")
    assert not grammar.accepts("()")


def test_an_object_inside_itself_has_keyword_arguments_only_outermost() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    for any_order in (False, True):
        grammar = grammar_of(schema, PYTHON, any_order=any_order)
        assert grammar.accepts('(next={"next": {}})')
        assert not grammar.accepts('{"next": {}}')
        assert not grammar.accepts("(next=(next={}))")


def test_other_keys_are_none_of_the_declared() -> None:
    grammar = grammar_of(DECLARED, GEMMA)
    assert grammar.accepts("{ab: 1}")
    assert grammar.accepts("{abcd: 1, b: 2}")
    assert not grammar.accepts("{abc: 1}")
    assert not grammar.accepts("{b1: 1}")
    assert not grammar.accepts("{: 1}")
    assert not grammar.accepts("{1b: 1}")


def test_lengths_between_quotes_of_several_characters() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 3}}}
    for keyword in ("minLength", "maxLength"):
        with pytest.raises(UnsupportedSchema, match=keyword) as refused:
            compiled({"properties": {"a": {"type": "string", keyword: 2}}}, GEMMA)
        assert refused.value.pointer == "/properties/a"
    relaxed = grammar_of(schema, GEMMA, mode="relaxed")
    assert [(each.pointer, each.keyword) for each in relaxed.relaxations] == [
        ("/properties/a", "minLength"),
        ("/properties/a", "maxLength"),
    ]
    assert relaxed.accepts('{a: <|"|>x<|"|>}')
    exact = grammar_of(schema, SHORT_QUOTE)
    assert [exact.accepts(f"{{a: `{text}`}}") for text in ("x", "xx", "xxx", "xxxx")] == [False, True, True, False]
    assert grammar_of({"properties": {"a": {"type": "string", "maxLength": 0}}}, GEMMA).accepts('{a: <|"|><|"|>}')


def test_constants_that_hold_the_quote() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", '<|"|>']}}}
    with pytest.raises(UnsupportedSchema, match="enum"):
        compiled(schema, GEMMA)
    grammar = grammar_of(schema, GEMMA, mode="relaxed")
    assert [each.keyword for each in grammar.relaxations] == ["enum"]
    assert grammar.accepts('{a: <|"|>x<|"|>}')
    assert not grammar.accepts('{a: <|"|><|"|><|"|>}')


@pytest.mark.parametrize(
    "options",
    [
        {"quote": "'"},
        {"other_quote": "`"},
        {"other_quote": "'", "escapes": False, "bare_keys": True},
        {"quote": "'''", "escapes": False, "bare_keys": True},
        {"quote": "", "escapes": False, "bare_keys": True},
        {"quote": "<q>", "escapes": False},
    ],
)
def test_a_notation_that_cannot_be_told_apart(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="odd: "):
        Encoding("odd", **options)
