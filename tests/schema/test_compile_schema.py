"""Refusals, relaxations, openness and order of keys."""

import itertools
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from toolgram.errors import GrammarError, InvalidSchema, Relaxation, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.schema import Compiled, RuleNames, Spelling, compile_schema, compile_type, schema_grammar
from toolgram.schema.types import Object


def compiled(schema: object, **options: Any) -> Compiled:
    settings: dict[str, Any] = {"pointer": "", "mode": "relaxed", "closed": True, "spelling": Spelling()}
    return compile_schema(schema, **{**settings, "names": RuleNames("root"), "root_name": "value", **options})


def grammar_of(schema: object, **options: Any) -> Grammar:
    made = compiled(schema, **options)
    return Grammar({"root": made.expr, **made.rules}, made.relaxations)


def is_empty(grammar: Grammar) -> bool:
    try:
        grammar.sample(0)
    except GrammarError:
        return True
    return False


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"type": 5}, "", "type"),
        ({"type": "text"}, "", "type"),
        ({"required": "a"}, "", "required"),
        ({"properties": {"a/b~c": {"enum": 1}}}, "/properties/a~1b~0c", "enum"),
        ({"items": {"anyOf": []}}, "/items", "anyOf"),
        ({"$ref": "#/$defs/none"}, "", "$ref"),
        ({"$ref": "#none"}, "", "$ref"),
        ({"$ref": "#"}, "", "$ref"),
        ({"$dynamicRef": "#none"}, "", "$dynamicRef"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "/$defs/a", "$ref"),
        ({"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}, {"type": "null"}]}}}, "/properties/a", "$ref"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "minimum": 1, "exclusiveMinimum": True}, "", None),
        ({"minimum": float("nan")}, "", "minimum"),
        ({"const": float("inf")}, "", "const"),
        ({"minLength": -1}, "", "minLength"),
        ({"$id": 5}, "", "$id"),
        (5, "", ""),
        ([], "", ""),
        (None, "", ""),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "relaxed"])
def test_what_is_no_schema(schema: object, pointer: str, keyword: str | None, mode: str):
    with pytest.raises(InvalidSchema) as caught:
        compiled(schema, mode=mode, pointer="/here")
    assert caught.value.pointer == "/here" + pointer
    assert keyword is None or caught.value.keyword == keyword


REFUSED = [
    ({"type": "string", "pattern": "(a)\\1"}, "pattern", '"b"'),
    ({"type": "string", "pattern": "("}, "pattern", '"b"'),
    ({"type": "string", "format": "regex"}, "format", '"("'),
    ({"type": "string", "format": "email", "enum": ["a b"]}, "type", '"a b"'),
    ({"type": "string", "format": "email", "minLength": 1000}, "format", f'"{1000 * "b"}"'),
    ({"type": "string", "format": "uri", "minLength": 1, "maxLength": 99}, "maxLength", f'"https://{99 * "b"}"'),
    ({"type": "string", "pattern": "^(?:ab?)*c(?!d)", "maxLength": 99_999}, "maxLength", f'"{99_999 * "a"}c"'),
    ({"type": "number", "multipleOf": 1234567}, "multipleOf", "3"),
    ({"type": "array", "uniqueItems": True}, "uniqueItems", "[1, 1]"),
    (
        {"type": "array", "contains": {"type": "string", "format": "email"}, "maxContains": 1},
        "contains",
        '["a@b.c", "a@b.c"]',
    ),
    ({"type": "object", "patternProperties": {"(a)\\1": False}}, "patternProperties", '{"aa": 1}'),
    ({"type": "object", "minProperties": 2}, "minProperties", '{"a": 1}'),
    ({"if": {"type": "string", "format": "email"}, "then": False}, "if", '"a@b.c"'),
    ({"not": {"type": "number", "multipleOf": 2}}, "not", "2"),
    ({"oneOf": [{"type": "string", "format": "email"}, {"type": "string", "maxLength": 9}]}, "oneOf", '"a@b.c"'),
    ({"$dynamicRef": "https://example.com/schema#x"}, "$dynamicRef", "1"),
    ({"$ref": "https://example.com/schema"}, "$ref", "1"),
]


@pytest.mark.parametrize(("schema", "keyword", "admitted"), REFUSED)
def test_refused_or_relaxed(schema: dict[str, object], keyword: str, admitted: str):
    document = {"type": "array", "prefixItems": [schema]}
    with pytest.raises(UnsupportedSchema) as caught:
        schema_grammar(document)
    assert (caught.value.pointer, caught.value.keyword) == ("/prefixItems/0", keyword)
    grammar = schema_grammar(document, mode="relaxed")
    assert [(item.pointer, item.keyword) for item in grammar.relaxations] == [("/prefixItems/0", keyword)]
    assert grammar.accepts(f"[{admitted}]")


@pytest.mark.parametrize("kind", ["uri", "email"])
@pytest.mark.parametrize("lengths", [{"maxLength": 50}, {"minLength": 1, "maxLength": 255}, {"minLength": 8}])
def test_a_format_is_worth_more_than_a_length(kind: str, lengths: dict[str, int]):
    text = {"uri": "https://example.com", "email": "ada@example.com"}[kind]
    for pattern in ({}, {"pattern": "example"}):
        grammar = grammar_of({"type": "string", "format": kind, **pattern, **lengths})
        assert {each.keyword for each in grammar.relaxations} <= {"minLength", "maxLength"}
        assert grammar.accepts(f'"{text}"')
        assert not grammar.accepts('"example and more"')


# What zod 4 writes for `z.email()`, `z.hostname()` and `z.iso.time()`, and the pattern for URLs that everybody copies
ZOD_EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
ZOD_HOSTNAME = (
    r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$"
)
ZOD_TIME = r"^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?$"
URL = (
    r"^https?:\/\/(www\.)?[-a-zA-Z0-9@:%._\+~#=]{1,256}\.[a-zA-Z0-9()]{1,6}\b"
    r"([-a-zA-Z0-9()@:%_\+.~#?&//=]*)$"
)
LONGER_PARTS = [
    ({"pattern": URL}, ["https://www.example.com/a?b=1", "http://example.org"], ["example.org", "https://a b"]),
    ({"pattern": ZOD_HOSTNAME}, ["localhost", "api.eu-west-1.example.com"], ["-a.com", "a b", "a..b"]),
    (
        {"pattern": ZOD_HOSTNAME, "format": "hostname"},
        ["localhost", "api.eu-west-1.example.com"],
        ["-a.com", "a b", "x" * 300],
    ),
]


@pytest.mark.parametrize(("limits", "good", "bad"), LONGER_PARTS)
def test_a_pattern_that_is_too_large_for_its_counts_is_enforced_without_them(
    limits: dict[str, object], good: list[str], bad: list[str]
):
    grammar = grammar_of({"type": "string", **limits})
    assert grammar.relaxations == (Relaxation("", "pattern", "the pattern, with parts of any length"),)
    assert [text for text in good if not grammar.accepts(f'"{text}"')] == []
    assert [text for text in bad if grammar.accepts(f'"{text}"')] == []
    with pytest.raises(UnsupportedSchema, match="pattern: cannot be enforced: it has too many cases"):
        schema_grammar({"type": "string", **limits})


@pytest.mark.parametrize("pattern", [r"^(?:a{1,200}b?){1,200}(?!c{1,9}$)c*$", r"^(?=.{1,400}$)(?:x{0,61}y)*(?<!zz)z*$"])
def test_without_its_counts_a_pattern_matches_wherever_it_did(pattern: str):
    grammar = grammar_of({"type": "string", "pattern": pattern})
    texts = ["ab", "a", "aabc", "abccc", "y", "xy", "xxyxy", "", "c", "z", "zzy"]
    assert [text for text in texts if re.search(pattern, text) and not grammar.accepts(f'"{text}"')] == []


@pytest.mark.parametrize(
    ("limits", "good"),
    [
        ({"format": "email", "maxLength": 255}, "ann.lee@mail.example.co.uk"),
        ({"format": "email", "maxLength": 254, "pattern": ZOD_EMAIL}, "ann.lee@mail.example.co.uk"),
        ({"format": "hostname", "maxLength": 253}, "a.b.mail.example.co.uk"),
        ({"format": "hostname", "maxLength": 200}, "mail.example.co.uk"),
    ],
)
def test_a_host_name_has_no_more_labels_than_its_length_allows(limits: dict[str, object], good: str):
    grammar = schema_grammar({"type": "string", **limits})
    assert grammar.accepts(f'"{good}"')
    assert max(len(grammar.sample(seed)) for seed in range(30)) <= limits["maxLength"] + 2


def test_the_lengths_of_parts_are_exact_where_they_have_to_be():
    grammar = schema_grammar({"type": "string", "format": "email", "pattern": ZOD_EMAIL})
    assert grammar.accepts(f'"{"x" * 64}@example.com"')
    assert not grammar.accepts(f'"{"x" * 65}@example.com"')


def test_lengths_beside_a_pattern_are_left_out_where_counting_takes_pages():
    slug = {"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$"}
    short, long = (grammar_of({**slug, "minLength": 2, "maxLength": most}) for most in (255, 1000))
    assert short.relaxations == ()
    assert [short.accepts(f'"{"a" * count}"') for count in (255, 256)] == [True, False]
    assert long.relaxations == (Relaxation("", "maxLength", "the pattern, however long"),)
    assert [text for text in ("a-b", "a" * 1001, "a", "a--b") if long.accepts(f'"{text}"')] == ["a-b", "a" * 1001]
    assert len(long.to("gbnf")) < 500
    exact = schema_grammar({**slug, "maxLength": 1000})
    assert [exact.accepts(f'"{"a" * count}"') for count in (1000, 1001)] == [True, False]


@pytest.mark.parametrize(
    ("limits", "good", "bad"),
    [
        ({"format": "time", "pattern": ZOD_TIME}, "07:30", "07:30:00Z"),
        ({"format": "date", "pattern": r"^\d{2}\.\d{2}\.\d{4}$"}, "24.11.2026", "2026-11-24"),
    ],
)
def test_a_format_that_the_pattern_beside_it_rules_out_is_not_enforced(limits: dict[str, object], good: str, bad: str):
    grammar = grammar_of({"type": "string", **limits})
    assert grammar.relaxations == (Relaxation("", "format", "the pattern alone"),)
    assert (grammar.accepts(f'"{good}"'), grammar.accepts(f'"{bad}"')) == (True, False)


def test_a_format_that_the_pattern_beside_it_rules_out_is_refused_with_the_reason():
    with pytest.raises(UnsupportedSchema, match="format: cannot be enforced: no string of it has the pattern"):
        schema_grammar({"type": "string", "format": "time", "pattern": ZOD_TIME})


def test_where_a_text_may_be_longer_it_is_not_empty_for_that():
    words = {"type": "string", "pattern": r"^$|^(?:\S+\s+){0,99}\S+$", "minLength": 1, "maxLength": 5000}
    grammar = grammar_of(words)
    assert grammar.relaxations == (Relaxation("", "maxLength", "the pattern, however long"),)
    assert [text for text in ("", " ", "a ") if grammar.accepts(f'"{text}"')] == []
    assert grammar.accepts('"a b"')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "pattern": "^a"},
        {"type": "integer", "multipleOf": 1},
        {"type": "array", "uniqueItems": False},
        {"type": "object", "minProperties": 1, "required": ["a"]},
        {"type": "string", "format": "email", "x-anything": 1, "contentEncoding": "base64"},
        {"then": False},
        {"oneOf": [{"type": "null"}, {"type": "string"}, {"type": "object"}]},
        {"oneOf": [{"const": 1}, {"const": 2}, {"minimum": 3, "type": "number"}]},
        {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in ("a", "b")
            ]
        },
    ],
)
def test_what_needs_no_relaxation(schema: object):
    assert schema_grammar(schema).relaxations == ()


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "string", "const": 1},
        {"type": "integer", "minimum": 1, "maximum": 0},
        {"type": "number", "exclusiveMinimum": 1, "maximum": 1},
        {"type": "string", "minLength": 2, "maxLength": 1},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"not": {}},
    ],
)
def test_the_impossible_is_the_empty_language(schema: object):
    assert is_empty(schema_grammar(schema))


def test_nullable_is_openapis_only_in_relaxed_mode():
    schema = {"type": "string", "nullable": True}
    assert not schema_grammar(schema).accepts("null")
    relaxed = schema_grammar(schema, mode="relaxed")
    assert relaxed.accepts("null")
    assert relaxed.relaxations == (Relaxation("", "nullable", "null is a value too, as OpenAPI 3.0 has it"),)
    unit = {"type": "string", "enum": ["m"]}
    for schema in (
        {**unit, "nullable": True},
        {"allOf": [{"$ref": "#/$defs/unit"}], "nullable": True},
        {"$ref": "#/$defs/unit", "nullable": True},
        {"oneOf": [{"$ref": "#/$defs/unit"}, {"type": "integer"}], "nullable": True},
    ):
        relaxed = schema_grammar({**schema, "$defs": {"unit": unit}}, mode="relaxed")
        assert [text for text in ("null", '"m"') if not relaxed.accepts(text)] == []
        assert not relaxed.accepts('"k"')
        assert [each.keyword for each in relaxed.relaxations] == ["nullable"]


def test_a_discriminator_is_openapis_only_in_relaxed_mode():
    cat = {"type": "object", "properties": {"kind": {"const": "cat", "default": "cat"}, "lives": {"type": "integer"}}}
    dog = {"type": "object", "properties": {"kind": {"const": "dog"}, "name": {"const": "Rex"}}, "required": ["kind"]}
    schema = {
        "oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/cat", "dog": "#/$defs/dog"}},
        "$defs": {"cat": cat, "dog": dog},
    }
    exact, relaxed = grammar_of(schema, mode="exact"), grammar_of(schema)
    assert exact.accepts('{"lives": 9}')
    assert not relaxed.accepts('{"lives": 9}')
    assert [text for text in ('{"kind": "cat", "lives": 9}', '{"kind": "dog"}') if not relaxed.accepts(text)] == []
    told = "the key 'kind' is there, as OpenAPI has it"
    assert relaxed.relaxations == (Relaxation("/oneOf/0", "discriminator", told, "stricter"),)
    assert not relaxed.accepts("{}")


def test_a_relaxation_says_whether_a_keyword_is_enforced_less_or_more():
    unpaired = schema_grammar({"enum": ["a", "\ud800"]}, mode="relaxed").relaxations
    assert [str(each) for each in unpaired] == [
        "(root): enum is stricter than asked: what cannot be written is left out"
    ]
    unique = schema_grammar({"type": "array", "uniqueItems": True}, mode="relaxed").relaxations
    assert [str(each) for each in unique] == ["(root): uniqueItems is not enforced: items may be equal"]
    assert [each.kind for each in (*unpaired, *unique)] == ["stricter", "not enforced"]


def test_siblings_of_a_reference_count_from_2019_on():
    schema = {"$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x", "maxLength": 1}
    assert not schema_grammar(schema).accepts('"ab"')
    assert schema_grammar({"$schema": "http://json-schema.org/draft-07/schema#", **schema}).accepts('"ab"')


def test_a_draft_does_not_know_later_keywords():
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "const": 1, "prefixItems": [False], "if": True}
    assert schema_grammar(schema).accepts("[2]")


def test_a_part_of_a_type_compiles_alone():
    schema = {"$defs": {"x": {"const": 1}}, "properties": {"a": {"items": {"$ref": "#/$defs/x"}, "type": "array"}}}
    made = compiled(schema, parameters=True)
    root = made.type.resolve(made.type.root)
    assert isinstance(root, Object)
    part = replace(made.type, root=root.properties[0].value)
    one = compile_type(part, spelling=Spelling(), names=RuleNames("root"), root_name="a")
    grammar = Grammar({"root": one.expr, **one.rules})
    assert grammar.accepts("[1, 1]")
    assert not grammar.accepts("[2]")


def test_drafts_have_their_own_tuples_and_bounds():
    old = schema_grammar({"items": [{"const": 1}], "additionalItems": False, "type": "array"})
    assert old.accepts("[1]")
    assert not old.accepts("[1, 2]")
    assert not schema_grammar({"type": "integer", "minimum": 1, "exclusiveMinimum": True}).accepts("1")


def test_references_with_escapes_ids_and_anchors():
    defs = {"a/b~ %": {"const": 1}, "named": {"$anchor": "here", "const": 2}, "far": {"$id": "other", "const": 3}}
    refs = ["#/$defs/a~1b~0%20%25", "#here", "other", "https://example.com/other", "#/$defs/named"]
    for reference, value in zip(refs, "12332", strict=True):
        schema = {"$id": "https://example.com/root", "$defs": defs, "$ref": reference}
        grammar = schema_grammar(schema)
        assert [grammar.accepts(text) for text in "123"] == [text == value for text in "123"]


def test_references_are_found_beside_tuples_where_no_draft_is_stated():
    pair = {"items": [{"type": "integer"}, {"$anchor": "text", "type": "string"}], "additionalItems": False}
    node = {"$id": "Node", "type": "object", "properties": {"next": {"$ref": "Node"}}}
    schema = {"type": "object", "properties": {"pair": {"type": "array", **pair}, "node": node, "t": {"$ref": "#text"}}}
    grammar = grammar_of(schema)
    assert grammar.accepts('{"pair": [1, "a"], "node": {"next": {"next": {}}}, "t": "x"}')
    assert not grammar.accepts('{"node": {"next": {"next": 1}}}')
    assert not grammar.accepts('{"t": 1}')


def test_a_resolver_gives_remote_documents():
    documents = {"https://example.com/pair": {"prefixItems": [{"$ref": "#/$defs/one"}], "$defs": {"one": {"const": 1}}}}
    grammar = schema_grammar({"$ref": "https://example.com/pair"}, resolver=documents.get)
    assert grammar.accepts("[1]")
    assert not grammar.accepts("[2]")


def test_what_a_resolver_raises_is_not_hidden():
    def broken(uri: str) -> object:
        raise OSError(uri)

    with pytest.raises(OSError, match="example"):
        schema_grammar({"$ref": "https://example.com/x"}, resolver=broken)


def test_openness():
    inner = {"type": "object", "properties": {"b": {"const": 1}}}
    schema = {"type": "object", "properties": {"a": inner, "free": {"type": "object"}}}
    closed, open_ = grammar_of(schema, closed=True), grammar_of(schema, closed=False)
    for text in ('{"a": {"b": 1}}', '{"free": {"x": [1]}}', "{}"):
        assert closed.accepts(text)
        assert open_.accepts(text)
    for text in ('{"z": 1}', '{"a": {"c": 1}}'):
        assert not closed.accepts(text)
        assert open_.accepts(text)


def test_a_closed_object_has_the_keys_of_all_its_parts():
    parts = [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}, "required": ["b"]}]
    grammar = grammar_of({"type": "object", "allOf": parts}, closed=True)
    assert grammar.accepts('{"a": 1, "b": 2}')
    assert not grammar.accepts('{"a": 1, "b": 2, "c": 3}')


BY_ID, BY_NAME = (
    {"properties": {key: {"type": kind}}, "required": [key]} for key, kind in (("a", "integer"), ("b", "string"))
)
ONLY_IN_ASIA = {"if": {"properties": {"in": {"const": "Asia"}}}, "then": {"required": ["a"]}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"oneOf": [BY_ID, BY_NAME]}, ['{"a": 1}', '{"b": "x"}'], ['{"a": 1, "b": 2}', '{"b": "x", "a": "y"}']),
        (
            {"oneOf": [BY_ID, BY_NAME], "properties": {"n": {"type": "null"}}},
            ['{"n": null, "a": 1}', '{"b": "x"}'],
            ['{"n": null, "a": 1, "b": 2}'],
        ),
        (
            {"oneOf": [BY_ID, BY_NAME], "properties": {"a": {}, "b": {}}},  # which are asked for in every case
            ['{"a": 1}', '{"a": 1, "b": 2}', '{"a": null, "b": "x"}'],
            ['{"a": 1, "b": "x"}', '{"a": null, "b": 2}'],
        ),
        (
            {"oneOf": [BY_ID, {**BY_NAME, "additionalProperties": False}]},
            ['{"a": 1}', '{"b": "x"}'],
            ['{"a": 1, "c": 1}'],
        ),
        ({"properties": {"a": {"type": "integer"}}, "not": BY_NAME}, ["{}", '{"a": 1}'], ['{"b": 1}', '{"z": 1}']),
        (
            {"properties": {"in": {"type": "string"}, "a": {"type": "integer"}}, **ONLY_IN_ASIA},
            ['{"in": "Asia", "a": 1}', '{"in": "x"}', '{"in": "x", "a": 1}'],
            ['{"in": "Asia"}', '{"in": "x", "z": 1}', '{"in": "Asia", "a": 1, "z": 1}'],
        ),
    ],
)
def test_a_key_that_keeps_another_branch_from_holding_is_not_declared_by_it(
    schema: dict[str, Any], good: list[str], bad: list[str]
):
    grammar = grammar_of({"type": "object", **schema}, closed=True)
    assert [text for text in good if not grammar.accepts(text)] == []
    assert [text for text in bad if grammar.accepts(text)] == []


@pytest.mark.parametrize("schema", [{}, True, {"type": "object"}, {"type": "object", "properties": {}}, {"title": "x"}])
def test_parameters_without_properties_are_the_empty_object(schema: object):
    grammar = grammar_of(schema, parameters=True)
    assert grammar.accepts("{}")
    assert not grammar.accepts('{"a": 1}')
    assert not grammar.accepts("1")


STRAYS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"city": {"type": "string"}, "days": {"enum": [1, 2]}}, ("city", "days")),
    ({"type": "object", "city": {"type": "string"}}, ("city",)),
    ({"type": "object", "description": "What it takes.", "city": "string", "days": "integer"}, ("city", "days")),
]


@pytest.mark.parametrize(("schema", "names"), STRAYS)
def test_parameters_beside_properties_are_told(schema: dict[str, Any], names: tuple[str, ...]):
    """The model is shown them, and can write none of them."""
    made = compiled(schema, parameters=True)
    told = f"it does not hold {', '.join(map(repr, names))}"
    assert made.relaxations == (Relaxation("", "properties", f"no arguments: {told}", "stricter"),)
    assert grammar_of(schema, parameters=True).accepts("{}")
    with pytest.raises(UnsupportedSchema, match=f"properties: cannot be enforced: {told}"):
        compiled(schema, parameters=True, mode="exact")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "title": "string", "format": "number", "default": {"type": "a"}, "x-by": {"type": "b"}},
        {"type": "object", "$defs": {"a": {"type": "string"}}, "$comment": "object", "by": {"name": "c"}},
        {"type": "object", "properties": {}, "order": {"type": "string"}},
    ],
)
def test_what_is_beside_properties_and_no_parameter_is_not_told(schema: dict[str, Any]):
    assert compiled(schema, parameters=True).relaxations == ()


def test_parameters_are_an_object():
    schema = {"$defs": {"p": {"properties": {"a": {"const": 1}}, "required": ["a"]}}, "$ref": "#/$defs/p"}
    grammar = grammar_of(schema, parameters=True)
    assert grammar.accepts('{"a": 1}')
    assert not grammar.accepts("1")
    assert grammar_of({"type": "object", "additionalProperties": {"type": "null"}}, parameters=True).accepts(
        '{"a": null}'
    )


def test_other_keys_are_none_of_the_declared():
    names = ["a", "ab", "abc", "b", "", "x" * 300, 'q"', "é"]
    schema = {"type": "object", "properties": dict.fromkeys(names, False), "additionalProperties": {"const": 1}}
    grammar = schema_grammar(schema)
    for name in names:
        assert not grammar.accepts(json.dumps({name: 1}, ensure_ascii=False)), name
    for name in ("abcd", "ac", "c", "x" * 299, "x" * 301, "q", 'q""', "è", "\n"):
        assert grammar.accepts(json.dumps({name: 1}, ensure_ascii=False)), name


def test_optional_keys_come_in_every_order():
    for size in (2, 5):
        names = "abcde"[:size]
        grammar = schema_grammar(
            {"type": "object", "properties": {name: {"const": 1} for name in names}, "additionalProperties": False}
        )
        for count in range(size + 1):
            for keys in itertools.permutations(names, count):
                text = "{" + ", ".join(f'"{key}": 1' for key in keys) + "}"
                assert grammar.accepts(text), text
                assert not keys or not grammar.accepts(text[:-1] + f', "{keys[0]}": 1}}'), text


@pytest.mark.parametrize(
    "condition", [{"dependentRequired": {"a": ["b"]}}, {"if": {"required": ["a"]}, "then": {"required": ["b"]}}]
)
def test_keys_that_some_objects_alone_must_have_come_in_every_order(condition: dict[str, object]) -> None:
    schema = {"type": "object", "properties": {key: {"const": 1} for key in "abc"}, "additionalProperties": False}
    grammar = schema_grammar(schema | condition)
    for count in range(4):
        for keys in itertools.permutations("abc", count):
            text = "{" + ", ".join(f'"{key}": 1' for key in keys) + "}"
            assert grammar.accepts(text) == ("a" not in keys or "b" in keys), text


def test_keys_of_one_of_several_schemas_keep_their_order() -> None:
    schemas = [
        {"properties": {key: {"const": 1} for key in names}, "required": names, "additionalProperties": False}
        for names in (["thought", "answer"], ["refusal"])
    ]
    grammar = schema_grammar({"type": "object", "anyOf": schemas})
    assert grammar.accepts('{"thought": 1, "answer": 1}')
    assert not grammar.accepts('{"answer": 1, "thought": 1}')


@pytest.mark.parametrize("other", [False, {"const": 2}])
def test_any_order(other: object):
    schema = {
        "type": "object",
        "properties": {name: {"const": 1} for name in "abc"},
        "required": ["a", "c"],
        "additionalProperties": other,
    }
    grammar = schema_grammar(schema, any_order=True)
    for count in range(4):
        for keys in itertools.permutations("abc", count):
            text = "{" + ", ".join(f'"{key}": 1' for key in keys) + "}"
            assert grammar.accepts(text) == ({"a", "c"} <= set(keys)), text
    assert not grammar.accepts('{"a": 1, "c": 1, "a": 1}')
    assert grammar.accepts('{"z": 2, "c": 1, "y": 2, "a": 1, "x": 2}') == bool(other)


def test_too_many_orders():
    keys = [f"k{index}" for index in range(7)]
    with pytest.raises(UnsupportedSchema) as caught:
        schema_grammar({"type": "object", "required": keys}, any_order=True)
    assert caught.value.keyword == "properties"


def test_absurd_nesting_is_refused():
    schema: dict[str, object] = {"type": "null"}
    for _ in range(5000):
        schema = {"items": schema, "type": "array"}
    with pytest.raises(UnsupportedSchema):
        schema_grammar(schema)
    assert schema_grammar(schema, mode="relaxed").accepts("[[[[1]]]]") is False
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(UnsupportedSchema):
        schema_grammar({"const": value})


def test_long_chains_of_references():
    count = 1000
    defs = {
        f"d{index}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/d{index + 1}"}}}
        for index in range(count)
    }
    grammar = schema_grammar({"$defs": {**defs, f"d{count}": {"const": 1}}, "$ref": "#/$defs/d0"})
    assert grammar.accepts('{"n": {"n": {}}}')


def test_long_chains_of_bare_references():
    defs: dict[str, object] = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(1000)}
    grammar = schema_grammar({"$defs": {**defs, "d1000": {"const": 1}}, "$ref": "#/$defs/d0"})
    assert grammar.accepts("1")
    assert not grammar.accepts("2")


def test_an_exploding_intersection_is_refused():
    branches = [{"anyOf": [{"required": [f"{part}{index}"]} for index in range(10)]} for part in "abcdefgh"]
    with pytest.raises(UnsupportedSchema):
        schema_grammar({"type": "object", "allOf": branches})
    assert schema_grammar({"type": "object", "allOf": branches}, mode="relaxed").relaxations


def test_rules_are_shared_over_a_grammar():
    names = RuleNames("root")
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "y": {}}}
    one = compiled(schema, names=names, root_name="one")
    two = compiled(schema, names=names, root_name="two")
    shared = one.rules.keys() & two.rules.keys()
    assert "json-value" in shared
    assert all(one.rules[name] == two.rules[name] for name in shared)
    assert {"one", "two"} == {name for name in one.rules | two.rules if name in ("one", "two")}


def test_caps_are_reported():
    capped = Spelling(integer_digits=19, fraction_digits=17)
    assert compiled({"type": "integer"}, spelling=capped).capped
    assert compiled({}, spelling=capped).capped
    assert compiled({"type": "number", "minimum": 0}, spelling=capped).capped
    assert not compiled({"type": "integer", "minimum": 0, "maximum": 10}, spelling=capped).capped
    assert not compiled({"type": "integer"}).capped
    assert not compiled({"type": "string"}, spelling=capped).capped


def test_no_such_mode():
    with pytest.raises(ValueError, match="no mode"):
        schema_grammar({}, mode="loose")  # pyright: ignore[reportArgumentType] # that is what is tested
