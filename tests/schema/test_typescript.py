"""Tools as TypeScript declarations."""

import pytest

from conftest import Golden
from toolgram.errors import InvalidSchema
from toolgram.schema.typescript import declarations, signatures

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
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, "x: [string?, number?, ...any[]]"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "x: [string?]"),
        (
            {"allOf": [{"prefixItems": [{}]}], "type": "array", "unevaluatedItems": False},
            "x: any[] & [any?, ...any[]]",
        ),
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


def test_types_that_refer_to_themselves_have_names():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema = {"$defs": {"node": node}, "type": "object", "properties": {"head": {"$ref": "#/$defs/node"}}}
    assert body(schema) == "type node = {\nnext?: node\n};\n\ntype f = (_: {\nhead?: node\n}) => any;"
    tree = {"type": "object", "properties": {"inside": {"type": "array", "items": {"$ref": "#"}}}}
    assert body(tree, name="parameters").startswith(
        "type parameters2 = {\ninside?: parameters2[]\n};\n\ntype parameters = "
    )
    assert body({"$ref": "#"}) == "type parameters = any;\n\ntype f = (_: parameters) => any;"


def test_a_tool_is_declared_as_before_beside_others_whose_types_have_names():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    plain = ("g", None, {"type": "object", "properties": {"at": {"type": "integer"}}})
    (alone,) = signatures([plain])
    named, again, known = signatures([("node", None, schema), ("f", None, schema), plain])
    assert known == alone == "type g = (_: {\nat?: number\n}) => any;"
    assert (named.count("node2"), again.count("node3")) == (3, 3)


def test_references_that_fan_out_end():
    defs = {f"d{n}": {"prefixItems": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    assert len(body({"$defs": {**defs, "d40": {"type": "null"}}, "$ref": "#/$defs/d0"})) < 200_000


@pytest.mark.parametrize(
    ("schema", "declared"),
    [
        ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, "x: [string?, number?, ...any[]]"),
        (
            {"prefixItems": [{"type": "string"}, {"type": "null"}], "minItems": 1, "items": False},
            "// Minimum items=1\nx: [string, null?]",
        ),
        ({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}, "x: [string?, ...number[]]"),
        (
            {"prefixItems": [{"const": 1}] * 3, "maxItems": 2, "minItems": 2},
            "// Maximum items=2 Minimum items=2\nx: [1, 1]",
        ),
        ({"type": ["array", "null"], "items": {"anyOf": [{"const": 1}, {"const": 2}]}}, "x: (1 | 2)[] | null"),
        (
            {"patternProperties": {"^n": {"type": "null"}}, "additionalProperties": False},
            "x: {\n// Keys like /^n/: null\n[key: string]: null\n}",
        ),
        ({"required": ["a"], "type": "object"}, "x: {\na: any\n}"),
        (
            {"required": ["a"], "type": "object", "additionalProperties": {"type": "integer"}},
            "x: {\na: number,\n[key: string]: number\n}",
        ),
        (
            {"required": ["a"], "patternProperties": {"^a": {}}, "additionalProperties": {"type": "integer"}},
            "x: {\na: any,\n// Keys like /^a/: any\n[key: string]: any\n}",
        ),
        (  # as zod writes `z.record(z.enum(["red", "blue"]), z.number())`
            {
                "type": "object",
                "propertyNames": {"type": "string", "enum": ["red", "blue"]},
                "additionalProperties": {"type": "number"},
                "required": ["red", "blue"],
            },
            "x: {\nred: number,\nblue: number\n}",
        ),
        ({"type": "object", "propertyNames": {"enum": ["a", "b"]}}, 'x: {\n// Keys: "a" | "b"\n[key: string]: any\n}'),
        ({"type": "object", "properties": {"a": {}}, "oneOf": [{"required": ["a"]}, {}]}, "x: {\na?: any\n}"),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, "x: {\na?: any\n} & {\nb?: any\n}"),
        (
            {"type": "string", "anyOf": [{"format": "date"}, {"pattern": "^a"}]},
            "// Format=date or Pattern=^a\nx: string",
        ),
        (
            {"type": "string", "minLength": 3, "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]},
            "// Minimum length=3 Pattern=^a Pattern=b$\nx: string",
        ),
        ({"anyOf": [{"type": "string"}, {}]}, "x: any"),
        (
            {"type": "string", "format": "date", "default": "2026-01-31"},
            '// Default="2026-01-31". Format=date\nx: string',
        ),
        (
            {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2},
            "// Maximum=9 Minimum=1 Multiple of=2\nx: number",
        ),
        (
            {"description": "Days.", "items": {"type": "string", "format": "date"}, "maxItems": 3},
            "// Days.\n// Maximum items=3 Items: Format=date\nx: string[]",
        ),
        ({"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}}, "// Unique items\nx: (1 | 2)[]"),
        ({"type": "string", "pattern": "a\nb"}, "// Pattern=a\n// b\nx: string"),
    ],
)
def test_what_types_cannot_say_stands_in_comments(schema: object, declared: str):
    assert parameter(schema) == declared


TRIP = {
    "$defs": {
        "place": {
            "type": "object",
            "description": "Where it is.",
            "properties": {"name": {"type": "string"}, "inside": {"$ref": "#/$defs/place"}},
            "required": ["name"],
        },
        "money": {"type": "number", "minimum": 0, "multipleOf": 0.01},
    },
    "type": "object",
    "properties": {
        "mode": {"enum": ["train", "bus", None], "description": "How to travel.", "default": "train"},
        "version": {"const": 2},
        "from": {"$ref": "#/$defs/place"},
        "to": {"$ref": "#/$defs/place", "description": "Where to go."},
        "on": {"type": "string", "format": "date"},
        "budget": {"anyOf": [{"$ref": "#/$defs/money"}, {"type": "null"}]},
        "seats": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "uniqueItems": True},
        "window": {"prefixItems": [{"type": "string"}, {"type": "string"}], "minItems": 2, "items": False},
        "pay": {
            "oneOf": [
                {"type": "object", "properties": {"card": {"type": "string", "pattern": "^[0-9]{16}$"}}},
                {"type": "object", "properties": {"cash": {"$ref": "#/$defs/money"}}, "required": ["cash"]},
            ]
        },
        "luggage": {"type": "object", "additionalProperties": {"type": "integer"}},
        "labels": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        "traveller": {
            "allOf": [{"properties": {"name": {"type": "string"}}}, {"properties": {"age": {"type": "integer"}}}]
        },
        "note": {"type": "string", "nullable": True, "maxLength": 80},
    },
    "required": ["from", "to", "on"],
}


def test_every_construct(golden: Golden):
    golden("typescript.txt", declarations([("book_trip", "Books a trip.\nAsk before.", TRIP)]) + "\n")


def test_no_schema():
    with pytest.raises(InvalidSchema) as caught:
        body({"type": "object", "properties": {"x": {"type": 5}}})
    assert caught.value.pointer == "/tools/0/function/parameters/properties/x"
