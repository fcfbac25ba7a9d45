"""Schemas of Anthropic's `/v1/messages`."""

from __future__ import annotations

from toolgram.api.chat.request import EFFORTS
from toolgram.api.openapi.chat import SAMPLING
from toolgram.api.openapi.shapes import (
    BOOLEAN,
    COUNT,
    NAME,
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
    taken,
    whole,
)
from toolgram.api.sampling import MAX_STOPS

_TEXT = taken({"type": always("text"), "text": STRING})
_SOURCE = any_of(
    taken({"type": always("url"), "url": STRING}),
    taken({"type": always("base64"), "media_type": STRING, "data": STRING}),
)
_SHOWN = any_of(_TEXT, taken({"type": always("image"), "source": _SOURCE}))
_RESULT = taken(
    {"type": always("tool_result"), "tool_use_id": STRING}, content=any_of(STRING, array(_SHOWN)), is_error=BOOLEAN
)
_ASSISTANT = any_of(
    _TEXT,
    taken({"type": always("thinking"), "thinking": STRING}),
    taken({"type": always("redacted_thinking")}),
    taken({"type": always("tool_use"), "id": STRING, "name": NAME, "input": OBJECT}),
)
_PLAIN = any_of(STRING, array(_TEXT))
_MESSAGE = any_of(
    taken({"role": always("user"), "content": any_of(STRING, array(any_of(_SHOWN, _RESULT), 1))}),
    taken({"role": always("assistant"), "content": any_of(STRING, array(_ASSISTANT))}),
    taken({"role": always("system"), "content": _PLAIN}),
)
_TOOL = taken({"name": NAME, "input_schema": OBJECT}, type=always("custom"), description=STRING, strict=BOOLEAN)
_ONE_CALL: Json = {"disable_parallel_tool_use": BOOLEAN}
_CHOICE = any_of(
    taken({"type": one_word("auto", "any", "none")}, **_ONE_CALL),
    taken({"type": always("tool"), "name": NAME}, **_ONE_CALL),
)
_FORMAT = taken({"type": always("json_schema"), "schema": any_of(OBJECT, BOOLEAN)})
_THINKING = any_of(
    taken({"type": one_word("disabled", "adaptive", "between_tools")}),
    taken({"type": always("enabled")}, budget_tokens=COUNT),
)
_SAMPLING = {name: schema for name, schema in SAMPLING.items() if name not in ("max_tokens", "stop")}
_OPTIONS: Json = {
    **_SAMPLING,
    "seed": whole(0),
    "stop_sequences": array(NAME, most=MAX_STOPS),
    "model": STRING,
    "system": _PLAIN,
    "tools": array(_TOOL),
    "tool_choice": _CHOICE,
    "output_config": taken(format=_FORMAT, effort=one_word(*EFFORTS)),
    "output_format": _FORMAT,
    "thinking": _THINKING,
    "style": STRING,
}
_MESSAGES = array(_MESSAGE, 1)
REQUEST = taken({"messages": _MESSAGES, "max_tokens": whole(1)}, **_OPTIONS, stream=BOOLEAN)
COUNT_REQUEST = taken({"messages": _MESSAGES}, **_OPTIONS, max_tokens=whole(1))
COUNTED = given(input_tokens=COUNT)

_USAGE = given(
    input_tokens=COUNT, cache_creation_input_tokens=COUNT, cache_read_input_tokens=COUNT, output_tokens=COUNT
)
_REASON = one_word("end_turn", "max_tokens", "tool_use", "stop_sequence")
_BLOCK = any_of(
    given(type=always("thinking"), thinking=STRING, signature=STRING),
    given(type=always("text"), text=STRING),
    given({"incomplete": {"const": True}}, type=always("tool_use"), id=STRING, name=STRING, input=OBJECT),
)
_ENDED: Json = {"stop_reason": nullable(_REASON), "stop_sequence": nullable(STRING)}
ANSWER = given(
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
    given(type=always("input_json_delta"), partial_json=STRING),
)
EVENT = any_of(
    given(type=always("message_start"), message=ref("AnthropicMessage")),
    given(type=always("content_block_start"), index=COUNT, content_block=_BLOCK),
    given(type=always("content_block_delta"), index=COUNT, delta=_DELTA),
    given(type=always("content_block_stop"), index=COUNT),
    given(type=always("message_delta"), delta=given(**_ENDED), usage=_USAGE),
    given(type=always("message_stop")),
    ref("AnthropicError"),
)
