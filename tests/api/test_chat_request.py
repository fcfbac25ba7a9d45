"""A body of `/v1/chat/completions`, read: every field, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from situations import CHATML
from toolgram.api.chat.request import read_chat_request
from toolgram.api.errors import api_error, openai_error, param
from toolgram.conversation.custom_tools import input_of
from toolgram.errors import InvalidRequest, InvalidSchema, UnsupportedSchema

USER = {"role": "user", "content": "Hi."}
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "x"}'}}


def body(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER], **fields}


def test_sampling_is_as_openai_has_it() -> None:
    sampling = read_chat_request(body()).generation.sampling
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed) == (1, 1, None, None)
    given = body(temperature=0.5, top_p=0.9, top_k=-1, min_p=0.1, seed=7, stop="END", max_tokens=3)
    sampling = read_chat_request(given).generation.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.5, 0.9, 0, 0.1)
    assert (sampling.seed, sampling.stop, sampling.max_tokens) == (7, ("END",), 3)
    assert read_chat_request(body(seed=-1)).generation.sampling.seed is not None
    both = body(max_tokens=3, max_completion_tokens=4)
    assert read_chat_request(both).generation.sampling.max_tokens == 4
    assert 0 < read_chat_request(body(top_p=0)).generation.sampling.top_p < 1e-6


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [1]}, "messages[0]"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 101}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"n": 0}, "n"),
        ({"n": "2"}, "n"),
        ({"stream": "yes"}, "stream"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"stop": ["a"] * 65}, "stop"),
        ({"seed": 1.5}, "seed"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"logit_bias": {"7": 200}}, "logit_bias[7]"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"presence_penalty": -3}, "presence_penalty"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {}}, "audio"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"model": 1}, "model"),
        ({"reasoning_effort": "enormous"}, "reasoning_effort"),
        ({"functions": [FUNCTION], "tools": [TOOL]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"functions": [FUNCTION], "function_call": 1}, "function_call"),
        ({"regex": "a", "choice": ["b"]}, "choice"),
        ({"grammar": 1}, "grammar"),
        ({"guided_json": "{"}, "guided_json"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs.structural_tag"),
        ({"json_schema": {}, "regex": "a"}, "json_schema"),
        ({"messages": [USER, {"role": "tool", "content": "x", "tool_call_id": "c1"}]}, "messages[1]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c2"}]},
            "messages[1].tool_call_id",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [[]]}]}, "messages[0].tool_calls[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": {"id": "c1"}}]}, "messages[0].tool_calls"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name"),
        ({"tools": [{"type": "custom", "custom": {"name": "c", "format": 1}}]}, "tools[0].custom.format"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_chat_request(body(**fields))
    error = openai_error(api_error(caught.value))["error"]
    assert (error["param"], error["type"]) == (place, "invalid_request_error")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"functions": [{"name": "f", "parameters": {"type": "objekt"}}]}, "/functions/0/parameters"),
        ({"functions": [{}]}, "/functions/0/name"),
        ({"functions": [FUNCTION], "function_call": {"name": "g"}}, "/function_call/name"),
        ({"regex": "("}, "/regex"),
        ({"choice": [""]}, "/choice"),
        ({"response_format": {"type": "json_object", "schema": {"type": "objekt"}}}, "/response_format/schema"),
        ({"response_format": {"type": "json_schema", "schema": {"type": "objekt"}}}, "/response_format/schema"),
        ({"grammar": "root := 1"}, "/grammar"),
        ({"grammar": 'root ::= "a"', "tools": [TOOL]}, "/grammar"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "/messages/0/role"),
        ({"messages": []}, "/messages"),
        ({"style": "none such"}, "/style"),
        ({"tools": [{"type": "function"}]}, "/tools/0/function"),
    ],
)
def test_what_planning_refuses_is_told_with_its_place_in_the_body(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises((InvalidRequest, InvalidSchema, UnsupportedSchema)) as caught:
        read_chat_request(body(**fields)).generation.plan(CHATML)
    assert caught.value.pointer == pointer


def test_functions_are_tools_of_which_one_is_called() -> None:
    read = read_chat_request(body(functions=[FUNCTION], function_call={"name": "f"}))
    plan = read.generation.plan(CHATML)
    assert read.legacy
    assert plan.request.tool_choice.only == ("f",)
    assert plan.request.parallel_tool_calls is False


def test_a_function_call_of_the_history_is_a_call() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": "x"}'}},
        {"role": "function", "name": "f", "content": "done"},
    ]
    assert '"a": "x"' in read_chat_request(body(messages=messages, tools=[TOOL])).generation.plan(CHATML).prompt


def test_custom_tools_are_functions_of_one_text() -> None:
    format_ = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[0-9]+"}}
    tool = {"type": "custom", "custom": {"name": "sum", "description": "Adds.", "format": format_}}
    calls = [{"id": "c1", "type": "custom", "custom": {"name": "sum", "input": '1 "and" 2'}}]
    messages = [
        USER,
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
    ]
    choice = {"type": "custom", "custom": {"name": "sum"}}
    generation = read_chat_request(body(messages=messages, tools=[TOOL, tool], tool_choice=choice)).generation
    plan = generation.plan(CHATML, "short")
    assert [tool.custom for tool in plan.request.tools] == [False, True]
    assert r'{"input": "1 \"and\" 2"}' in plan.prompt
    assert plan.constraint is not None
    texts = {plan.constraint.grammar.sample(seed) for seed in range(5)}
    assert all(set(input_of(plan.parse(text).tool_calls[0].arguments)) <= set("0123456789") for text in texts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"input": "a\\"b"}', 'a"b'),
        ('{"input": "a\\', "a"),
        ('{"input": "a\\u00', "a"),
        ('{"input": "a\\\\', "a\\"),
        ('{"input": "a"', "a"),
        ('{"inp', ""),
        ("", ""),
        ("[1]", "[1]"),
    ],
)
def test_the_text_of_a_custom_call_is_read_however_much_of_it_came(arguments: str, said: str) -> None:
    assert input_of(arguments) == said


def test_a_grammar_of_the_caller_constrains_the_answer() -> None:
    plan = read_chat_request(body(grammar='root ::= "yes" | "no"')).generation.plan(CHATML)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts("yes")
    assert not plan.constraint.grammar.accepts("maybe")


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_a_schema_may_stand_where_llama_cpp_takes_it(kind: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    plan = read_chat_request(body(response_format={"type": kind, "schema": schema})).generation.plan(CHATML)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts('{"a": true}')
    assert not plan.constraint.grammar.accepts('{"b": true}')


@pytest.mark.parametrize(
    ("choice", "only"), [("any", None), ({"type": "function", "name": "f"}, ("f",)), ("required", None)]
)
def test_a_choice_as_other_apis_have_it(choice: Any, only: tuple[str, ...] | None) -> None:
    made = read_chat_request(body(tools=[TOOL], tool_choice=choice)).generation.request.tool_choice
    assert (made.mode, made.only) == ("required", only)


def test_efforts_are_told_to_the_template() -> None:
    request = read_chat_request(body(reasoning_effort="low")).generation.request
    assert request.chat_template_kwargs == {"reasoning_effort": "low"}
    request = read_chat_request(body(reasoning_effort="none")).generation.request
    assert request.chat_template_kwargs == {"enable_thinking": False, "thinking": False, "thinking_mode": "disabled"}


def test_unknown_fields_are_named() -> None:
    assert read_chat_request(body(cache_prompt=True, user="me", odd=None)).generation.ignored == ("cache_prompt",)


def test_a_pointer_is_told_as_a_path() -> None:
    assert param("/messages/0/content/1/text") == "messages[0].content[1].text"
    assert param("/a~1b") == "a/b"
    assert param("") is None
