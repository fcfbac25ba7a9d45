"""A body is defined once: models, OpenAPI document, typed request, library and server agree on it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import jsonschema_rs
import pytest

import toolgram
from request_bodies import BODIES, CHAT, ODD, places, replaced
from situations import CHATML
from toolgram.api.chat.body import ChatCompletionBody, ExplainBody
from toolgram.api.chat.request import read_chat_request
from toolgram.api.completions import CompletionBody
from toolgram.api.generation import Generation
from toolgram.api.messages.body import CountBody, MessagesBody
from toolgram.api.messages.request import read_messages_request
from toolgram.api.ollama.body import OllamaChatBody, OllamaGenerateBody, OllamaShowBody
from toolgram.api.ollama.request import read_chat_request as read_ollama_request
from toolgram.api.openapi import examples
from toolgram.api.openapi.document import document
from toolgram.api.responses.body import ResponsesBody
from toolgram.api.responses.request import read_responses_request
from toolgram.api.tokens import TokensBody
from toolgram.conversation.body import ChatBody, ChatMessage, TextPart
from toolgram.conversation.fields import Fields, validated
from toolgram.conversation.tool_shapes import Custom, CustomTool, Function, FunctionTool
from toolgram.planning.plan import Plan

NOW = datetime(2026, 1, 1)
MODELS: dict[str, type[Fields]] = {
    "/v1/chat/completions": ChatCompletionBody,
    "/v1/explain": ExplainBody,
    "/v1/completions": CompletionBody,
    "/v1/responses": ResponsesBody,
    "/v1/responses/input_tokens": ResponsesBody,
    "/v1/messages": MessagesBody,
    "/v1/messages/count_tokens": CountBody,
    "/api/chat": OllamaChatBody,
    "/api/generate": OllamaGenerateBody,
    "/api/show": OllamaShowBody,
    "/detokenize": TokensBody,
}
DOCUMENTED: dict[str, list[Any]] = {
    "/v1/chat/completions": list(examples.CHAT.values()),
    "/v1/explain": list(examples.CHAT.values()),
    "/v1/completions": list(examples.COMPLETIONS.values()),
    "/v1/responses": list(examples.RESPONSES.values()),
    "/v1/responses/input_tokens": list(examples.INPUT_TOKENS.values()),
    "/v1/messages": list(examples.MESSAGES.values()),
    "/v1/messages/count_tokens": list(examples.COUNT_TOKENS.values()),
    "/api/chat": list(examples.OLLAMA_CHAT.values()),
    "/api/generate": list(examples.OLLAMA_GENERATE.values()),
    "/api/show": list(examples.OLLAMA_SHOW.values()),
    "/detokenize": list(examples.DETOKENIZE.values()),
}
A_SCHEMA = ("parameters", "schema")  # is checked when it is compiled, and not by the models
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REGEX = {"syntax": "regex", "definition": "[a-z]+"}


def is_taken(model: type[Fields], body: Any) -> bool:
    try:
        validated(model, body)
    except toolgram.InvalidRequest:
        return False
    return True


@pytest.mark.parametrize("path", MODELS)
def test_the_document_and_the_models_take_the_same_bodies(path: str) -> None:
    model = MODELS[path]
    schema = {"$ref": f"#/components/schemas/{model.__name__}", "components": document()["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)
    for body in (*BODIES[path], *DOCUMENTED[path]):
        assert validator.is_valid(body)
        assert is_taken(model, body)
        for at in places(body):
            if at[-1:] and at[-1] in A_SCHEMA:
                continue
            for odd in ODD:
                other = replaced(body, at, odd)
                assert validator.is_valid(other) == is_taken(model, other), (at, odd)


def same(one: Plan, other: Plan) -> bool:
    texts = [None if plan.constraint is None else plan.constraint.grammar.to("lark") for plan in (one, other)]
    return texts[0] == texts[1] and all(
        getattr(one, name) == getattr(other, name)
        for name in ("prompt", "prompt_parts", "stop", "relaxations", "request")
    )


@pytest.mark.parametrize("number", range(len(CHAT)))
def test_the_library_and_the_server_make_the_same_plan(number: int) -> None:
    body = {key: value for key, value in CHAT[number].items() if key not in ("style", "chat_template", "grammar")}
    if any(part["type"] == "image_url" for part in body["messages"][0]["content"] if isinstance(part, dict)):
        body = {**body, "messages": [{"role": "user", "content": "Hi."}]}  # CHATML shows no images
    library = toolgram.plan(body, CHATML, now=NOW)
    assert same(library, read_chat_request(body).generation.plan(CHATML, now=NOW))
    assert same(library, toolgram.plan(validated(ChatBody, body), CHATML, now=NOW))


def test_a_request_may_be_made_in_python() -> None:
    typed = ChatBody(
        messages=[ChatMessage(role="user", content=[TextPart(type="text", text="Hi.")], mood="good")],  # pyright: ignore[reportCallIssue] - further fields are kept
        tools=[
            FunctionTool(function=Function(name="f", parameters=SCHEMA, strict=True)),
            CustomTool(type="custom", custom=Custom(name="c")),
        ],
        tool_choice="required",
    )
    body = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}], "mood": "good"}],
        "tools": [
            {"function": {"name": "f", "parameters": SCHEMA, "strict": True}},
            {"type": "custom", "custom": {"name": "c"}},
        ],
        "tool_choice": "required",
    }
    assert typed.given == body
    assert same(toolgram.plan(typed, CHATML, now=NOW), toolgram.plan(body, CHATML, now=NOW))


def test_all_apis_make_the_same_plan() -> None:
    """A function that is strict, a custom tool and a schema: in each API's own words."""
    function = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
    answer = {"name": "n", "schema": SCHEMA, "strict": True}
    chat = {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Hi."}],
        "tools": [{"type": "function", "function": function}],
        "response_format": {"type": "json_schema", "json_schema": answer},
    }
    responses = {
        "instructions": "s",
        "input": "Hi.",
        "tools": [{"type": "function", **function}],
        "text": {"format": {"type": "json_schema", **answer}},
    }
    messages = {
        "system": "s",
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA, "strict": True}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "max_tokens": 9,
    }
    ollama = read_ollama_request({"messages": chat["messages"], "tools": chat["tools"], "format": SCHEMA})
    assert isinstance(ollama, Generation)
    plans = [
        read_chat_request(chat).generation.plan(CHATML, now=NOW),
        read_responses_request(responses).generation.plan(CHATML, now=NOW),
        read_messages_request(messages).plan(CHATML, now=NOW),
        ollama.plan(CHATML, now=NOW),
    ]
    assert len({plan.prompt for plan in plans}) == 1
    assert len({plan.constraint.grammar.to("lark") for plan in plans if plan.constraint}) == 1
    custom = {"name": "c", "format": {"type": "grammar", "grammar": REGEX}}
    as_chat = read_chat_request({"messages": chat["messages"], "tools": [{"type": "custom", "custom": custom}]})
    flat = {"type": "custom", "name": "c", "format": {"type": "grammar", **REGEX}}
    as_responses = read_responses_request({"instructions": "s", "input": "Hi.", "tools": [flat]})
    plans = [read.generation.plan(CHATML, now=NOW) for read in (as_chat, as_responses)]
    assert plans[0].prompt == plans[1].prompt
    assert all(plan.request.tools[0].custom and plan.request.tools[0].strict for plan in plans)


def test_what_a_client_wrote_is_held_by_reference() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    tool = {"function": {"parameters": schema, "name": "f", "odd": 1}, "type": "function"}
    request = toolgram.plan({"messages": [{"content": "Hi.", "role": "user"}], "tools": [tool]}, CHATML).request
    assert request.tools[0].source is tool
    assert request.tools[0].parameters is schema
    assert list(request.messages[0]) == ["content", "role"]


@pytest.mark.parametrize(
    ("body", "pointer", "sentence"),
    [
        ({}, "/messages", "is missing"),
        ({"messages": "x"}, "/messages", "must be a list, not a string"),
        ({"messages": []}, "/messages", "must not be empty"),
        ({"messages": [1]}, "/messages/0", "must be an object, not a number"),
        ({"messages": [{"role": "user", "content": 5}]}, "/messages/0/content", "must be a string or a list of parts"),
        ({"max_tokens": 10**30}, "/max_tokens", "must be between 1 and 9.0072e+15, not"),
        ({"temperature": 101}, "/temperature", "must be between 0 and 100, not 101"),
        ({"temperature": True}, "/temperature", "must be a number, not a boolean"),
        ({"n": "2"}, "/n", "must be a number, not a string"),
        ({"stream": 1}, "/stream", "must be true or false, not a number"),
        ({"stop": ["a"] * 65}, "/stop", "must hold at most 64, not 65"),
        ({"metadata": {"a/b": 1}}, "/metadata/a~1b", "must be a string, not a number"),
        ({"logit_bias": {"x": 1}}, "/logit_bias/x", "String should match pattern"),
        ({"tools": [{"type": "odd", "function": {"name": "f"}}]}, "/tools/0/type", "unknown type 'odd': must be"),
        ({"messages": [{"role": "user", "content": {"a": [[[]] * 2] * 2}}]}, "/messages/0/content", "must be a string"),
    ],
)
def test_an_error_is_one_sentence_with_its_place(body: dict[str, Any], pointer: str, sentence: str) -> None:
    body = {**({} if pointer.startswith("/messages") else {"messages": [{"role": "user"}]}), **body}
    with pytest.raises(toolgram.InvalidRequest) as raised:
        read_chat_request(body)
    assert raised.value.pointer == pointer
    assert raised.value.reason.startswith(sentence)
    assert "\n" not in str(raised.value)


def test_what_is_no_json_or_too_deep_is_refused_with_its_place() -> None:
    deep: Any = []
    for _ in range(250):
        deep = [deep]
    for value, reason in (
        (deep, "nested more than 200 deep"),
        ({1}, "set is no type of JSON"),
        (
            [int],
            r"/odd/0: int is a Python type, which stands as response_format itself \(or list\[int\]\): give its JSON",
        ),
        ({1: 2}, "not a string"),
    ):
        with pytest.raises(toolgram.InvalidRequest, match=reason):
            toolgram.plan({"messages": [{"role": "user", "content": "x", "odd": value}]}, CHATML)
