"""Schemas of `/v1/chat/completions`, its answers and its chunks, and of `/v1/explain`."""

from __future__ import annotations

from toolgram.api.openapi.shapes import (
    BOOLEAN,
    COUNT,
    ESTIMATED,
    INTEGER,
    LOGPROBS,
    NOTED,
    NULL,
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
    whole,
)

USAGE = given(
    ESTIMATED,
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    total_tokens=COUNT,
    prompt_tokens_details=given(cached_tokens=COUNT),
    completion_tokens_details=given({"reasoning_closed": {"const": True}}, reasoning_tokens=COUNT),
)
_LOGPROBS = nullable(given(content=LOGPROBS, refusal=NULL))
_FINISH = one_word("stop", "length", "tool_calls", "function_call")
_WRITTEN = given(name=STRING, arguments=STRING)
_TYPED = given(name=STRING, input=STRING)
_CUT: Json = {"incomplete": {"const": True}}
_ANSWER = given(
    {
        "reasoning_content": STRING,
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
    choices=array(given(NOTED, index=COUNT, message=_ANSWER, logprobs=_LOGPROBS, finish_reason=_FINISH), 1),
    usage=USAGE,
)
_DELTA = given(
    {
        "role": always("assistant"),
        "content": nullable(STRING),
        "reasoning_content": STRING,
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
_POINT = given(position=COUNT, preferred=STRING, removed=NUMBER)
CHUNK = any_of(
    given(
        {"usage": nullable(USAGE)},
        **_HEAD,
        object=always("chat.completion.chunk"),
        choices=array(
            given(
                {"tokens": array(_TOKEN, 1), "trace": array(_POINT, 1), **NOTED},
                index=COUNT,
                delta=_DELTA,
                logprobs=_LOGPROBS,
                finish_reason=nullable(_FINISH),
            )
        ),
    ),
    ref("Error"),
)

RELAXATION = given(pointer=STRING, keyword=STRING, enforced=STRING, kind=one_word("not enforced", "stricter"))
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
