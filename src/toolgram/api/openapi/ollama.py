"""Schemas of Ollama's API."""

from __future__ import annotations

from toolgram.api.openapi.shapes import (
    COUNT,
    ESTIMATED,
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
    one_word,
    ref,
    whole,
)

_CALL = given({"id": STRING}, function=given(index=COUNT, name=STRING, arguments=OBJECT))
_MESSAGE = given({"thinking": STRING, "tool_calls": array(_CALL, 1)}, role=always("assistant"), content=STRING)
_TEXT: Json = {"response": STRING}
_HEAD: Json = {"model": STRING, "created_at": STRING}
_LIKELY: Json = {"logprobs": LOGPROBS}
_DURATION = whole(1)
_COST: Json = {
    "total_duration": _DURATION,
    "load_duration": _DURATION,
    "prompt_eval_count": COUNT,
    "prompt_eval_duration": _DURATION,
    "eval_count": COUNT,
    "eval_duration": _DURATION,
}
_END: Json = {"done": {"const": True}, "done_reason": one_word("stop", "length"), **_COST}
_NOTHING: Json = {"done": {"const": True}, "done_reason": one_word("load", "unload")}


def _answer(said: Json, maybe: Json) -> Json:
    """An answer, or that a model is loaded."""
    return any_of(
        given({**maybe, **_LIKELY, **ESTIMATED, **NOTED}, **_HEAD, **said, **_END), given(**_HEAD, **said, **_NOTHING)
    )


def _object(said: Json, maybe: Json, answer: str) -> Json:
    """A line of a stream, of which the last has the form of a whole answer."""
    more = given({**maybe, **_LIKELY}, **_HEAD, **said, done={"const": False})
    return any_of(more, ref(answer), ref("OllamaError"))


_THOUGHT: Json = {"thinking": STRING}
CHAT = _answer({"message": _MESSAGE}, {})
CHAT_OBJECT = _object({"message": _MESSAGE}, {}, "OllamaChat")
GENERATE = _answer(_TEXT, _THOUGHT)
GENERATE_OBJECT = _object(_TEXT, _THOUGHT, "OllamaGenerate")

_DETAILS = given(
    parent_model=STRING,
    format=STRING,
    family=NAME,
    families=array(NAME),
    parameter_size=STRING,
    quantization_level=STRING,
)
_MODEL: Json = {"name": NAME, "model": NAME, "size": COUNT, "digest": NAME, "details": _DETAILS}
TAGS = given(models=array(given(**_MODEL, modified_at=STRING)))
RUNNING = given(models=array(given(**_MODEL, expires_at=STRING, size_vram=COUNT, context_length=COUNT)))
SHOWN = given(
    license=STRING,
    modelfile=STRING,
    parameters=STRING,
    template=STRING,
    details=_DETAILS,
    model_info=OBJECT,
    capabilities=array(one_word("completion", "tools", "thinking")),
    modified_at=STRING,
)
VERSION = given(version=NAME)
ERROR = given(error=STRING)
