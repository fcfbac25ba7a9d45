"""Schemas of OpenAI's `/v1/responses`."""

from __future__ import annotations

from toolgram.api.openapi.others import MCP_TOOL, WRONG
from toolgram.api.openapi.shapes import (
    BOOLEAN,
    COUNT,
    ESTIMATED,
    INTEGER,
    LOGPROBS,
    NAME,
    NOTED,
    OBJECT,
    STRING,
    Json,
    always,
    any_of,
    array,
    given,
    nullable,
    one_word,
    ref,
)

_STATUS = one_word("in_progress", "completed", "incomplete", "failed")
_IS: Json = {"id": STRING, "status": _STATUS}
_TEXT = given(type=always("output_text"), text=STRING, annotations=array({}, most=0), logprobs=LOGPROBS)
_THOUGHT = given(type=always("reasoning_text"), text=STRING)
_SUMMARY = given(type=always("summary_text"), text=STRING)
_PLACE: Json = {"namespace": STRING}
_CALLED: Json = {"server_label": STRING, "name": STRING, "arguments": STRING}
_OUTPUT = any_of(
    given(**_IS, type=always("message"), role=always("assistant"), content=array(_TEXT)),
    given(
        {"encrypted_content": STRING, "content": array(_THOUGHT)},
        **_IS,
        type=always("reasoning"),
        summary=array(_SUMMARY),
    ),
    given(_PLACE, **_IS, type=always("function_call"), call_id=STRING, name=STRING, arguments=STRING),
    given(_PLACE, **_IS, type=always("custom_tool_call"), call_id=STRING, name=STRING, input=STRING),
    given(
        id=STRING,
        type=always("mcp_list_tools"),
        server_label=STRING,
        tools=array(MCP_TOOL),
        error=nullable(STRING),
    ),
    given(
        **_IS,
        type=always("mcp_call"),
        **_CALLED,
        output=nullable(STRING),
        error=nullable(given(type=always("mcp_tool_execution_error"), content=array({}))),
        approval_request_id=nullable(STRING),
    ),
    given(id=STRING, type=always("mcp_approval_request"), **_CALLED),
)
COUNTED = given(object=always("response.input_tokens"), input_tokens=COUNT)
_USAGE = given(
    ESTIMATED,
    input_tokens=COUNT,
    input_tokens_details=given(cached_tokens=COUNT, cache_write_tokens=COUNT),
    output_tokens=COUNT,
    output_tokens_details=given(reasoning_tokens=COUNT),
    total_tokens=COUNT,
)
_ECHO: Json = {
    "background": BOOLEAN,
    "instructions": nullable(STRING),
    "max_output_tokens": nullable(INTEGER),
    "max_tool_calls": nullable(INTEGER),
    "metadata": OBJECT,
    "parallel_tool_calls": BOOLEAN,
    "previous_response_id": nullable(STRING),
    "reasoning": given(effort=nullable(STRING), summary=nullable(STRING)),
    "service_tier": STRING,
    "store": BOOLEAN,
    "temperature": {"type": "number"},
    "top_p": {"type": "number"},
    "presence_penalty": {"type": "number"},
    "frequency_penalty": {"type": "number"},
    "top_logprobs": INTEGER,
    "text": OBJECT,
    "tool_choice": any_of(STRING, OBJECT),
    "tools": array(OBJECT),
    "truncation": always("disabled"),
    "user": nullable(STRING),
}
ANSWER = given(
    NOTED,
    **_ECHO,
    id=STRING,
    object=always("response"),
    created_at=INTEGER,
    status=_STATUS,
    error=nullable(given(code=STRING, message=STRING)),
    incomplete_details=nullable(given(reason=always("max_output_tokens"))),
    model=STRING,
    output=array(_OUTPUT),
    usage=nullable(_USAGE),
)

FORGOTTEN = given(id=STRING, object=always("response"), deleted={"const": True})
INPUT_ITEMS = given(
    object=always("list"),
    data=array({"type": "object", "properties": {"id": NAME, "type": NAME}, "required": ["id", "type"]}),
    first_id=nullable(STRING),
    last_id=nullable(STRING),
    has_more=BOOLEAN,
)


def _event(*types: str, **fields: Json) -> Json:
    return given(type=one_word(*types), sequence_number=COUNT, **fields)


_AT: Json = {"output_index": COUNT, "item_id": STRING}
_IN: Json = {**_AT, "content_index": COUNT}
_OF_SUMMARY: Json = {**_AT, "summary_index": COUNT}
_PART_GIVEN = any_of(_TEXT, _THOUGHT)
EVENT = any_of(
    _event(
        *("response.created", "response.in_progress", "response.completed"),
        *("response.incomplete", "response.failed"),
        response=ref("Response"),
    ),
    _event("response.output_item.added", "response.output_item.done", output_index=COUNT, item=_OUTPUT),
    _event("response.content_part.added", "response.content_part.done", **_IN, part=_PART_GIVEN),
    _event("response.output_text.delta", **_IN, delta=STRING, logprobs=LOGPROBS),
    _event("response.output_text.done", **_IN, text=STRING, logprobs=LOGPROBS),
    _event("response.reasoning_text.delta", **_IN, delta=STRING),
    _event("response.reasoning_text.done", **_IN, text=STRING),
    _event(
        "response.reasoning_summary_part.added", "response.reasoning_summary_part.done", **_OF_SUMMARY, part=_SUMMARY
    ),
    _event("response.reasoning_summary_text.delta", **_OF_SUMMARY, delta=STRING),
    _event("response.reasoning_summary_text.done", **_OF_SUMMARY, text=STRING),
    _event("response.function_call_arguments.delta", **_AT, delta=STRING),
    _event("response.function_call_arguments.done", **_AT, arguments=STRING, name=STRING),
    _event("response.custom_tool_call_input.delta", **_AT, delta=STRING),
    _event("response.custom_tool_call_input.done", **_AT, input=STRING),
    _event("response.mcp_call_arguments.delta", **_AT, delta=STRING),
    _event("response.mcp_call_arguments.done", **_AT, arguments=STRING),
    _event(
        *("response.mcp_call.in_progress", "response.mcp_call.completed", "response.mcp_call.failed"),
        *("response.mcp_list_tools.in_progress", "response.mcp_list_tools.completed"),
        "response.mcp_list_tools.failed",
        **_AT,
    ),
    _event("error", code=STRING, message=STRING, param=nullable(STRING), error=WRONG),
)
