"""The 2024 lowering on schemas that its document does not show."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from toolgram.errors import InvalidSchema, UnsupportedSchema
from toolgram.grammar.dialects.gbnf_reader import read_gbnf
from toolgram.grammar.grammar import Grammar
from toolgram.reference.grammars import answer_grammar, functionary_grammar, tagged_grammar, thoughtful_steps_grammar
from toolgram.reference.lowering import Lowering

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "height": {"type": "number"},
        "alive": {"type": "boolean"},
        "home": {"properties": {"city": {"type": "string"}, "geo": {"type": "array", "items": {"type": "number"}}}},
        "kind": {"enum": ["cat", 'd"og', None]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "kind"],
}

SCHEMAS: dict[str, Any] = {
    "person": PERSON,
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "any object": {"type": "object"},
    "open object": {"type": "object", "additionalProperties": True},
    "no members": {"type": "object", "additionalProperties": False},
    "const": {"const": {"a": [1, "\\ \n"]}},
    "list": {"type": "array"},
    "list of lists": {"items": {"items": {"type": "boolean"}}},
    "at least two": {"type": "array", "items": {"type": "null"}, "minItems": 2},
    "at most two": {"type": "array", "items": {"type": "null"}, "maxItems": 2},
    "none": {"type": "array", "items": {"type": "null"}, "maxItems": 0},
    "tuple": {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
    "union": {"anyOf": [{"type": "integer"}, {"properties": {"x": {"type": "null"}}, "required": ["x"]}]},
    "types": {"type": ["string", "array"], "items": {"type": "integer"}},
    "named like rules": {
        "properties": {
            name: {"properties": {name: {"type": "integer"}}}
            for name in ("root", "string", "space", "decimal_part", "integer", "", "a b", "a-b", "é")
        },
        "required": ["root", "string", "space", "decimal_part", "integer", "", "a b", "a-b", "é"],
    },
}

_SURROGATE = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F]..")


def grammar(text: str) -> Grammar:
    return Grammar(read_gbnf(text))


@pytest.mark.parametrize("name", SCHEMAS)
def test_sentences_match_the_schema(name: str) -> None:
    schema = SCHEMAS[name]
    compiled = grammar(answer_grammar(schema))
    validator = jsonschema_rs.validator_for({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    for seed in range(40):
        sentence = compiled.sample(seed)
        assert compiled.accepts(sentence)
        assert validator.is_valid(_loaded(sentence)), sentence


def _loaded(sentence: str) -> Any:
    """The value, but for what the 2024 rules let by: control characters, lone surrogates, numbers without bounds."""
    return json.loads(_SURROGATE.sub(r"\1?", sentence), strict=False, parse_float=lambda _: 0.5)


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "person": [
            {"name": "Ada", "kind": "cat"},
            {"name": "", "kind": 'd"og', "age": -36, "alive": True, "tags": ["a"]},
            {"name": "é\n", "kind": None, "height": 1.75e3, "home": {}, "tags": ["a", "b", "b"]},
            {"name": "x", "kind": None, "home": {"geo": [1, 2.5]}},
        ],
        "any": [None, [], {}, {"a": [1, {"b": "c"}]}, "text"],
        "any object": [{}, {"a": 1, "b": []}],
        "no members": [{}],
        "const": [{"a": [1, "\\ \n"]}],
        "list": [[], [1, "a", []]],
        "list of lists": [[], [[]], [[True], [False, True]]],
        "at least two": [[None] * 2, [None] * 5],
        "at most two": [[], [None], [None] * 2],
        "none": [[]],
        "tuple": [[1, "a"]],
        "union": [3, {"x": None}],
        "types": ["a", [1, 2]],
    }.items(),
)
def test_values_are_accepted(name: str, values: list[Any]) -> None:
    compiled = grammar(answer_grammar(SCHEMAS[name]))
    for value in values:
        assert compiled.accepts(_ordered(value, SCHEMAS[name])), value


def _ordered(value: Any, schema: Any) -> str:
    """The JSON of a value, the required members first, as the 2024 grammars have it."""
    if isinstance(value, dict) and "properties" in schema:
        first = [key for key in schema["properties"] if key in value and key in schema.get("required", ())]
        rest = [key for key in schema["properties"] if key in value and key not in first]
        value = {key: value[key] for key in first + rest}
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "texts"),
    {
        "person": ['{"name": "Ada"}', '{"kind": "cat", "name": "Ada"}', '{"name": "a", "kind": "cow"}', "{}"],
        "at least two": ["[null]", "[]"],
        "at most two": ["[null, null, null]"],
        "none": ["[null]"],
        "no members": ['{"a": 1}'],
        "tuple": ['["a", 1]', "[1]", '[1, "a", 2]'],
        "union": ["null", "{}"],
        "number": ["01", "1.", "123456789012"],
        "boolean": ["null", '"true"'],
    }.items(),
)
def test_texts_are_refused(name: str, texts: list[str]) -> None:
    compiled = grammar(answer_grammar(SCHEMAS[name]))
    for text in texts:
        assert not compiled.accepts(text), text


def test_rules_of_optional_members_and_lists() -> None:
    lowering = Lowering()
    schema = {
        "properties": {"a": {"type": "null"}, "b": {"items": {"type": "null"}}, "c": {"enum": [1, "x"]}},
        "required": ["b"],
    }
    lowering.schema(schema, None)
    assert lowering.text().split("\n") == [
        r'a-kv ::= "\"a\"" space ":" space null',
        r'b ::= "[" space ( null ("," space null)* )? "]" space',
        r'b-kv ::= "\"b\"" space ":" space b',
        r'c ::= "1" | "\"x\""',
        r'c-kv ::= "\"c\"" space ":" space c',
        r'null ::= "null" space',
        r'root ::= "{" space b-kv ("," space a-kv)? ("," space c-kv)? "}" space',
        r'space ::= " "?',
    ]


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"type": "string", "pattern": "a"}, "", "pattern"),
        ({"properties": {"a/b": {"type": "integer", "minimum": 1}}}, "/properties/a~1b", "minimum"),
        ({"allOf": [{}]}, "", "allOf"),
        ({"items": {"anyOf": [{}, {"not": {}}]}}, "/items/anyOf/1", "not"),
        ({"items": False}, "/items", "false"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, "", "additionalProperties"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "", "maxItems"),
        ({"prefixItems": [{}], "items": False}, "", "items"),
        ({"enum": []}, "", "enum"),
    ],
)
def test_what_it_does_not_know_is_refused(schema: Any, pointer: str, keyword: str) -> None:
    with pytest.raises(UnsupportedSchema) as error:
        answer_grammar(schema)
    assert (error.value.pointer, error.value.keyword) == (pointer, keyword)


@pytest.mark.parametrize("schema", [3, {"type": "text"}, {"type": "value"}, {"properties": []}, {"items": 1}])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        answer_grammar(schema)


TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_person", "parameters": PERSON}},
    {"type": "function", "function": {"name": "tool", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "now"}},
]
CALL = '{"name": "get_person", "arguments": {"name": "Ada", "kind": null, "alive": true}}'


def test_tagged() -> None:
    compiled = grammar(tagged_grammar(TOOLS, escaped=False))
    assert compiled.accepts("")
    assert compiled.accepts("I look. a < b <br>")
    assert compiled.accepts(f"I look. <tool_call>{CALL}</tool_call>")
    assert compiled.accepts('<tool_call> {"name": "tool", "arguments": {}} </tool_call>')
    assert compiled.accepts('<tool_call>{"name": "now", "arguments": {"any": [1]}}</tool_call>')
    assert not compiled.accepts('<tool_call>{"name": "other", "arguments": {}}</tool_call>')
    assert not compiled.accepts(f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>")


def test_tagged_and_escaped() -> None:
    compiled = grammar(tagged_grammar(TOOLS, escaped=True))
    assert compiled.accepts(f"<tool_call>{CALL}</tool_call>")
    escaped = CALL.replace("get_person", r"get\_person")
    assert compiled.accepts(rf"<tool\_call> {escaped}</tool\_call>")
    assert not compiled.accepts(rf"<tool\\_call>{CALL}</tool_call>")


def test_thoughtful_steps() -> None:
    compiled = grammar(thoughtful_steps_grammar(TOOLS, PERSON))
    turn = '{"thought_about_next_step_only": "x", "next_step": %s}'
    assert compiled.accepts(turn % f'{{"tool_calls": [{CALL}]}}')
    assert compiled.accepts(turn % '{"result": {"name": "Ada", "kind": "cat"}}')
    assert not compiled.accepts(turn % f'{{"tool_calls": [{CALL}, {CALL}]}}')
    assert not compiled.accepts(turn % '{"tool_calls": []}')


def test_functionary() -> None:
    compiled = grammar(functionary_grammar(TOOLS))
    start = "<|from|>assistant\n<|recipient|>"
    assert compiled.accepts("all\n<|content|>Hello")
    call = 'get_person\n<|content|>\n{"name": "Ada", "kind": null}\n'
    assert compiled.accepts(call)
    assert compiled.accepts(f"all\n<|content|>I look.\n{start}{call}{start}tool\n<|content|>\n{{}}\n")
    assert not compiled.accepts(f"other{call}")
