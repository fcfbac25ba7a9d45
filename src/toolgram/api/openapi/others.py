"""Schemas of the small routes: completions, tokens, models, errors."""

from __future__ import annotations

from toolgram.api.openapi.chat import USAGE
from toolgram.api.openapi.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
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

_LOGPROBS = given(
    tokens=array(STRING),
    token_logprobs=array(NUMBER),
    top_logprobs=array({"type": "object", "additionalProperties": NUMBER}),
    text_offset=array(COUNT),
)
_CHOICE = given(
    index=COUNT, text=STRING, logprobs=nullable(_LOGPROBS), finish_reason=nullable({"enum": ["stop", "length"]})
)
COMPLETION = given(
    {"usage": USAGE},
    id=STRING,
    object=always("text_completion"),
    created=INTEGER,
    model=STRING,
    choices=array(_CHOICE),
)
COMPLETION_CHUNK = any_of(COMPLETION, ref("Error"))

TOKENS = given(tokens=array(COUNT), count=COUNT, max_model_len=nullable(COUNT))
TOOLS = given(tools=array({"type": "object"}))
TEXT = given(prompt=STRING, content=STRING)

_OF_MODEL: Json = {
    "id": STRING,
    "object": always("model"),
    "created": INTEGER,
    "owned_by": STRING,
    "aliases": array(STRING),
    "max_model_len": nullable(COUNT),
    "context_length": nullable(COUNT),
}
_MODEL = given(**_OF_MODEL)
_TEMPLATE = given(template=STRING, bos_token=STRING, eos_token=STRING)
_ANTHROPIC_MODEL = given(
    type=always("model"),
    id=STRING,
    display_name=STRING,
    created_at=STRING,
    lifecycle=always("active"),
    max_input_tokens=nullable(COUNT),
)
MODEL = any_of(given(**_OF_MODEL, chat_template=_TEMPLATE), _ANTHROPIC_MODEL)
MODELS = any_of(
    given(object=always("list"), data=array(_MODEL)),
    given(data=array(_ANTHROPIC_MODEL), first_id=STRING, last_id=STRING, has_more=BOOLEAN),
)
HEALTH = given(
    status=one_word("ok", "unavailable"),
    models=array(given(id=STRING, status=one_word("ok", "unavailable"), enforced=BOOLEAN)),
)

MCP_TOOL = given(
    name=STRING, description=STRING, input_schema={"type": "object"}, annotations=nullable({"type": "object"})
)
MCP_SERVERS = given(
    object=always("list"),
    data=array(
        given(
            object=always("mcp.server"),
            server_label=STRING,
            transport=one_word("stdio", "http"),
            error=nullable(STRING),
            tools=array(MCP_TOOL),
        )
    ),
)

MCP_CALL = given(
    object=always("mcp.call"),
    server_label=STRING,
    name=STRING,
    arguments=STRING,
    output=nullable(STRING),
    error=nullable(STRING),
)

WRONG = given({"pointer": STRING}, message=STRING, type=STRING, param=nullable(STRING), code=STRING)
ERROR = given(error=WRONG)
_DETAILS = given(error_code=STRING, unsupported=array(STRING))
ANTHROPIC_ERROR: Json = given(
    type=always("error"),
    error=given({"details": _DETAILS}, type=STRING, message=STRING),
    request_id=nullable(STRING),
)
