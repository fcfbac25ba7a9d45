"""A body of `/v1/chat/completions`, read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolgram.api.custom_tools import choice_as_function, tool_as_function
from toolgram.api.fields import Body, boolean, inner, integer, items, listed, mapping, one_of, string, text, unknown
from toolgram.api.generation import Generation, GivenTemplate
from toolgram.api.sampling import SAMPLING_FIELDS, asked_logprobs, sampling_of
from toolgram.api.unsupported import refuse_constraints
from toolgram.errors import InvalidRequest

MAX_CHOICES = 128

_PLANNED = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_format"),
    *("reasoning_max_tokens", "continue_final_message", "add_generation_prompt", "chat_template_kwargs"),
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# What OpenAI has and a text does not change for: its accounts, caches and tiers.
_WITHOUT_EFFECT = (
    *("metadata", "user", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_options"),
    *("prompt_cache_retention", "prediction", "verbosity", "moderation"),
)
_READ_HERE = (
    *("model", "n", "stream", "stream_options", "logprobs", "top_logprobs", "max_completion_tokens", "functions"),
    *("function_call", "reasoning_effort", "modalities", "audio", "web_search_options", "style"),
    *("grammar", "regex", "choice", "chat_template"),
)
_KNOWN = frozenset((*_PLANNED, *SAMPLING_FIELDS, *_WITHOUT_EFFECT, *_READ_HERE))


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat-completions body; `legacy`: its tools are `functions`, and its answer has a `function_call`.

    `include_usage` and `include_tokens`: the stream tells what it cost, and its tokens.
    """

    generation: Generation
    include_usage: bool = False
    include_tokens: bool = False
    legacy: bool = False


def read_chat_request(body: Any) -> ChatRequest:
    """The request that a body makes. Raises InvalidRequest with a pointer into it.

    Unknown fields are ignored, since clients of other servers send theirs: the generation names them.
    """
    body = mapping(body, "")
    _refuse(body)
    places: dict[str, str] = {}
    request: dict[str, Any] = {key: body[key] for key in _PLANNED if body.get(key) is not None}
    request["messages"] = [
        _message(message, f"/messages/{i}") for i, message in enumerate(listed(body.get("messages"), "/messages"))
    ]
    _check_results(request["messages"])
    legacy = _functions(body, request, places)
    custom = _tools(request, places)
    _answer(body, request, places)
    _reasoning(body, request)
    stream = boolean(body, "stream") or False
    limit = "max_tokens" if body.get("max_completion_tokens") is None else "max_completion_tokens"
    generation = Generation(
        request=request,
        sampling=sampling_of(body, max_tokens=limit, logprobs=asked_logprobs(body)),
        model=string(body, "model"),
        style=string(body, "style"),
        grammar=string(body, "grammar"),
        chat_template=_template(body),
        n=integer(body, "n", 1, MAX_CHOICES) or 1,
        stream=stream,
        custom=custom,
        ignored=unknown(body, _KNOWN),
        places=places,
    )
    include_usage, include_tokens = _told_in_stream(body, stream=stream)
    return ChatRequest(generation, include_usage, include_tokens, legacy)


def _refuse(body: Body) -> None:
    """What others have, and we do not: an answer without it would not be what was asked for."""
    refuse_constraints(body, "response_format, regex, choice or grammar")
    for modality in items(body, "modalities"):
        if modality != "text":
            raise InvalidRequest("/modalities", "only text is written here")
    for key in ("audio", "web_search_options"):
        if body.get(key) is not None:
            raise InvalidRequest(f"/{key}", "there is no such thing here: leave it out")
    for key, value in inner(body, "metadata").items():
        text(value, f"/metadata/{key}")


def _told_in_stream(body: Body, *, stream: bool) -> tuple[bool, bool]:
    """Whether the stream is to tell its usage, and its tokens."""
    if body.get("stream_options") is None:
        return False, False
    if not stream:
        raise InvalidRequest("/stream_options", "is only allowed where stream is true")
    options = mapping(body["stream_options"], "/stream_options")
    usage, tokens = (boolean(options, key, "/stream_options") for key in ("include_usage", "include_tokens"))
    return usage or False, tokens or False


def _template(body: Body) -> GivenTemplate | None:
    """The chat template that the body brings: its text, or an object with the texts of two tokens beside it."""
    match body.get("chat_template"):
        case None:
            return None
        case str(source):
            return GivenTemplate(source, "/chat_template")
        case given:
            at = "/chat_template"
            fields = mapping(given, at)
            tokens = (string(fields, key, at) for key in ("bos_token", "eos_token"))
            return GivenTemplate(text(fields.get("template"), f"{at}/template"), f"{at}/template", *tokens)


def _message(value: Any, pointer: str) -> Body:
    message = mapping(value, pointer)
    changed: dict[str, Any] = {}
    if isinstance(parts := message.get("content"), list):
        changed["content"] = [_part(part, f"{pointer}/content/{i}") for i, part in enumerate(cast("list[Any]", parts))]
    if (legacy := message.get("function_call")) is not None:
        call = mapping(legacy, f"{pointer}/function_call")
        text(call.get("name"), f"{pointer}/function_call/name")
        text(call.get("arguments"), f"{pointer}/function_call/arguments")
        changed |= {"tool_calls": [{"type": "function", "function": call}], "function_call": None}
    return {**message, **changed} if changed else message


def _part(value: Any, pointer: str) -> Any:
    """A content part; a refusal is a text that the assistant said."""
    match value:
        case {"type": "refusal", "refusal": str(said)}:
            return {"type": "text", "text": said}
        case {"type": "refusal"}:
            raise InvalidRequest(f"{pointer}/refusal", "must be a string")
        case _:
            return value


def _check_results(messages: Sequence[Body]) -> None:
    """A result must answer a call of the assistant's turn before it."""
    open_calls: list[Any] | None = None
    for i, message in enumerate(messages):
        if message.get("role") != "tool":
            calls = items(message, "tool_calls", f"/messages/{i}")
            ids = [mapping(call, f"/messages/{i}/tool_calls/{n}").get("id") for n, call in enumerate(calls)]
            open_calls = ids or None
            continue
        if open_calls is None:
            raise InvalidRequest(
                f"/messages/{i}", "a message with role 'tool' must answer a preceding message with 'tool_calls'"
            )
        id_ = message.get("tool_call_id")
        if id_ is not None and id_ not in open_calls and any(call is not None for call in open_calls):
            known = ", ".join(repr(call) for call in open_calls)
            raise InvalidRequest(
                f"/messages/{i}/tool_call_id", f"no call of the turn before has the id {id_!r}: there are {known}"
            )


def _functions(body: Body, request: dict[str, Any], places: dict[str, str]) -> bool:
    """`functions` and `function_call`, as tools and a choice of them."""
    if body.get("functions") is None:
        if body.get("function_call") is not None:
            raise InvalidRequest("/function_call", "is only allowed where functions are given")
        return False
    if "tools" in request:
        raise InvalidRequest("/functions", "give tools or functions, not both")
    functions = listed(body["functions"], "/functions")
    request["tools"] = [{"type": "function", "function": function} for function in functions]
    places |= {f"/tools/{i}{inner}": f"/functions/{i}" for i in range(len(functions)) for inner in ("", "/function")}
    request["parallel_tool_calls"] = False
    match body.get("function_call"):
        case None:
            pass
        case "none" | "auto" as choice:
            request["tool_choice"] = choice
        case {"name": str(name)}:
            request["tool_choice"] = {"type": "function", "function": {"name": name}}
            places["/tool_choice/function"] = "/function_call"
        case _:
            raise InvalidRequest("/function_call", 'must be "none", "auto" or {"name": …}')
    return True


def _tools(request: dict[str, Any], places: dict[str, str]) -> frozenset[str]:
    """Makes functions of the custom tools; their names."""
    tools = [mapping(tool, f"/tools/{i}") for i, tool in enumerate(items(request, "tools"))]
    custom: set[str] = set()
    for i, tool in enumerate(tools):
        if tool.get("type") == "custom":
            tools[i], name = tool_as_function(tool, f"/tools/{i}")
            custom.add(name)
            places[f"/tools/{i}/function"] = f"/tools/{i}/custom"
    if tools:
        request["tools"] = tools
    if isinstance(choice := request.get("tool_choice"), Mapping):
        request["tool_choice"] = choice_as_function(cast("Body", choice))
    return frozenset(custom)


def _answer(body: Body, request: dict[str, Any], places: dict[str, str]) -> None:
    """`regex` and `choice`, which are response formats of ours, and schemas where llama.cpp's server takes them."""
    given = [key for key in ("response_format", "regex", "choice", "grammar") if body.get(key) is not None]
    if len(given) > 1:
        raise InvalidRequest(f"/{given[1]}", f"does not go with {given[0]}: give one of them")
    for key in ("regex", "choice"):
        if key in given:
            request["response_format"] = {"type": key, key: body[key]}
            places |= {"/response_format": f"/{key}", f"/response_format/{key}": f"/{key}"}
    match body.get("response_format"):
        case {"type": "json_object" | "json_schema", "schema": schema, **rest} if (
            schema is not None and rest.get("json_schema") is None
        ):
            format_ = {key: value for key, value in rest.items() if key in ("name", "strict")}
            request["response_format"] = {"type": "json_schema", "json_schema": {**format_, "schema": schema}}
            places["/response_format/json_schema"] = "/response_format"
        case _:
            pass


def _reasoning(body: Body, request: dict[str, Any]) -> None:
    """`reasoning_effort`, under the names by which chat templates know it."""
    effort = one_of(body, "reasoning_effort", EFFORTS)
    if effort is not None:
        given = inner(request, "chat_template_kwargs")
        known = {"enable_thinking": False} if effort == "none" else {"reasoning_effort": effort}
        request["chat_template_kwargs"] = {**known, **given}
