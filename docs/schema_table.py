"""Prints what each keyword of JSON Schema becomes, found by compiling an example of it.

An example is "enforced" if exact mode takes it and its grammar refuses the bad value, and an "annotation" if the
grammar admits that value.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from toolgram import UnsupportedSchema, schema_grammar


@dataclass(frozen=True, slots=True)
class Example:
    """A schema that uses keywords, a value that it admits, and one that they rule out, spelled as grammars spell it."""

    keywords: str
    schema: Any
    good: str
    bad: str


REMOTE = {"$ref": "https://example.com/schema.json"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
A, B = {"a": {"const": 1}}, {"b": {"const": 2}}
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}

EXAMPLES = (
    Example("type", {"type": ["string", "null"]}, '"a"', "1"),
    Example("enum", {"enum": ["a", 1, None]}, '"a"', '"b"'),
    Example("const", {"const": {"a": 1}}, '{"a": 1}', '{"a": 2}'),
    Example("minLength", TEXT | {"minLength": 2}, '"ab"', '"a"'),
    Example("maxLength", TEXT | {"maxLength": 1}, '"a"', '"ab"'),
    Example("pattern", TEXT | {"pattern": "^a+$"}, '"a"', '"b"'),
    Example("minimum", NUMBER | {"minimum": 3}, "3", "2"),
    Example("maximum", {"type": "number", "maximum": 2.5}, "2.5", "2.6"),
    Example("exclusiveMinimum", NUMBER | {"exclusiveMinimum": 3}, "4", "3"),
    Example("exclusiveMaximum", NUMBER | {"exclusiveMaximum": 3}, "2", "3"),
    Example("multipleOf", NUMBER | {"multipleOf": 5}, "10", "11"),
    Example("items", {"type": "array", "items": NUMBER}, "[1, 2]", '["a"]'),
    Example("prefixItems", {"type": "array", "prefixItems": [NUMBER], "items": False}, "[1]", '["a"]'),
    Example("additionalItems", {"type": "array", "items": [NUMBER], "additionalItems": False}, "[1]", "[1, 2]"),
    Example("minItems", {"type": "array", "minItems": 1}, "[1]", "[]"),
    Example("maxItems", {"type": "array", "maxItems": 1}, "[1]", "[1, 2]"),
    Example("uniqueItems", {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, "[1, 2]", "[1, 1]"),
    Example("uniqueItems", {"type": "array", "items": NUMBER, "uniqueItems": True}, "[1, 2]", "[1, 1]"),
    Example("contains", {"type": "array", "contains": {"const": 1}}, "[1]", "[2]"),
    Example("minContains", {"type": "array", "contains": {"const": 1}, "minContains": 2}, "[1, 1]", "[1]"),
    Example("maxContains", {"type": "array", "contains": {"const": 1}, "maxContains": 1}, "[1]", "[1, 1]"),
    Example("unevaluatedItems", {"type": "array", "unevaluatedItems": False}, "[]", "[1]"),
    Example("unevaluatedItems", {"anyOf": [{"type": "array"}], "unevaluatedItems": False}, "[]", "[1]"),
    Example("properties", {"type": "object", "properties": {"a": NUMBER}}, '{"a": 1}', '{"a": "b"}'),
    Example("required", {"type": "object", "required": ["a"]}, '{"a": 1}', "{}"),
    Example("additionalProperties", {"type": "object", "additionalProperties": NUMBER}, '{"a": 1}', '{"a": "b"}'),
    Example("patternProperties", {"type": "object", "patternProperties": {"^n": NUMBER}}, '{"n": 1}', '{"n": "b"}'),
    Example("propertyNames", {"type": "object", "propertyNames": {"maxLength": 1}}, '{"a": 1}', '{"ab": 1}'),
    Example("minProperties", {"type": "object", "minProperties": 1}, '{"a": 1}', "{}"),
    Example("minProperties", {"required": ["a"], "minProperties": 1, "type": "object"}, '{"a": 1}', "{}"),
    Example("minProperties", {"type": "object", "minProperties": 2}, '{"a": 1, "b": 2}', "{}"),
    Example("maxProperties", {"type": "object", "maxProperties": 1}, '{"a": 1}', '{"a": 1, "b": 1}'),
    Example("dependentRequired", {"type": "object", "dependentRequired": {"a": ["b"]}}, "{}", '{"a": 1}'),
    Example("dependentSchemas", {"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}, "{}", '{"a": 1}'),
    Example("dependencies", {"type": "object", "dependencies": {"a": ["b"]}}, "{}", '{"a": 1}'),
    Example("unevaluatedProperties", {"type": "object", "unevaluatedProperties": False}, "{}", '{"a": 1}'),
    Example("unevaluatedProperties", {"allOf": [{"properties": A}], "unevaluatedProperties": False}, "{}", '{"b": 1}'),
    Example("allOf", {"allOf": [{"type": "integer"}, {"minimum": 3}]}, "3", "2"),
    Example("anyOf", {"anyOf": [TEXT, NUMBER]}, "1", "true"),
    Example("oneOf", {"oneOf": [TEXT, NUMBER]}, "1", "true"),
    Example("oneOf", {"oneOf": [{"minimum": 1}, {"maximum": 5}]}, "0", "3"),
    Example("not", {"not": TEXT}, "1", '"a"'),
    Example("not", {"not": {}}, "", "1"),
    Example("if, then, else", {"if": {"minimum": 1}, "then": {"maximum": 5}}, "3", "6"),
    Example("$ref", {"$ref": "#/$defs/n", "$defs": {"n": NUMBER}}, "1", '"a"'),
    Example("$ref", NODE, '{"next": {}}', '{"next": 1}'),
    Example("$ref", REMOTE, "1", ""),
    Example("$dynamicRef", {"$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n"} | NUMBER}}, "1", '"a"'),
    Example(
        "$recursiveRef",
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "items": {"$recursiveRef": "#"}, "type": "array"},
        "[[]]",
        "[1]",
    ),
    Example("$anchor", {"$ref": "#n", "$defs": {"n": {"$anchor": "n"} | NUMBER}}, "1", '"a"'),
    Example("$defs", {"$ref": "#/$defs/n", "$defs": {"n": NUMBER}}, "1", '"a"'),
    Example("definitions", {"$ref": "#/definitions/n", "definitions": {"n": NUMBER}}, "1", '"a"'),
    Example("$schema", {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/x", "x": NUMBER}, "1", '"a"'),
    Example("format", TEXT | {"format": "date"}, '"2026-01-31"', '"soon"'),
    Example("contentEncoding", TEXT | {"contentEncoding": "base64"}, '"YQ=="', '"!"'),
    Example("title, description, default, examples", {"default": 1, "type": "integer"}, "1", ""),
    Example("x-order", {"x-order": 1, "type": "integer"}, "1", ""),
)


def status(example: Example) -> tuple[str, str]:
    """What exact mode and relaxed mode make of an example."""
    relaxed = schema_grammar(example.schema, mode="relaxed")
    instead = "; ".join(dict.fromkeys(each.enforced for each in relaxed.relaxations))
    try:
        grammar = schema_grammar(example.schema)
    except UnsupportedSchema as error:
        refused = "refused" if error.why.startswith("for ") else "refused:"
        return f"{refused} {error.why}", instead
    if example.good and not grammar.accepts(example.good):
        raise AssertionError(f"{example.keywords} does not admit {example.good}")
    admitted = not example.bad or grammar.accepts(example.bad)
    return ("annotation" if admitted else "enforced"), instead or "the same"


def main() -> None:
    """Prints the table."""
    print("\n| Keyword | Example | Exact mode | Relaxed mode |\n|---|---|---|---|")
    for example in EXAMPLES:
        schema = json.dumps(example.schema).replace("|", "\\|")
        names = ", ".join(f"`{keyword}`" for keyword in example.keywords.split(", "))
        print("|", " | ".join((names, f"`{schema}`", *status(example))), "|")
    print()


if __name__ == "__main__":
    main()
