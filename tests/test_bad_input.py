"""Bad input is refused by an exception that says what and where."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from situations import CHATML

ASK = [{"role": "user", "content": "Hi."}]


def tool(name: Any, parameters: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def with_tool(parameters: Any, **more: Any) -> dict[str, Any]:
    return {"messages": ASK, "tools": [tool("f", parameters, **more)]}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


SCHEMA, INVALID = "/tools/0/function/parameters", toolgram.InvalidSchema
ANSWER = "/response_format/json_schema/schema"
REQUESTS: dict[str, tuple[Any, type[toolgram.ToolgramError], str]] = {
    "not an object": ([], toolgram.InvalidRequest, ""),
    "no messages": ({}, toolgram.InvalidRequest, "/messages"),
    "empty messages": ({"messages": []}, toolgram.InvalidRequest, "/messages"),
    "unknown role": ({"messages": [{"role": "robot"}]}, toolgram.InvalidRequest, "/messages/0/role"),
    "content": ({"messages": [{"role": "user", "content": 5}]}, toolgram.InvalidRequest, "/messages/0/content"),
    "tools not a list": (
        {"messages": ASK, "tools": {}, "x": 1} | {"tools": {"a": 1}},
        toolgram.InvalidRequest,
        "/tools",
    ),
    "tool without a name": (
        {"messages": ASK, "tools": [{"type": "function", "function": {}}]},
        toolgram.InvalidRequest,
        "/tools/0/function/name",
    ),
    "tool with an empty name": (
        {"messages": ASK, "tools": [tool("")]},
        toolgram.InvalidRequest,
        "/tools/0/function/name",
    ),
    "two tools of one name": (
        {"messages": ASK, "tools": [tool("a"), tool("a")]},
        toolgram.InvalidRequest,
        "/tools/1/function/name",
    ),
    "unknown tool choice": (
        {"messages": ASK, "tools": [tool("a")], "tool_choice": "always"},
        toolgram.InvalidRequest,
        "/tool_choice",
    ),
    "named tool that is not there": (
        {"messages": ASK, "tools": [tool("a")], "tool_choice": named("b")},
        toolgram.InvalidRequest,
        "/tool_choice/function/name",
    ),
    "required without tools": ({"messages": ASK, "tool_choice": "required"}, toolgram.InvalidRequest, "/tool_choice"),
    "parallel": ({"messages": ASK, "parallel_tool_calls": "yes"}, toolgram.InvalidRequest, "/parallel_tool_calls"),
    "schema is text": (with_tool("string"), INVALID, SCHEMA),
    "schema of an unknown type": (with_tool({"type": "objekt"}), INVALID, SCHEMA),
    "properties are a list": (with_tool({"type": "object", "properties": ["city"]}), INVALID, SCHEMA),
    "a keyword deep inside": (
        with_tool({"type": "object", "properties": {"n": {"minimum": "3"}}}),
        INVALID,
        f"{SCHEMA}/properties/n",
    ),
    "a reference to nowhere": (with_tool({"$ref": "#/$defs/x"}), INVALID, SCHEMA),
    "a required call that cannot be": (
        with_tool(parameters=False) | {"tool_choice": "required"},
        toolgram.InvalidRequest,
        "/tools",
    ),
    "an id that is no string": (
        {"messages": [*ASK, {"role": "tool", "tool_call_id": 5, "content": "x"}]},
        toolgram.InvalidRequest,
        "/messages/1/tool_call_id",
    ),
    "a call of an unknown type": (
        {"messages": [*ASK, {"role": "assistant", "tool_calls": [{"type": "odd", "function": {"name": "f"}}]}]},
        toolgram.InvalidRequest,
        "/messages/1/tool_calls/0/type",
    ),
    "a value that is not JSON": (with_tool({"const": {1}}), toolgram.InvalidRequest, f"{SCHEMA}/const"),
    "response format without a schema": (
        {"messages": ASK, "response_format": {"type": "json_schema"}},
        toolgram.InvalidRequest,
        "/response_format",
    ),
    "answer schema": (
        {"messages": ASK, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 5}}}},
        INVALID,
        ANSWER,
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_bad_request_is_refused_with_a_pointer(case: str) -> None:
    request, error, pointer = REQUESTS[case]
    with pytest.raises(error) as raised:
        toolgram.plan(request, CHATML)
    assert getattr(raised.value, "pointer", None) == pointer
    assert str(raised.value).startswith(pointer or "(root)")
    assert "\n" not in str(raised.value)


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(toolgram.InvalidRequest, match="there is no style 'nope'"):
        toolgram.plan({"messages": ASK}, CHATML, "nope")


def test_a_template_that_does_not_compile_names_its_line() -> None:
    with pytest.raises(toolgram.TemplateError, match="line 2"):
        toolgram.ChatTemplate("{{ messages }}\n{% for x in %}")


def test_a_template_that_refuses_a_conversation_says_why() -> None:
    template = toolgram.ChatTemplate("{{ raise_exception('system first, please') }}")
    with pytest.raises(toolgram.TemplateError, match="system first, please"):
        toolgram.plan({"messages": ASK}, template)


ODD: dict[str, tuple[str, dict[str, Any], str]] = {
    "an optional key": ("gemma_4", {"type": "object", "properties": {"a b": {}}}, "no such key"),
    "a required key": ("gemma_4", {"type": "object", "properties": {"a b": {}}, "required": ["a b"]}, "no object"),
    "keys of no name": (
        "qwen_xml",
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
        "never called",
    ),
    "a key that ends its tag": (
        "qwen_xml",
        {"type": "object", "properties": {"a>\nb": {"type": "string"}}, "required": ["a>\nb"]},
        "never called",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_a_tool_that_a_style_cannot_write_is_told_and_keeps_no_other_from_being_called(case: str) -> None:
    style, parameters, told = ODD[case]
    request = {
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [tool("good", {"type": "object", "properties": {}}), tool("odd", parameters)],
    }
    plan = toolgram.plan(request, CHATML, style)
    assert [(each.pointer.split("/")[2], each.kind) for each in plan.relaxations if told in each.enforced] == [
        ("1", "stricter")
    ]
    assert "good" in plan.constraint.grammar.to("gbnf")
    assert ("odd" in plan.constraint.grammar.to("gbnf")) == (told == "no such key")
    request["tools"][1]["function"]["strict"] = True
    with pytest.raises(toolgram.ToolgramError) as refused:
        toolgram.plan(request, CHATML, style)
    assert "/tools/1/function/parameters" in str(refused.value)


IMPOSSIBLE: dict[str, tuple[Any, str]] = {
    "a pattern of another language": (
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "/^a$/i"}}, "required": ["a"]},
        ": nothing matches /properties/a",
    ),
    "values of another type, deeper": (
        {
            "$defs": {"row": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": [1, 2]}}},
            "type": "object",
            "properties": {"rows": {"allOf": [{"$ref": "#/$defs/row"}]}},
            "required": ["rows"],
        },
        ": nothing matches /$defs/row/items",
    ),
    "one that needs itself": (
        {"type": "object", "properties": {"self": {"$ref": "#"}}, "required": ["self"]},
        ": nothing matches /properties/self",
    ),
    "no part alone": (
        {"allOf": [{"properties": {"a": {}}, "required": ["b"]}, {"properties": {"b": False}}], "type": "object"},
        "",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
@pytest.mark.parametrize("strict", [True, False])
def test_an_answer_that_nothing_matches_is_refused_with_the_part_to_blame(case: str, strict: bool) -> None:
    """Also beside tools, which could be called instead: a model that wants to answer would call for ever."""
    schema, blamed = IMPOSSIBLE[case]
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
    for tools in ({}, {"tools": [tool("good", {"type": "object", "properties": {}})]}):
        with pytest.raises(toolgram.InvalidRequest) as refused:
            toolgram.plan({"messages": ASK, "response_format": form, **tools}, CHATML)
        assert str(refused.value) == f"{ANSWER}: no answer can match this schema{blamed}"


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_tool_that_nothing_matches_is_told_with_the_part_to_blame(case: str) -> None:
    schema, blamed = IMPOSSIBLE[case]
    tools = [tool("odd", schema), tool("good", {"type": "object", "properties": {}})]
    [told] = toolgram.plan({"messages": ASK, "tools": tools}, CHATML).relaxations
    assert told.enforced == f"the tool is never called: no arguments can match this schema{blamed}"


def test_where_no_tool_can_be_called_the_part_to_blame_is_told() -> None:
    """As zod writes `a.and(b)`: each of two objects has no keys but its own."""
    parts = [
        {"type": "object", "properties": {key: {"type": "string"}}, "required": [key], "additionalProperties": False}
        for key in ("a", "b")
    ]
    both = tool("save", {"type": "object", "properties": {"v": {"allOf": parts}}, "required": ["v"]})
    with pytest.raises(toolgram.InvalidRequest) as refused:
        toolgram.plan({"messages": ASK, "tools": [both], "tool_choice": "required"}, CHATML)
    assert str(refused.value) == (
        "/tools: no tool can be called; as to 'save': no arguments can match this schema: nothing matches /properties/v"
    )


def test_where_no_tool_can_be_called_the_key_that_the_style_cannot_write_is_told() -> None:
    """It was said of the prompt that nothing is allowed after it."""
    odd = tool("save", {"type": "object", "properties": {"a b": {}}, "required": ["a b"]})
    with pytest.raises(toolgram.InvalidRequest) as refused:
        toolgram.plan({"messages": ASK, "tools": [odd], "tool_choice": "required"}, CHATML, style="gemma_4")
    assert str(refused.value) == (
        "/tools: no tool can be called; as to 'save': no arguments that match this schema can be written in this "
        "style, because of /tools/0/function/parameters/properties/a b"
    )


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "OBJECT"}, 'type: "OBJECT" is not one of null, '),
        ({"properties": {}, "required": True}, "required: true is not a list of strings"),
        ({"enum": None}, "enum: null is not a list"),
        ({"minItems": "1"}, 'minItems: "1" is not a non-negative integer'),
        ({"minItems": -(10**5000)}, "minItems: a number of thousands of digits is not"),
        ({"maxLength": "x" * 100_000}, f'maxLength: "{"x" * 39}… is not'),
    ],
)
def test_a_value_that_a_keyword_cannot_have_is_shown(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(toolgram.InvalidSchema) as refused:
        toolgram.schema_grammar(schema)
    assert str(refused.value).startswith(f"(root): {told}")


def test_to_find_the_part_to_blame_takes_no_work_from_the_rest() -> None:
    words = {f"w{n}": {"type": "string", "pattern": "^[a-z]{3,40}$"} for n in range(40)}
    odd: dict[str, Any] = {"type": "integer", "minimum": 5, "maximum": 1}
    for _ in range(40):
        odd = {"type": "object", "properties": {**words, "z": odd}, "required": ["z"]}
    tools = [*(tool(f"odd{n}", odd) for n in range(5)), tool("good", {"type": "object", "properties": {}})]
    plan = toolgram.plan({"messages": ASK, "tools": tools}, CHATML)
    assert all("the tool is never called: no arguments can match" in each.enforced for each in plan.relaxations)
    assert len(plan.relaxations) == 5
    assert plan.constraint is not None
    assert "good" in plan.constraint.grammar.to("gbnf")


UNDECLARED: list[dict[str, Any]] = [
    {"additionalProperties": {"type": "string"}},
    {"additionalProperties": True},
    {"patternProperties": {"^x-": {}}},
]


@pytest.mark.parametrize("style", ["qwen_xml", "glm_4_5", "deepseek_v3_2", "minimax_m3", "kimi_k3"])
def test_that_no_undeclared_parameter_has_a_place_is_told(style: str) -> None:
    def plan(schema: dict[str, Any], *, strict: bool) -> toolgram.Plan:
        given = tool("set_labels", {"type": "object", **schema})
        given["function"]["strict"] = strict
        return toolgram.plan({"messages": ASK, "tools": [given], "tool_choice": "required"}, CHATML, style)

    for schema in UNDECLARED:
        told = [(each.pointer, each.keyword) for each in plan(schema, strict=False).relaxations]
        assert ("/tools/0/function/parameters", "additionalProperties") in told
        with pytest.raises(toolgram.UnsupportedSchema, match="/tools/0/function/parameters: additionalProperties"):
            plan(schema, strict=True)
    assert not plan({}, strict=True).relaxations
