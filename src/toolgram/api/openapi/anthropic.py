"""Schemas of Anthropic's `/v1/messages`."""

from __future__ import annotations

from toolgram.api.openapi.shapes import (
    COUNT,
    ESTIMATED,
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

COUNTED = given(input_tokens=COUNT)

_USAGE = given(
    ESTIMATED,
    input_tokens=COUNT,
    cache_creation_input_tokens=COUNT,
    cache_read_input_tokens=COUNT,
    output_tokens=COUNT,
    output_tokens_details=given(thinking_tokens=COUNT),
)
_REASON = one_word("end_turn", "max_tokens", "tool_use", "stop_sequence", "model_context_window_exceeded")
_BLOCK = any_of(
    given(type=always("thinking"), thinking=STRING, signature=STRING),
    given(type=always("text"), text=STRING),
    given({"incomplete": {"const": True}}, type=always("tool_use"), id=STRING, name=STRING, input=OBJECT),
)
_ENDED: Json = {"stop_reason": nullable(_REASON), "stop_sequence": nullable(STRING)}
ANSWER = given(
    NOTED,
    id=STRING,
    type=always("message"),
    role=always("assistant"),
    model=STRING,
    content=array(_BLOCK),
    **_ENDED,
    usage=_USAGE,
)
_DELTA = any_of(
    given(type=always("text_delta"), text=STRING),
    given(type=always("thinking_delta"), thinking=STRING),
    given(type=always("signature_delta"), signature=STRING),
    given(type=always("input_json_delta"), partial_json=STRING),
)
EVENT = any_of(
    given(type=always("message_start"), message=ref("AnthropicMessage")),
    given(type=always("content_block_start"), index=COUNT, content_block=_BLOCK),
    given(type=always("content_block_delta"), index=COUNT, delta=_DELTA),
    given({"incomplete": {"const": True}}, type=always("content_block_stop"), index=COUNT),
    given(NOTED, type=always("message_delta"), delta=given(**_ENDED), usage=_USAGE),
    given(type=always("message_stop")),
    given(type=always("ping")),
    ref("AnthropicError"),
)
