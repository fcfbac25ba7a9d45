"""A body of Anthropic's `/v1/messages`, read as a conversation of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolgram.api.chat.request import EFFORTS
from toolgram.api.fields import (
    Body,
    boolean,
    inner,
    integer,
    items,
    kind,
    listed,
    mapping,
    one_of,
    string,
    text,
    unknown,
)
from toolgram.api.generation import Generation
from toolgram.api.sampling import SAMPLING_FIELDS, sampling_of
from toolgram.errors import InvalidRequest

Json = dict[str, Any]

_KNOWN = frozenset(
    (
        *("max_tokens", "system", "messages", "stop_sequences", "tools", "tool_choice"),
        *("output_config", "output_format"),
        *("thinking", "model", "style", "stream", *(field for field in SAMPLING_FIELDS if field != "stop")),
        *("metadata", "service_tier", "cache_control", "inference_geo"),  # no text changes for these
    )
)


class _Conversation:
    """Messages of ours, and where each came from."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.places: dict[str, str] = {}

    def add(self, message: Json, pointer: str) -> None:
        self.places[f"/messages/{len(self.messages)}"] = pointer
        self.messages.append(message)


def read_messages_request(body: Any, *, counting: bool = False) -> Generation:
    """The request that a body makes; with `counting` it needs no `max_tokens`. Raises InvalidRequest.

    Unknown fields are ignored, and named; those of Anthropic that a text does not change for in silence.
    """
    body = mapping(body, "")
    if body.get("max_tokens") is None and not counting:
        raise InvalidRequest("/max_tokens", "is missing: how long may the answer be?")
    said = _Conversation()
    if body.get("system") is not None:
        said.add({"role": "system", "content": _plain(body["system"], "/system")}, "/system")
    turns = listed(body.get("messages"), "/messages")
    if not turns:
        raise InvalidRequest("/messages", "must hold at least one message")
    for i, turn in enumerate(turns):
        _turn(said, mapping(turn, f"/messages/{i}"), f"/messages/{i}")
    items(body, "stop_sequences")  # a string alone, which OpenAI takes, is none
    request: Json = {"messages": said.messages}
    places = said.places | _tools(body, request) | _choice(body, request) | _format(body, request)
    _thinking(body, request)
    last = said.messages[-1]
    if last["role"] == "assistant" and not last.get("tool_calls"):
        request["continue_final_message"] = True
    return Generation(
        request=request,
        sampling=replace(sampling_of(body, stop="stop_sequences"), seed=integer(body, "seed", 0)),
        model=string(body, "model"),
        style=string(body, "style"),
        stream=boolean(body, "stream") or False,
        ignored=unknown(body, _KNOWN),
        places=places,
    )


def prefilled(generation: Generation) -> str:
    """What the answer was begun with, which it does not repeat."""
    last = generation.request["messages"][-1]
    return (last["content"] or "") if generation.request.get("continue_final_message") else ""


def _turn(said: _Conversation, turn: Body, pointer: str) -> None:
    content = turn.get("content")
    match turn.get("role"):
        case "user":
            _user(said, content, pointer)
        case "assistant":
            said.add(_assistant(content, f"{pointer}/content"), pointer)
        case "system":
            said.add({"role": "system", "content": _plain(content, f"{pointer}/content")}, pointer)
        case role:
            raise InvalidRequest(f"{pointer}/role", f"unknown role {role!r}: must be user or assistant")


def _blocks(content: Any, pointer: str) -> Sequence[Body]:
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return [mapping(block, f"{pointer}/{i}") for i, block in enumerate(listed(content, pointer))]


def _user(said: _Conversation, content: Any, pointer: str) -> None:
    parts: list[Any] = []
    if not (blocks := _blocks(content, f"{pointer}/content")):
        raise InvalidRequest(f"{pointer}/content", "must hold at least one block")
    for i, block in enumerate(blocks):
        at = f"{pointer}/content/{i}"
        if block.get("type") == "tool_result":
            _result(said, block, at)
        else:
            parts.append(_part(block, at))
    if parts:
        texts = [part["text"] for part in parts if part["type"] == "text"]
        whole = "\n\n".join(texts) if len(texts) == len(parts) else parts
        said.add({"role": "user", "content": whole}, pointer)


def _result(said: _Conversation, block: Body, pointer: str) -> None:
    id_ = text(block.get("tool_use_id"), f"{pointer}/tool_use_id")
    asked: list[str] = []
    for message in reversed(said.messages):
        if message["role"] != "tool":
            asked = [call["id"] for call in message.get("tool_calls") or ()]
            break
    if id_ not in asked:
        known = f": there are {', '.join(map(repr, asked))}" if asked else ""
        raise InvalidRequest(f"{pointer}/tool_use_id", f"no tool_use of the turn before has the id {id_!r}{known}")
    given = block.get("content")
    blocks = () if given is None else _blocks(given, f"{pointer}/content")
    parts = [_part(inner, f"{pointer}/content/{i}") for i, inner in enumerate(blocks)]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    whole = "\n".join(texts) if len(texts) == len(parts) else parts
    if block.get("is_error") and isinstance(whole, str):
        whole = f"Error: {whole}"
    said.add({"role": "tool", "tool_call_id": id_, "content": whole}, pointer)


def _part(block: Body, pointer: str) -> Json:
    match block.get("type"):
        case "text":
            return {"type": "text", "text": text(block.get("text"), f"{pointer}/text")}
        case "image":
            return {"type": "image_url", "image_url": {"url": _image(block.get("source"), f"{pointer}/source")}}
        case type_:
            raise InvalidRequest(f"{pointer}/type", f"a block of type {type_!r} cannot be shown to a model here")


def _image(source: Any, pointer: str) -> str:
    match source:
        case {"type": "url", "url": str(url)}:
            return url
        case {"type": "base64", "media_type": str(media), "data": str(data)}:
            return f"data:{media};base64,{data}"
        case _:
            raise InvalidRequest(pointer, "must be an image by url or base64")


def _assistant(content: Any, pointer: str) -> Json:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    for i, block in enumerate(_blocks(content, pointer)):
        at = f"{pointer}/{i}"
        match block.get("type"):
            case "text":
                texts.append(text(block.get("text"), f"{at}/text"))
            case "thinking":
                thoughts.append(text(block.get("thinking"), f"{at}/thinking"))
            case "redacted_thinking":
                pass
            case "tool_use":
                calls.append(_call(block, at))
            case type_:
                raise InvalidRequest(f"{at}/type", f"a block of type {type_!r} cannot be shown to a model here")
    message: Json = {"role": "assistant", "content": "".join(texts) or (None if calls else "")}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    return {**message, "tool_calls": calls} if calls else message


def _call(block: Body, pointer: str) -> Json:
    arguments = json.dumps(mapping(block.get("input"), f"{pointer}/input"), ensure_ascii=False)
    function = {"name": text(block.get("name"), f"{pointer}/name"), "arguments": arguments}
    return {"id": text(block.get("id"), f"{pointer}/id"), "type": "function", "function": function}


def _plain(content: Any, pointer: str) -> str:
    """Text, in a string or in blocks."""
    parts = [_part(block, f"{pointer}/{i}") for i, block in enumerate(_blocks(content, pointer))]
    for i, part in enumerate(parts):
        if part["type"] != "text":
            raise InvalidRequest(f"{pointer}/{i}/type", "only text may stand here")
    return "\n\n".join(part["text"] for part in parts)


def _tools(body: Body, request: Json) -> dict[str, str]:
    places: dict[str, str] = {}
    tools: list[Json] = []
    for i, value in enumerate(items(body, "tools")):
        at = f"/tools/{i}"
        tool = mapping(value, at)
        if tool.get("type", "custom") not in (None, "custom"):
            raise InvalidRequest(f"{at}/type", f"{tool['type']!r} is a tool of Anthropic's own: there is none here")
        schema = mapping(tool.get("input_schema"), f"{at}/input_schema")
        function: Json = {"name": tool.get("name"), "description": tool.get("description"), "parameters": schema}
        function["strict"] = boolean(tool, "strict", at) or False
        tools.append({"type": "function", "function": function})
        places |= {f"{at}/function": at, f"{at}/function/parameters": f"{at}/input_schema"}
    if tools:
        request["tools"] = tools
    return places


def _choice(body: Body, request: Json) -> dict[str, str]:
    value = body.get("tool_choice")
    if value is None:
        return {}
    choice = mapping(value, "/tool_choice")
    match choice:
        case {"type": "auto" | "none" as mode}:
            request["tool_choice"] = mode
        case {"type": "any"}:
            request["tool_choice"] = "required"
        case {"type": "tool", "name": str(name)}:
            request["tool_choice"] = {"type": "function", "function": {"name": name}}
        case _:
            raise InvalidRequest(
                "/tool_choice", 'must be {"type": "auto"}, {"type": "any"}, {"type": "none"} or one with a name'
            )
    if boolean(choice, "disable_parallel_tool_use", "/tool_choice"):
        request["parallel_tool_calls"] = False
    return {"/tool_choice/function": "/tool_choice"}


def _format(body: Body, request: Json) -> dict[str, str]:
    """Structured output: `output_config.format`, or `output_format` as it was called before."""
    config = body.get("output_config")
    at = "/output_format" if config is None else "/output_config/format"
    value = body.get("output_format") if config is None else mapping(config, "/output_config").get("format")
    match value:
        case None:
            return {}
        case {"type": "json_schema", "schema": schema}:
            named = {"name": "answer", "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
            return {"/response_format": at, "/response_format/json_schema": at}
        case _:
            raise InvalidRequest(at, 'must be {"type": "json_schema", "schema": …}')


def _thinking(body: Body, request: Json) -> None:
    """`thinking` and `output_config.effort`, under the names by which chat templates know them."""
    effort = one_of(inner(body, "output_config"), "effort", EFFORTS, "/output_config")
    known: Json = {} if effort is None else {"reasoning_effort": effort}
    match body.get("thinking"):
        case None:
            pass
        case {"type": "disabled"}:
            known["enable_thinking"] = False
        case {"type": "adaptive" | "between_tools"}:
            known["enable_thinking"] = True
        case {"type": "enabled"}:
            known["enable_thinking"] = True
            budget = integer(mapping(body["thinking"], "/thinking"), "budget_tokens", 0, at="/thinking")
            request["reasoning_max_tokens"] = budget
        case other:
            raise InvalidRequest("/thinking", f"must say enabled, adaptive or disabled, not {kind(other)}")
    if known:
        request["chat_template_kwargs"] = known
