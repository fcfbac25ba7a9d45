"""Good bodies of every route, with every field that is read, and odd values to put into them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 1e300, 10**30, "", "\x00", "x"),
    *([], [None], [[]], [{}], ["x"]),
    *({}, {"x": None}, {"": []}, {"type": "text"}, {"type": []}, {"type": "function"}, {"$ref": "#"}),
    {"type": "object", "properties": []},
]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 4}}, "required": ["city"]}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"city": "a"}'}}
USER = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
REGEX = {"syntax": "regex", "definition": "[a]"}
CHAT: list[Any] = [
    {
        "messages": [
            {"role": "system", "content": "s"},
            USER,
            {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
        ],
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "model": "sampled",
        "parallel_tool_calls": True,
        "max_tokens": 5,
        "temperature": 0.1,
        "top_p": 1,
        "top_k": 1,
        "min_p": 0,
        "seed": 1,
        "stop": ["a"],
        "logit_bias": {"1": 1},
        "logprobs": True,
        "top_logprobs": 1,
        "n": 2,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "repetition_penalty": 1,
        "reasoning_effort": "low",
        "metadata": {"a": "b"},
        "chat_template_kwargs": {"a": 1},
        "reasoning_max_tokens": 4,
        "calls_close_reasoning": True,
        "end_repetitions": False,
        "tool_bias": 1.5,
        "parallel_tool_bias": -1.5,
        "style": "short",
        "modalities": ["text"],
        "user": "u",
        "continue_final_message": False,
        "add_generation_prompt": True,
    },
    {
        "messages": [USER],
        "functions": [FUNCTION],
        "function_call": {"name": "f"},
        "stream": True,
        "stream_options": {"include_usage": True, "include_tokens": True},
    },
    {
        "messages": [USER],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
    },
    {
        "messages": [USER],
        "tools": [
            {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": REGEX}}},
            TOOL,
        ],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}},
    },
    {
        "messages": [
            {**USER, "name": "n"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "function_call": CALL["function"]},
            {"role": "function", "name": "f", "content": "x"},
        ],
        "regex": "a",
        "chat_template": {"template": "{{ messages[0].content }}", "bos_token": ""},
    },
    {"messages": [USER], "choice": ["a", "b"]},
    {"messages": [USER], "grammar": 'root ::= "a"'},
    {"messages": [{"role": "user", "content": [USER["content"][0], IMAGE]}]},
]
ITEMS: list[Any] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}]},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "custom_tool_call", "call_id": "c2", "name": "c", "input": "a"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "x"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
    {"role": "user", "content": "b"},
]
RESPONSES: list[Any] = [
    {
        "input": ITEMS,
        "instructions": "x",
        "model": "sampled",
        "parallel_tool_calls": False,
        "stream": True,
        "tools": [{"type": "function", **FUNCTION}, {"type": "custom", "name": "c", "format": {"type": "text"}}],
        "tool_choice": {"type": "function", "name": "f"},
        "max_output_tokens": 9,
        "temperature": 1,
        "top_p": 1,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}},
        "reasoning": {"effort": "low", "summary": "auto"},
        "store": False,
        "metadata": {"a": "b"},
    },
    {
        "input": "a",
        "tools": [{"type": "function", **FUNCTION}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
    },
]
BLOCKS: list[Any] = [
    {"type": "thinking", "thinking": "t", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "text", "text": "a"},
    {"type": "tool_use", "id": "t1", "name": "f", "input": {"city": "a"}},
]
RESULT = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [{"type": "text", "text": "r"}]}
MESSAGES: list[Any] = [
    {
        "messages": [USER, {"role": "assistant", "content": BLOCKS}, {"role": "user", "content": [RESULT]}],
        "max_tokens": 9,
        "system": [{"type": "text", "text": "s"}],
        "model": "sampled",
        "stream": True,
        "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA, "strict": True}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stop_sequences": ["x"],
        "temperature": 1,
        "output_config": {"effort": "low"},
    },
    {
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "pre"}],
        "max_tokens": 9,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
]
OLLAMA_CALL = {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"city": "a"}}}
OPTIONS = {
    "temperature": 0.1,
    "top_p": 1,
    "top_k": 1,
    "min_p": 0,
    "num_predict": 5,
    "seed": 1,
    "stop": ["a"],
    "repeat_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "num_ctx": 4096,
}
OLLAMA: list[Any] = [
    {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [OLLAMA_CALL]},
            {"role": "tool", "tool_name": "f", "content": "x"},
        ],
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": True,
        "model": "sampled",
        "stream": False,
        "think": "low",
        "options": OPTIONS,
        "keep_alive": "5m",
        "logprobs": True,
        "top_logprobs": 1,
        "style": "short",
    },
    {"messages": [{"role": "user", "content": "Hi"}], "format": SCHEMA, "think": False, "keep_alive": 1.5},
    {"messages": [{"role": "user", "content": "Hi", "images": ["AA"]}]},
]
GENERATED: list[Any] = [
    {
        "prompt": "Hi",
        "system": "s",
        "format": "json",
        "think": True,
        "images": [],
        "suffix": "",
        "template": "",
        "options": OPTIONS,
        "keep_alive": 0,
        "logprobs": True,
        "top_logprobs": 1,
        "model": "sampled",
    },
    {"prompt": "a", "raw": True, "stream": False, "options": {"num_predict": 4}, "format": SCHEMA},
]
BODIES: dict[str, list[Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/explain": [{**CHAT[0], "dialect": "lark"}, CHAT[2]],
    "/v1/completions": [
        {
            "prompt": ["a", [1, 2]],
            "max_tokens": 4,
            "stop": ["a"],
            "n": 2,
            "best_of": 2,
            "echo": False,
            "seed": 1,
            "stream": True,
            "stream_options": {"include_usage": True},
            "grammar": 'root ::= "a"',
        },
        {"prompt": [1, 2]},
    ],
    "/v1/responses": RESPONSES,
    "/v1/responses/input_tokens": RESPONSES[:1],
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": MESSAGES[:1],
    "/api/chat": OLLAMA,
    "/api/generate": GENERATED,
    "/api/show": [{"model": "sampled", "name": "sampled"}],
    "/tokenize": [{"messages": [USER]}, {"prompt": "a", "model": "sampled"}, {"content": "a"}],
    "/detokenize": [{"tokens": [1, 2], "model": "sampled"}],
}


def message_of(error: Any) -> str:
    """What went wrong, as any API tells it."""
    return error["error"] if isinstance(error["error"], str) else error["error"]["message"]


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Where each value within a body stands."""
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*at, key))


def replaced(body: Any, at: Path, value: Any) -> Any:
    """The body with another value at that place."""
    if not at:
        return value
    body = copy.deepcopy(body)
    holder = body
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = value
    return body
