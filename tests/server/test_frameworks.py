"""What frameworks send, and servers of tools behind them, and what they need of the answer.

The shapes are those of their sources and of threads, which each test names; the texts are ours.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from live_server import serving
from situations import HERMES
from toolgram import ChatTemplate, plan
from toolgram.conversation.schema_meant import schema_meant
from toolgram.engines.replay import Replay
from toolgram.grammar.constraint import Constraint

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
ASKED: Any = {"role": "user", "content": "What is there?"}
COMMON: Any = {"model": "recorded", "style": "hermes_2_pro"}
PATH: Any = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
LOOK: Any = {"type": "function", "function": {"name": "look", "parameters": PATH}}
LOOKS = '<tool_call>\n{"name": "look", "arguments": {"path": "a.png"}}\n</tool_call>'
QWEN = ChatTemplate(HERMES, "", "<|im_end|>")


def grammar_of(path: str, body: dict[str, Any], answer: str = "Hello.") -> Any:
    """The grammar with which a body is answered; the answer is one of its sentences."""
    engine = Replay(answer)
    with serving(engine) as address:
        httpx2.post(address + path, json={**COMMON, **body}).raise_for_status()
    constraint = engine.calls[0].constraint
    assert isinstance(constraint, Constraint)
    assert constraint.grammar.accepts(answer)
    return constraint.grammar


# Schemas of tools ---------------------------------------------------------------------------------------------------

MEANT: dict[str, tuple[Any, Any]] = {
    # https://github.com/coder/coder/pull/23538, https://github.com/opencode-ai/opencode/pull/278
    "go, nothing required": ({**PATH, "required": None}, {key: PATH[key] for key in ("type", "properties")}),
    # https://github.com/coder/coder/pull/27438
    "go, no parameters": ({"type": "object", "properties": None, "required": None}, {"type": "object"}),
    "go, pointers": (
        {"type": "object", "properties": {"n": {"type": "integer", "minimum": None, "enum": None}}},
        {"type": "object", "properties": {"n": {"type": "integer"}}},
    ),
    # https://github.com/neutree-ai/neutree/pull/493, https://github.com/agentic-community/mcp-gateway-registry/issues/1532
    "lua, nothing required": ({**PATH, "required": {}}, {**PATH, "required": []}),
    # https://github.com/avante-corp/avante.nvim/pull/2803
    "lua, no parameters": ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
    "php, nothing at all": ([], {}),
    "inside of others": (
        {"type": "object", "$defs": {"a": {"properties": []}}, "properties": {"b": {"anyOf": [{"items": None}, []]}}},
        {"type": "object", "$defs": {"a": {"properties": {}}}, "properties": {"b": {"anyOf": [{}, {}]}}},
    ),
}
PLAIN: dict[str, Any] = {
    "a parameter of that name": {"type": "object", "properties": {"required": {"type": "string"}, "items": {}}},
    "values": {"enum": [{"required": None}], "const": None, "default": {"properties": []}, "examples": []},
    "an empty list of items": {"type": "array", "items": []},
    "true and false": {"properties": {"a": True, "b": False}, "additionalProperties": False},
    "no type": {"type": None},
    "no choice": {"anyOf": []},
}


@pytest.mark.parametrize("case", MEANT)
def test_a_schema_is_read_as_the_language_that_wrote_it_means_it(case: str) -> None:
    given, meant = MEANT[case]
    before = json.dumps(given)
    assert schema_meant(given) == meant
    assert json.dumps(given) == before
    assert schema_meant(meant) is meant


@pytest.mark.parametrize("case", PLAIN)
def test_what_a_schema_says_stays(case: str) -> None:
    assert schema_meant(PLAIN[case]) is PLAIN[case]


def test_a_schema_that_is_nested_deeper_than_a_grammar_can_be_stays_there() -> None:
    schema: Any = {"required": None}
    for _ in range(10_000):
        schema = {"not": schema}
    assert schema_meant(schema) is schema


@pytest.mark.parametrize("case", MEANT)
def test_tools_are_called_as_their_schemas_are_meant(case: str) -> None:
    given, meant = MEANT[case]

    def bodies(schema: Any) -> dict[str, dict[str, Any]]:
        function = {"name": "look", "parameters": schema}
        said: Any = {"messages": [ASKED]}
        return {
            CHAT: {**said, "tools": [{"type": "function", "function": function}]},
            RESPONSES: {"input": [ASKED], "tools": [{"type": "function", **function}]},
            MESSAGES: {**said, "tools": [{"name": "look", "input_schema": schema}], "max_tokens": 9},
        }

    paths = (CHAT, RESPONSES, MESSAGES) if isinstance(given, dict) else (CHAT, RESPONSES)  # as Anthropic's API demands
    for path in paths:
        body = bodies(given)[path]
        assert grammar_of(path, body).to("gbnf") == grammar_of(path, bodies(meant)[path]).to("gbnf")


def test_a_template_is_shown_the_schema_as_it_is_meant() -> None:
    given, meant = MEANT["go, no parameters"]
    tools = [{"type": "function", "function": {"name": "look", "parameters": schema}} for schema in (given, meant)]
    shown = [plan({"messages": [ASKED], "tools": [each]}, QWEN).prompt for each in tools]
    assert shown[0] == shown[1]


def test_the_schema_of_an_answer_is_meant_so_too() -> None:
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": {**PATH, "additionalProperties": None}}}
    grammar = grammar_of(CHAT, {"messages": [ASKED], "response_format": format_}, '{"path": "a"}')
    assert not grammar.accepts('{"path": 1}')


@pytest.mark.parametrize("schema", [{"type": "OBJECT"}, {"properties": {"a": None}}, {"required": True}])
def test_what_is_wrong_with_a_schema_otherwise_is_told(schema: Any) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    with serving(Replay("Hello.")) as address:
        answer = httpx2.post(address + CHAT, json={**COMMON, "messages": [ASKED], "tools": [tool]})
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, "/tools/0/function/parameters")


# The choice of a tool -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "calls", "talks"), [("auto", True, True), ("none", False, True), ("required", True, False)]
)
def test_a_choice_may_be_an_object(mode: str, calls: bool, talks: bool) -> None:
    """As Cursor sends it, for which LiteLLM has a case of its own
    (https://github.com/BerriAI/litellm/blob/main/litellm/utils.py).
    """
    body = {"messages": [ASKED], "tools": [LOOK], "tool_choice": {"type": mode}}
    grammar = grammar_of(CHAT, body, "Hello." if talks else LOOKS)
    assert (grammar.accepts(LOOKS), grammar.accepts("Hello.")) == (calls, talks)
    assert grammar.to("gbnf") == grammar_of(CHAT, {**body, "tool_choice": mode}, "Hello." if talks else LOOKS).to(
        "gbnf"
    )


@pytest.mark.parametrize("more", [{}, {"type": None}])
def test_hugging_face_chooses_a_function_without_saying_that_it_is_one(more: Any) -> None:
    """https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/inference/_generated/types/chat_completion.py"""
    other: Any = {"type": "function", "function": {"name": "other"}}
    chosen = {"function": {"name": "look"}, **more}
    grammar = grammar_of(CHAT, {"messages": [ASKED], "tools": [other, LOOK], "tool_choice": chosen}, LOOKS)
    assert not any(map(grammar.accepts, ("Hello.", LOOKS.replace("look", "other"))))


@pytest.mark.parametrize(
    "choice", [{"type": "sometimes"}, {"mode": "auto"}, {}, {"type": "tool", "name": "look"}, {"function": "look"}]
)
def test_another_choice_is_refused(choice: Any) -> None:
    with serving(Replay("Hello.")) as address:
        body = {**COMMON, "messages": [ASKED], "tools": [LOOK], "tool_choice": choice}
        answer = httpx2.post(address + CHAT, json=body)
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, "/tool_choice")


# The form of an answer ----------------------------------------------------------------------------------------------


def test_a_format_that_says_more_than_is_known_is_told() -> None:
    with serving(Replay("{}")) as address:
        format_ = {"type": "json_object", "schemas": [PATH]}
        answer = httpx2.post(address + CHAT, json={**COMMON, "messages": [ASKED], "response_format": format_})
    assert answer.raise_for_status().headers["x-toolgram-ignored"] == "response_format.schemas"


@pytest.mark.parametrize("name", ["structured_outputs", "guided_grammar"])
def test_outlines_writes_grammars_in_lark(name: str) -> None:
    """As vLLM takes them beside GBNF
    (https://github.com/dottxt-ai/outlines/blob/main/outlines/models/vllm.py,
    https://github.com/vllm-project/vllm/pull/10870).
    """
    lark = '?start: NUMBER ("," NUMBER)*\nNUMBER: /[0-9]+/\n'
    given: Any = {"structured_outputs": {"grammar": lark}, "guided_grammar": lark}
    grammar = grammar_of(CHAT, {"messages": [ASKED], name: given[name]}, "1,22")
    assert not any(map(grammar.accepts, ("", "1,", "a", "1, 2")))


def test_lark_that_cannot_be_enforced_is_refused() -> None:
    body = {**COMMON, "messages": [ASKED], "structured_outputs": {"grammar": 'start: "(" start ")" | "x"'}}
    with serving(Replay("x")) as address:
        answer = httpx2.post(address + CHAT, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["pointer"]) == (400, "/structured_outputs/grammar")
    assert "read as Lark: at offset 11: start → start" in error["message"]
