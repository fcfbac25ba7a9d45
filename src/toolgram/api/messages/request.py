"""A body of Anthropic's `/v1/messages`, read as a conversation of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.api.generation import Generation
from toolgram.api.messages.body import (
    WITHOUT_EFFECT,
    AnthropicChoice,
    AnthropicNamed,
    AnthropicTool,
    Base64Source,
    Block,
    CountBody,
    ImageBlock,
    MessagesBody,
    OtherBlock,
    OtherTool,
    ReasonsUpTo,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    UrlSource,
)
from toolgram.api.sampling import sampling_of
from toolgram.conversation.fields import json_of, validated
from toolgram.conversation.request import Request, ResponseFormat, Tool, ToolChoice, distinct, required, template_kwargs
from toolgram.errors import InvalidRequest

Json = dict[str, Any]


class _Conversation:
    """Messages of ours, and where each came from."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.places: dict[str, str] = {}

    def add(self, message: Json, pointer: str) -> None:
        self.places[f"/messages/{len(self.messages)}"] = pointer
        self.messages.append(message)


def read_messages_request(body: Any) -> Generation:
    """The request that a body makes. Raises InvalidRequest with a pointer into it.

    Unknown fields are ignored, and named; those of Anthropic that a text does not change for in silence.
    """
    checked = validated(MessagesBody, json_of(body))
    return _generation(checked, checked.max_tokens, stream=checked.stream or False)


def read_count_request(body: Any) -> Generation:
    """The request whose prompt is to be counted: `max_tokens` may be missing. Raises InvalidRequest."""
    return _generation(validated(CountBody, json_of(body)), None, stream=False)


def _generation(body: CountBody, max_tokens: int | None, *, stream: bool) -> Generation:
    return Generation(
        request=_request(body),
        sampling=sampling_of(body, max_tokens=max_tokens, stop=body.stop_sequences, seed=body.seed),
        model=body.model,
        style=body.style,
        stream=stream,
        ignored=tuple(name for name in body.further if name not in WITHOUT_EFFECT),
    )


def _request(body: CountBody) -> Request:
    said = _Conversation()
    if body.system is not None:
        said.add({"role": "system", "content": _plain(body.system, "/system")}, "/system")
    for i, turn in enumerate(body.messages):
        _turn(said, turn, f"/messages/{i}")
    tools = distinct([_tool(tool, f"/tools/{i}") for i, tool in enumerate(body.tools or ())])
    choice = body.tool_choice
    last = said.messages[-1]
    return Request(
        messages=tuple(said.messages),
        tools=tools,
        tool_choice=_choice(choice, tools),
        parallel_tool_calls=False if choice is not None and choice.disable_parallel_tool_use else None,
        response_format=_format(body),
        reasoning_max_tokens=body.thinking.budget_tokens if isinstance(body.thinking, ReasonsUpTo) else None,
        continue_final_message=(continues := last["role"] == "assistant" and not last.get("tool_calls")),
        add_generation_prompt=not continues,
        chat_template_kwargs=_template_kwargs(body),
        places=said.places,
    )


def prefilled(generation: Generation) -> str:
    """What the answer was begun with, which it does not repeat."""
    request = generation.request
    return (request.messages[-1]["content"] or "") if request.continue_final_message else ""


def _turn(said: _Conversation, turn: Turn, pointer: str) -> None:
    at = f"{pointer}/content"
    match turn.role:
        case "user":
            _user(said, turn.content, pointer)
        case "assistant":
            said.add(_assistant(turn.content, at), pointer)
        case "system":
            said.add({"role": "system", "content": _plain(turn.content, at)}, pointer)


def _blocks(content: str | Sequence[Block]) -> Sequence[Block]:
    return (TextBlock(type="text", text=content),) if isinstance(content, str) else content


def _user(said: _Conversation, content: str | Sequence[Block], pointer: str) -> None:
    parts: list[Any] = []
    if not (blocks := _blocks(content)):
        raise InvalidRequest(f"{pointer}/content", "must hold at least one block")
    for i, block in enumerate(blocks):
        at = f"{pointer}/content/{i}"
        if isinstance(block, ToolResultBlock):
            _result(said, block, at)
        else:
            parts.append(_part(block, at))
    if parts:
        said.add({"role": "user", "content": _joined(parts, "\n\n")}, pointer)


def _joined(parts: list[Any], between: str) -> Any:
    """The texts of parts that are nothing else, as one; other parts as they are."""
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return between.join(texts) if len(texts) == len(parts) else parts


def _result(said: _Conversation, block: ToolResultBlock, pointer: str) -> None:
    asked: list[str] = []
    for message in reversed(said.messages):
        if message["role"] != "tool":
            asked = [call["id"] for call in message.get("tool_calls") or ()]
            break
    if block.tool_use_id not in asked:
        known = f": there are {', '.join(map(repr, asked))}" if asked else ""
        told = f"no tool_use of the turn before has the id {block.tool_use_id!r}{known}"
        raise InvalidRequest(f"{pointer}/tool_use_id", told)
    blocks = () if block.content is None else _blocks(block.content)
    whole = _joined([_part(inner, f"{pointer}/content/{i}") for i, inner in enumerate(blocks)], "\n")
    if block.is_error and isinstance(whole, str):
        whole = f"Error: {whole}"
    said.add({"role": "tool", "tool_call_id": block.tool_use_id, "content": whole}, pointer)


def _part(block: Block, pointer: str) -> Json:
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text}
        case ImageBlock():
            return {"type": "image_url", "image_url": {"url": _url(block.source)}}
        case _:
            raise InvalidRequest(f"{pointer}/type", f"a block of type {block.type!r} cannot be shown to a model here")


def _url(source: UrlSource | Base64Source) -> str:
    return source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}"


def _assistant(content: str | Sequence[Block], pointer: str) -> Json:
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[Json] = []
    for i, block in enumerate(_blocks(content)):
        match block:
            case TextBlock():
                texts.append(block.text)
            case ThinkingBlock():
                reasoning.append(block.thinking)
            case ToolUseBlock():
                arguments = json.dumps(block.input, ensure_ascii=False)
                function = {"name": block.name, "arguments": arguments}
                calls.append({"id": block.id, "type": "function", "function": function})
            case OtherBlock(type="redacted_thinking"):
                pass
            case _:
                told = f"a block of type {block.type!r} cannot be shown to a model here"
                raise InvalidRequest(f"{pointer}/{i}/type", told)
    message: Json = {"role": "assistant", "content": "".join(texts) or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = "\n".join(reasoning)
    return {**message, "tool_calls": calls} if calls else message


def _plain(content: str | Sequence[Block], pointer: str) -> str:
    """Text, in a string or in blocks."""
    texts: list[str] = []
    for i, block in enumerate(_blocks(content)):
        if not isinstance(block, TextBlock):
            raise InvalidRequest(f"{pointer}/{i}/type", "only text may stand here")
        texts.append(block.text)
    return "\n\n".join(texts)


def _tool(tool: AnthropicTool | OtherTool, pointer: str) -> Tool:
    if isinstance(tool, OtherTool):
        raise InvalidRequest(f"{pointer}/type", f"{tool.type!r} is a tool of Anthropic's own: there is none here")
    given = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema, "strict": tool.strict}
    function = {key: value for key, value in given.items() if value is not None}
    return Tool(
        name=tool.name,
        description=tool.description or "",
        parameters=tool.input_schema,
        strict=tool.strict or False,
        source={"type": "function", "function": function},
        pointer=pointer,
        schema_pointer=f"{pointer}/input_schema",
    )


def _choice(choice: AnthropicChoice | AnthropicNamed | None, tools: tuple[Tool, ...]) -> ToolChoice:
    match choice:
        case None | AnthropicChoice(type="auto"):
            return ToolChoice("auto")
        case AnthropicChoice(type="none"):
            return ToolChoice("none")
        case AnthropicNamed(name=name):
            return required(tools, "/tool_choice", (name, "/tool_choice/name"))
        case _:
            return required(tools, "/tool_choice")


def _format(body: CountBody) -> ResponseFormat | None:
    """Structured output: `output_config.format`, or `output_format` as it was called before."""
    config = body.output_config
    at, given = ("/output_format", body.output_format) if config is None else ("/output_config/format", config.format)
    return None if given is None else ResponseFormat(given.schema_, strict=True, pointer=f"{at}/schema")


def _template_kwargs(body: CountBody) -> Mapping[str, Any]:
    """`thinking` and `output_config.effort`, under the names by which chat templates know them."""
    effort = None if body.output_config is None else body.output_config.effort
    known: Json = {} if effort is None else {"reasoning_effort": effort}
    if body.thinking is not None:
        known["enable_thinking"] = body.thinking.type != "disabled"
    return template_kwargs(known, None)
