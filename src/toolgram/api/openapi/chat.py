"""Schemas of `/v1/chat/completions`, its answers and its chunks, and of `/v1/explain`."""

from __future__ import annotations

from toolgram.api.chat.request import EFFORTS, MAX_CHOICES
from toolgram.api.openapi.shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NAME,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Json,
    always,
    any_of,
    array,
    given,
    nullable,
    number,
    one_word,
    ref,
    taken,
    whole,
)
from toolgram.api.sampling import BIAS_KEY, MAX_SEED, MAX_STOPS, MAX_TOP_LOGPROBS
from toolgram.engines.base import LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY
from toolgram.grammar.dialects import WRITERS

SAMPLING: Json = {
    "max_tokens": whole(1),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "top_k": whole(-1),
    "min_p": number(0, 1),
    "seed": whole(-MAX_SEED - 1, MAX_SEED),
    "stop": any_of(NAME, array(NAME, most=MAX_STOPS)),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "repetition_penalty": number(LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY),
    "logit_bias": {
        "type": "object",
        "propertyNames": {"pattern": f"^{BIAS_KEY}$"},
        "additionalProperties": number(-100, 100),
    },
}
"""The fields that say how tokens are chosen."""

_STREAM: Json = {"stream": BOOLEAN, "stream_options": taken(include_usage=BOOLEAN, include_tokens=BOOLEAN)}

_FUNCTION_CALL = taken({"name": NAME, "arguments": any_of(STRING, OBJECT)})
_CALL = any_of(
    taken({"function": _FUNCTION_CALL}, id=STRING, type=always("function")),
    taken({"type": always("custom"), "custom": taken({"name": NAME, "input": STRING})}, id=STRING),
)
_PART = any_of(
    taken({"type": always("text"), "text": STRING}),
    taken({"type": always("refusal"), "refusal": STRING}),
    taken({"type": one_word("image_url", "input_audio", "file", "video_url", "audio_url", "image")}),
)
_CONTENT = any_of(STRING, NULL, array(_PART))
_SAID: Json = {"content": _CONTENT, "name": STRING}
_MESSAGE = any_of(
    taken({"role": one_word("system", "developer", "user", "function")}, **_SAID),
    taken({"role": always("tool")}, **_SAID, tool_call_id=STRING),
    taken(
        {"role": always("assistant")},
        **_SAID,
        reasoning_content=STRING,
        reasoning=STRING,
        tool_calls=array(_CALL),
        function_call=taken({"name": STRING, "arguments": STRING}),
    ),
)
_SCHEMA = any_of(OBJECT, BOOLEAN)
_FUNCTION = taken({"name": NAME}, description=STRING, parameters=_SCHEMA, strict=BOOLEAN)
_GRAMMAR = taken({"syntax": one_word("regex", "lark"), "definition": STRING})
_CUSTOM_FORMAT = any_of(taken({"type": always("text")}), taken({"type": always("grammar"), "grammar": _GRAMMAR}))
_CUSTOM = taken({"name": NAME}, description=STRING, format=_CUSTOM_FORMAT)
_TOOL = any_of(
    taken({"function": _FUNCTION}, type=always("function")), taken({"type": always("custom"), "custom": _CUSTOM})
)
_NAMED = any_of(*(taken({"type": always(kind), kind: taken({"name": NAME})}) for kind in ("function", "custom")))
_ALLOWED = taken({"mode": one_word("auto", "required"), "tools": array(_NAMED, 1)})
_CHOICE = any_of(
    one_word("none", "auto", "required"),
    _NAMED,
    taken({"type": always("allowed_tools"), "allowed_tools": _ALLOWED}),
)
_CHOICES = array(NAME, 1)
_FORMAT = any_of(
    taken({"type": one_word("text", "json_object")}),
    taken({"type": always("json_schema"), "json_schema": taken({"schema": _SCHEMA}, name=STRING, strict=BOOLEAN)}),
    taken({"type": one_word("json_object", "json_schema"), "schema": _SCHEMA}, name=STRING, strict=BOOLEAN),
    taken({"type": always("regex"), "regex": STRING}),
    taken({"type": always("choice"), "choice": _CHOICES}),
)

REQUEST = taken(
    {"messages": array(_MESSAGE, 1)},
    model=STRING,
    **SAMPLING,
    **_STREAM,
    max_completion_tokens=whole(1),
    n=whole(1, MAX_CHOICES),
    logprobs=BOOLEAN,
    top_logprobs=whole(0, MAX_TOP_LOGPROBS),
    tools=array(_TOOL),
    tool_choice=_CHOICE,
    parallel_tool_calls=BOOLEAN,
    response_format=_FORMAT,
    regex=STRING,
    choice=_CHOICES,
    grammar=STRING,
    functions=array(_FUNCTION),
    function_call=any_of(one_word("none", "auto"), taken({"name": NAME})),
    reasoning_effort=one_word(*EFFORTS),
    reasoning_format=one_word("auto", "none"),
    reasoning_max_tokens=COUNT,
    chat_template=any_of(STRING, taken({"template": STRING}, bos_token=STRING, eos_token=STRING)),
    chat_template_kwargs=OBJECT,
    continue_final_message=BOOLEAN,
    add_generation_prompt=BOOLEAN,
    style=STRING,
    modalities=array(always("text")),
    metadata={"type": "object", "additionalProperties": STRING},
)
EXPLAIN_REQUEST: Json = {
    **REQUEST,
    "properties": {**REQUEST["properties"], "dialect": nullable(one_word(*sorted(WRITERS)))},
}

USAGE = given(
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    total_tokens=COUNT,
    prompt_tokens_details=given(cached_tokens=COUNT),
    completion_tokens_details=given({"reasoning_closed": {"const": True}}, reasoning_tokens=COUNT),
)
_LOGPROB: Json = {"token": STRING, "logprob": NUMBER, "bytes": array(whole(0, 255))}
_LOGPROBS = nullable(given(content=array(given(**_LOGPROB, top_logprobs=array(given(**_LOGPROB)))), refusal=NULL))
_FINISH = one_word("stop", "length", "tool_calls", "function_call")
_WRITTEN = given(name=STRING, arguments=STRING)
_TYPED = given(name=STRING, input=STRING)
_CUT: Json = {"incomplete": {"const": True}}
_DROPPED: Json = {"dropped_tool_calls": COUNT}
_ANSWER = given(
    {
        "reasoning_content": STRING,
        "reasoning": STRING,
        "function_call": _WRITTEN,
        "tool_calls": array(
            any_of(
                given(_CUT, id=STRING, type=always("function"), function=_WRITTEN),
                given(_CUT, id=STRING, type=always("custom"), custom=_TYPED),
            ),
            1,
        ),
    },
    role=always("assistant"),
    content=nullable(STRING),
    refusal=NULL,
)
_HEAD: Json = {"id": STRING, "created": INTEGER, "model": STRING}
ANSWER = given(
    **_HEAD,
    object=always("chat.completion"),
    choices=array(given(_DROPPED, index=COUNT, message=_ANSWER, logprobs=_LOGPROBS, finish_reason=_FINISH), 1),
    usage=USAGE,
)
_DELTA = given(
    {
        "role": always("assistant"),
        "content": nullable(STRING),
        "reasoning_content": STRING,
        "reasoning": STRING,
        "function_call": given({"name": STRING}, arguments=STRING),
        "tool_calls": array(
            any_of(
                given(index=COUNT, id=STRING, type=always("function"), function=_WRITTEN),
                given(index=COUNT, id=STRING, type=always("custom"), custom=_TYPED),
                given(_CUT, index=COUNT, function=given(arguments=STRING)),
            ),
            1,
        ),
    }
)
_TOKEN = given({"bytes": array(whole(0, 255)), "logprob": NUMBER}, text=STRING, forced=BOOLEAN)
CHUNK = any_of(
    given(
        {"usage": nullable(USAGE)},
        **_HEAD,
        object=always("chat.completion.chunk"),
        choices=array(
            given(
                {"tokens": array(_TOKEN), **_DROPPED},
                index=COUNT,
                delta=_DELTA,
                logprobs=_LOGPROBS,
                finish_reason=nullable(_FINISH),
            )
        ),
    ),
    ref("Error"),
)

RELAXATION = given(pointer=STRING, keyword=STRING, enforced=STRING)
EXPLANATION = given(
    model=STRING,
    style=given(name=STRING, about=STRING, why=STRING),
    prompt=STRING,
    prompt_parts=array(given(text=STRING, trusted=BOOLEAN)),
    prompt_tokens=nullable(COUNT),
    format_prompt=nullable(STRING),
    stop=array(STRING),
    grammar=nullable(given(dialect=STRING, text=STRING)),
    relaxations=array(ref("Relaxation")),
    ignored=array(STRING),
)
