"""A body of OpenAI's `/v1/responses`, read as a conversation of ours. No state is kept from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from toolgram.api.chat.request import ChatRequest, read_chat_request
from toolgram.api.fields import Body, boolean, inner, integer, items, kind, listed, mapping, string, text, unknown
from toolgram.api.generation import Generation, placed
from toolgram.errors import InvalidRequest

Json = dict[str, Any]

_STATEFUL = ("previous_response_id", "conversation", "prompt", "background")
_KEPT = (
    *("model", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stream", "metadata", "parallel_tool_calls"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "style", "chat_template_kwargs"),
    "reasoning_max_tokens",
)
# The rest of what is read, and what OpenAI has and a text does not change for.
_KNOWN = frozenset(
    (
        *(*_STATEFUL, *_KEPT, "input", "instructions", "max_output_tokens"),
        *("tools", "tool_choice", "text", "reasoning"),
        *("store", "service_tier", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "max_tool_calls", "stream_options", "truncation", "moderation"),
    )
)


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A body of `/v1/responses`; `echo` are the fields of it that its answer repeats."""

    generation: Generation
    echo: Json


class _Conversation:
    """Messages of ours; calls and thoughts, which are items of their own there, are put into the turns."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.places: dict[str, str] = {}
        self._thoughts: list[str] = []

    def add(self, message: Json, pointer: str) -> None:
        self.places[f"/messages/{len(self.messages)}"] = pointer
        if message["role"] == "assistant" and self._thoughts:
            message["reasoning_content"] = "\n".join(self._thoughts)
        self._thoughts.clear()
        self.messages.append(message)

    def think(self, thoughts: str) -> None:
        if thoughts:
            self._thoughts.append(thoughts)

    def call(self, call: Json, pointer: str) -> None:
        if not self.messages or self.messages[-1]["role"] != "assistant" or self._thoughts:
            self.add({"role": "assistant", "content": None}, pointer)
        calls = self.messages[-1].setdefault("tool_calls", [])
        self.places[f"/messages/{len(self.messages) - 1}/tool_calls/{len(calls)}"] = pointer
        calls.append(call)


def read_responses_request(body: Any) -> ResponsesRequest:
    """The request that a body makes. Raises InvalidRequest with a pointer into it."""
    body = mapping(body, "")
    for key in _STATEFUL:
        if body.get(key):
            raise InvalidRequest(f"/{key}", "no state is kept here: give the whole conversation as input")
    said = _Conversation()
    if (instructions := string(body, "instructions")) is not None:
        said.add({"role": "system", "content": instructions}, "/instructions")
    _input(said, body.get("input"))
    chat: Json = {key: body[key] for key in _KEPT if body.get(key) is not None}
    chat["messages"] = said.messages
    places = {**said.places, **_tools(body, chat), **_format(body, chat)}
    if isinstance(choice := body.get("tool_choice"), dict):
        chat["tool_choice"] = _choice(mapping(choice, "/tool_choice"))
        places["/tool_choice/function"] = "/tool_choice"
    elif choice is not None:
        chat["tool_choice"] = choice
    chat["max_completion_tokens"] = integer(body, "max_output_tokens", 1)
    reasoning = inner(body, "reasoning")
    chat["reasoning_effort"] = reasoning.get("effort")
    places["/reasoning_effort"] = "/reasoning/effort"
    generation = replace(_placed(chat, places).generation, ignored=unknown(body, _KNOWN))
    return ResponsesRequest(generation, _echo(body))


def _placed(chat: Json, places: dict[str, str]) -> ChatRequest:
    """The body as one of chat completions, whose errors are told with their place in ours."""
    try:
        read = read_chat_request(chat)
    except InvalidRequest as error:
        raise InvalidRequest(placed(places, error.pointer), error.reason) from error
    there = read.generation.places
    both = {**places, **{at: placed(places, place) for at, place in there.items()}}
    return replace(read, generation=replace(read.generation, places=both))


def _input(said: _Conversation, value: Any) -> None:
    if isinstance(value, str):
        said.add({"role": "user", "content": value}, "/input")
        return
    if not isinstance(value, list):
        raise InvalidRequest("/input", f"must be a string or a list, not {kind(value)}")
    given = listed(cast("Any", value), "/input")
    if not given:
        raise InvalidRequest("/input", "must hold at least one item")
    for i, item in enumerate(given):
        _item(said, mapping(item, f"/input/{i}"), f"/input/{i}")


def _item(said: _Conversation, item: Body, pointer: str) -> None:
    match item.get("type", "message"):
        case "message":
            role = text(item.get("role"), f"{pointer}/role")
            said.add({"role": role, "content": _content(item.get("content"), f"{pointer}/content")}, pointer)
        case "function_call":
            function = {
                "name": text(item.get("name"), f"{pointer}/name"),
                "arguments": text(item.get("arguments"), f"{pointer}/arguments"),
            }
            id_ = text(item.get("call_id"), f"{pointer}/call_id")
            said.call({"id": id_, "type": "function", "function": function}, pointer)
        case "custom_tool_call":
            custom = {"name": item.get("name"), "input": text(item.get("input"), f"{pointer}/input")}
            id_ = text(item.get("call_id"), f"{pointer}/call_id")
            said.call({"id": id_, "type": "custom", "custom": custom}, pointer)
        case "function_call_output" | "custom_tool_call_output":
            content = _content(item.get("output"), f"{pointer}/output")
            id_ = text(item.get("call_id"), f"{pointer}/call_id")
            said.add({"role": "tool", "tool_call_id": id_, "content": content}, pointer)
            said.places[f"/messages/{len(said.messages) - 1}/tool_call_id"] = f"{pointer}/call_id"
        case "reasoning":
            parts = items(item, "content", pointer) or items(item, "summary", pointer)
            texts = [mapping(part, f"{pointer}/content/{j}").get("text") for j, part in enumerate(parts)]
            said.think("\n".join(text(one, f"{pointer}/content") for one in texts))
        case type_:
            raise InvalidRequest(f"{pointer}/type", f"an item of type {type_!r} cannot be shown to a model here")


def _content(value: Any, pointer: str) -> Any:
    """Text; or parts, where there is more than text."""
    if isinstance(value, str):
        return value
    parts = [_part(mapping(part, f"{pointer}/{i}"), f"{pointer}/{i}") for i, part in enumerate(listed(value, pointer))]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(part: Body, pointer: str) -> Json:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(said)}:
            return {"type": "text", "text": said}
        case {"type": "refusal", "refusal": str(said)}:
            return {"type": "text", "text": said}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "input_text" | "output_text" | "text"}:
            raise InvalidRequest(f"{pointer}/text", "must be a string")
        case _:
            told = f"a part of type {part.get('type')!r} cannot be shown to a model here"
            raise InvalidRequest(f"{pointer}/type", told)


def _tools(body: Body, chat: Json) -> dict[str, str]:
    places: dict[str, str] = {}
    tools: list[Json] = []
    for i, value in enumerate(items(body, "tools")):
        at = f"/tools/{i}"
        tool = mapping(value, at)
        match tool.get("type"):
            case "function":
                fields = ("name", "description", "parameters", "strict")
                function = {key: tool[key] for key in fields if tool.get(key) is not None}
                tools.append({"type": "function", "function": function})
            case "custom":
                custom = {key: tool[key] for key in ("name", "description") if tool.get(key) is not None}
                tools.append({"type": "custom", "custom": {**custom, "format": _custom_format(tool.get("format"))}})
            case type_:
                raise InvalidRequest(f"{at}/type", f"{type_!r} is a tool of OpenAI's own: there is none here")
        places |= {f"{at}/function": at, f"{at}/custom": at}
    if tools:
        chat["tools"] = tools
    return places


def _custom_format(value: Any) -> Any:
    match value:
        case {"type": "grammar", **grammar}:
            return {"type": "grammar", "grammar": grammar}
        case _:
            return value


def _choice(choice: Body) -> Json:
    match choice:
        case {"type": "function" | "custom" as type_, "name": name}:
            return {"type": type_, type_: {"name": name}}
        case {"type": "allowed_tools", "mode": mode, "tools": [*tools]}:
            allowed = [_choice(mapping(tool, f"/tool_choice/tools/{i}")) for i, tool in enumerate(tools)]
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
        case _:
            raise InvalidRequest("/tool_choice", "must be none, auto, required, or an object that names tools")


def _format(body: Body, chat: Json) -> dict[str, str]:
    format_ = inner(body, "text").get("format")
    match format_:
        case None | {"type": "text"}:
            return {}
        case {"type": "json_schema", **schema}:
            chat["response_format"] = {"type": "json_schema", "json_schema": schema}
        case {"type": "json_object"}:
            chat["response_format"] = format_
        case _:
            raise InvalidRequest("/text/format", f"must be text, json_object or json_schema, not {kind(format_)}")
    return {"/response_format": "/text/format", "/response_format/json_schema": "/text/format"}


def _echo(body: Body) -> Json:
    """What an answer says of its request: every field that clients look for, given or not."""
    reasoning = inner(body, "reasoning")
    parallel = boolean(body, "parallel_tool_calls")
    return {
        "background": False,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": body.get("metadata") or {},
        "parallel_tool_calls": True if parallel is None else parallel,
        "previous_response_id": None,
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": 1.0 if body.get("temperature") is None else body["temperature"],
        "top_p": 1.0 if body.get("top_p") is None else body["top_p"],
        "presence_penalty": body.get("presence_penalty") or 0.0,
        "frequency_penalty": body.get("frequency_penalty") or 0.0,
        "top_logprobs": 0,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "truncation": "disabled",
        "user": body.get("user"),
    }
