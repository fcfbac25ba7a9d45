"""Tools as TypeScript declarations."""

import pytest

from toolgram.errors import InvalidSchema
from toolgram.schema.typescript import declarations

HEAD = "// Supported function definitions that should be called when necessary.\nnamespace functions {\n"
TAIL = "\n} // namespace functions"


def body(parameters: object, name: str = "f", description: str | None = None) -> str:
    text = declarations([(name, description, parameters)])
    assert text.startswith(HEAD)
    assert text.endswith(TAIL)
    return text.removeprefix(HEAD).removesuffix(TAIL)


def parameter(schema: object) -> str:
    """How a required parameter of this schema is declared."""
    text = body({"type": "object", "properties": {"x": schema}, "required": ["x"]})
    return text.removeprefix("type f = (_: {\n").removesuffix("\n}) => any;")


def test_the_reference_form():
    two = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    one = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The text to say out loud"}},
        "required": ["text"],
    }
    tools = [
        ("superSecretTool", "Adds two numbers", two),
        ("say", "Says something out loud (TTS)", one),
    ]
    assert declarations(tools) == (
        "// Supported function definitions that should be called when necessary.\n"
        "namespace functions {\n"
        "// Adds two numbers\n"
        "type superSecretTool = (_: {\na: number,\nb: number\n}) => any;\n"
        "\n"
        "// Says something out loud (TTS)\n"
        "type say = (_: {\n// The text to say out loud\ntext: string\n}) => any;\n"
        "} // namespace functions"
    )


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_parameters(parameters: object):
    assert body(parameters) == "type f = () => any;"


@pytest.mark.parametrize(
    ("schema", "declared"),
    [
        ({"type": "integer"}, "x: number"),
        ({"enum": ["a|b", 'say "hi"', 3]}, 'x: "a|b" | "say \\"hi\\"" | 3'),
        ({"const": None}, "x: null"),
        ({"type": "array", "items": {"type": "string"}}, "x: string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "x: (string | null)[]"),
        ({"type": "array", "unevaluatedItems": {"type": "string"}}, "x: string[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, "x: [string, number, ...any[]]"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "x: [string]"),
        ({"type": "object", "unevaluatedProperties": {"type": "string"}}, "x: {\n[key: string]: string\n}"),
        ({"$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}}}, "x: number"),
        ({"type": "array", "items": {"enum": ["a | b"]}}, 'x: "a | b"[]'),
        ({"type": "array"}, "x: any[]"),
        ({"type": "string", "nullable": True}, "x: string | null"),
        ({"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "string"}]}, "x: string | boolean"),
        ({"allOf": [{"type": "string"}]}, "x: string"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "x: {\n[key: string]: number\n}"),
        ({"type": "object", "properties": {"y": {"type": "null"}}}, "x: {\ny?: null\n}"),
        ({"description": "One.\nTwo."}, "// One.\n// Two.\nx: any"),
        (True, "x: any"),
        (False, "x: never"),
    ],
)
def test_kinds_of_parameters(schema: object, declared: str):
    assert parameter(schema) == declared


def test_a_union_of_objects_in_an_array_is_grouped():
    objects = [{"type": "object", "properties": {key: {"type": "string"}}} for key in "ab"]
    declared = "x: ({\na?: string\n} | {\nb?: string\n})[]"
    assert parameter({"type": "array", "items": {"anyOf": objects}}) == declared


def test_names_that_are_no_identifiers_are_quoted():
    text = body({"type": "object", "properties": {"my key": {"type": "string"}}}, name="get-weather")
    assert text == 'type "get-weather" = (_: {\n"my key"?: string\n}) => any;'


def test_recursion_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema = {"$defs": {"node": node}, "type": "object", "properties": {"head": {"$ref": "#/$defs/node"}}}
    assert body(schema) == "type f = (_: {\nhead?: {\nnext?: any\n}\n}) => any;"


def test_no_schema():
    with pytest.raises(InvalidSchema) as caught:
        body({"type": "object", "properties": {"x": {"type": 5}}})
    assert caught.value.pointer == "/tools/0/function/parameters/properties/x"
