"""A few bodies of each route."""

from __future__ import annotations

from toolgram.api.openapi.shapes import Json

_HI: Json = {"role": "user", "content": "What is the weather in Paris?"}
_SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
}
_WEATHER: Json = {"name": "get_weather", "description": "The weather of a city.", "parameters": _SCHEMA}
_TOOL: Json = {"type": "function", "function": _WEATHER}
_CALL: Json = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Paris", "unit": "C"}'},
}
_TURNS: list[Json] = [
    _HI,
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 21 °C."},
]

_TOLD = {"include_usage": True, "include_tokens": True}
CHAT: dict[str, Json] = {
    "a question": {"messages": [_HI], "max_tokens": 16},
    "a stream": {"messages": [_HI], "max_tokens": 16, "stream": True, "stream_options": _TOLD},
    "a call": {"messages": [_HI], "tools": [_TOOL], "tool_choice": "required"},
    "the answer after a call": {"messages": _TURNS, "tools": [_TOOL], "max_tokens": 16},
    "an answer in a schema": {
        "messages": [_HI],
        "response_format": {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": _SCHEMA}},
    },
    "one of two answers": {"messages": [_HI], "choice": ["sunny", "rainy"]},
}
COMPLETIONS: dict[str, Json] = {
    "a text": {"prompt": "Once upon a time", "max_tokens": 8},
    "a stream": {"prompt": ["Once upon a time", "In the beginning"], "max_tokens": 8, "stream": True},
    "a grammar": {"prompt": "Yes or no?", "grammar": 'root ::= " yes" | " no"'},
}
RESPONSES: dict[str, Json] = {
    "a question": {"input": "What is the weather in Paris?", "max_output_tokens": 16},
    "a stream": {"input": [_HI], "max_output_tokens": 16, "stream": True},
    "a call": {"input": "Paris?", "tools": [{"type": "function", **_WEATHER}], "tool_choice": "required"},
    "the answer after a call": {
        "input": [
            _HI,
            {"type": "function_call", "call_id": "call_1", **_CALL["function"]},
            {"type": "function_call_output", "call_id": "call_1", "output": "Sunny."},
        ],
        "max_output_tokens": 16,
    },
    "an answer in a schema": {
        "input": "Paris?",
        "text": {"format": {"type": "json_schema", "name": "place", "strict": True, "schema": _SCHEMA}},
    },
}
_ANTHROPIC_TOOL: Json = {"name": "get_weather", "description": "The weather of a city.", "input_schema": _SCHEMA}
MESSAGES: dict[str, Json] = {
    "a question": {"messages": [_HI], "max_tokens": 16},
    "a stream": {"messages": [_HI], "system": "Be brief.", "max_tokens": 16, "stream": True},
    "a call": {"messages": [_HI], "max_tokens": 60, "tools": [_ANTHROPIC_TOOL], "tool_choice": {"type": "any"}},
}
_WEATHER_CALL: Json = {"function": {"name": "get_weather", "arguments": {"city": "Paris", "unit": "C"}}}
_RESULT: Json = {"role": "tool", "tool_name": "get_weather", "content": "Sunny, 21 °C."}
OLLAMA_CHAT: dict[str, Json] = {
    "a question": {"messages": [_HI], "stream": False, "options": {"num_predict": 16}},
    "a stream": {"messages": [_HI], "think": False, "options": {"num_predict": 16, "temperature": 0}},
    "a call": {"messages": [_HI], "tools": [_TOOL], "tool_choice": "required", "stream": False},
    "the answer after a call": {
        "messages": [_HI, {"role": "assistant", "content": "", "tool_calls": [_WEATHER_CALL]}, _RESULT],
        "tools": [_TOOL],
        "options": {"num_predict": 16},
    },
    "an answer in a schema": {"messages": [_HI], "format": _SCHEMA, "stream": False},
}
OLLAMA_GENERATE: dict[str, Json] = {
    "a question": {"prompt": "What is the weather in Paris?", "stream": False, "options": {"num_predict": 16}},
    "a text": {"prompt": "Once upon a time", "raw": True, "options": {"num_predict": 8}},
    "any object": {"prompt": "Paris, in JSON.", "format": "json", "stream": False},
}
OLLAMA_SHOW: dict[str, Json] = {"a model": {"model": "smollm2"}}
INPUT_TOKENS: dict[str, Json] = {"a question": {"input": "Hello."}}
COUNT_TOKENS: dict[str, Json] = {"a question": {"messages": [_HI]}}
TOKENIZE: dict[str, Json] = {"a text": {"content": "Hello."}, "a conversation": {"messages": [_HI]}}
DETOKENIZE: dict[str, Json] = {"a text": {"tokens": [1, 2, 3]}}
_OPERATION: Json = {"operationId": "get_weather", "parameters": [{"name": "city", "in": "query", "required": True}]}
IMPORT: dict[str, Json] = {
    "OpenAPI": {"document": {"openapi": "3.1.0", "paths": {"/weather": {"get": _OPERATION}}}},
    "MCP": {"document": {"tools": [{"name": "get_weather", "inputSchema": _SCHEMA}]}},
}
MCP_CALL: dict[str, Json] = {
    "a call": {"server_label": "files", "name": "read", "arguments": '{"path": "notes.md"}', "approve": True}
}
