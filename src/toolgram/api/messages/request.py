"""A body of Anthropic's `/v1/messages`, read as a conversation of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from toolgram.api.errors import ApiError
from toolgram.api.generation import Generation
from toolgram.api.messages.body import (
    WITHOUT_EFFECT,
    AnthropicChoice,
    AnthropicNamed,
    Base64Source,
    Block,
    ContentSource,
    CountBody,
    DocumentBlock,
    ImageBlock,
    MessagesBody,
    OtherBlock,
    ReasonsUpTo,
    SearchResultBlock,
    TextBlock,
    TextSource,
    ThinkingBlock,
    ToolAdditionBlock,
    ToolReferenceBlock,
    ToolRemovalBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    UrlSource,
)
from toolgram.api.messages.offer import Offer
from toolgram.api.sampling import sampling_of, unsaid
from toolgram.api.unsupported import refuse_constraints
from toolgram.conversation.answers import ResponseFormat
from toolgram.conversation.fields import further_of, json_of, validated
from toolgram.conversation.request import Request, ToolChoice, required, template_kwargs
from toolgram.conversation.thinking import as_variables
from toolgram.errors import InvalidRequest

Json = dict[str, Any]
Placed = tuple[Block, str]
"""A block, and where it stands."""
PlacedTurn = tuple[Turn, str]

_NO_THREADS = "no conversation is kept here: send all of it, without a thread"
_NO_THREADS_SDK = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}  # then the SDK does
_FOR_ITS_MAKER = re.compile(r"\Ax-anthropic-billing-header:[^\n]*\n?")
# Blocks of what Anthropic ran itself, by the ends of their types: to another model they say nothing.
_OF_THE_SERVER = (
    *("server_tool_use", "mcp_tool_use", "mcp_tool_result", "mcp_tool_listing", "container_upload"),
    *("compaction", "fallback"),
    *(f"{tool}_tool_result" for tool in ("web_search", "web_fetch", "code_execution", "tool_search", "advisor")),
)


class _Conversation:
    """Messages of ours, where each came from, and the tools that are offered at its end."""

    def __init__(self, offer: Offer) -> None:
        self.messages: list[Json] = []
        self.places: dict[str, str] = {}
        self.left_out: list[str] = []
        self.offer = offer

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
    if body.thread is not None:
        raise ApiError(400, "unsupported", _NO_THREADS, "/thread", details=_NO_THREADS_SDK)
    refuse_constraints(body, "output_config.format")
    request, left_out = _request(body)
    return Generation(
        request=request,
        sampling=sampling_of(body, max_tokens=max_tokens, stop=body.stop_sequences, seed=body.seed),
        unsaid=unsaid(body),
        model=body.model,
        style=body.style,
        stream=stream,
        ignored=(
            *(name for name in body.further if name not in WITHOUT_EFFECT),
            *further_of("thinking", body.thinking),
            *further_of("output_config", body.output_config),
            *left_out,
        ),
    )


def _request(body: CountBody) -> tuple[Request, tuple[str, ...]]:
    """The request, and what is left out of it: tools and blocks of Anthropic's own, and words for its maker alone."""
    said = _Conversation(Offer(body.tools or ()))
    if (system := _system(said, body)) is not None:
        said.add({"role": "system", "content": system}, "/system")
    placed = [(turn, f"/messages/{i}") for i, turn in enumerate(body.messages)]
    for role, turns in groupby(_results_first(placed), key=lambda one: one[0].role):
        _turns(said, role, [*turns])
    if not said.messages:
        raise InvalidRequest("/messages", "must hold more than a change of the effort")
    tools, choice = said.offer.tools, body.tool_choice
    last = said.messages[-1]
    request = Request(
        messages=tuple(said.messages),
        tools=tools,
        tool_choice=_choice(choice, said.offer),
        parallel_tool_calls=False if choice is not None and choice.disable_parallel_tool_use else None,
        response_format=_format(body),
        reasoning_max_tokens=body.thinking.budget_tokens if isinstance(body.thinking, ReasonsUpTo) else None,
        continue_final_message=(continues := last["role"] == "assistant" and not last.get("tool_calls")),
        add_generation_prompt=not continues,
        chat_template_kwargs=_template_kwargs(body),
        places=said.places,
    )
    return request, tuple(dict.fromkeys((*said.left_out, *said.offer.left_out)))


def _system(said: _Conversation, body: CountBody) -> str | None:
    """The system text without a pseudo-header for the client's maker, which differs from request to request.

    Claude Code puts one first: every prefix that was kept of the prompt would be lost by it.
    """
    if body.system is None:
        return None
    texts = _texts(body.system, "/system")
    shown = [_FOR_ITS_MAKER.sub("", text) for text in texts]
    if shown != texts:
        said.left_out.append("system.x-anthropic-billing-header")
    return "\n\n".join(text for text, given in zip(shown, texts, strict=True) if text or not given) if shown else None


def _results_first(turns: Sequence[PlacedTurn]) -> Iterator[PlacedTurn]:
    """The turns in an order in which a system message that stands between calls and their results comes after these.

    Anthropic refuses it there; what clients put into a conversation while tools run may come to stand so.
    """
    held: list[PlacedTurn] = []
    for placed in turns:
        turn = placed[0]
        if turn.role == "system":
            held.append(placed)
            continue
        if not (turn.role == "user" and any(isinstance(block, ToolResultBlock) for block in _blocks(turn.content))):
            yield from held
            held = []
        yield placed
    yield from held


def _turns(said: _Conversation, role: str, turns: Sequence[PlacedTurn]) -> None:
    """Turns of one role that follow each other, each with its place: they are one turn (Anthropic's `messages`)."""
    match role:
        case "system":
            for turn, pointer in turns:
                text = _instructions(said, turn, pointer)
                if text or turn.output_config is None:  # one that changes the effort alone says nothing
                    said.add({"role": "system", "content": text}, pointer)
        case "user":
            for turn, pointer in turns:
                if not turn.content and not isinstance(turn.content, str):
                    raise InvalidRequest(f"{pointer}/content", "must hold at least one block")
            _user(said, _placed(turns))
        case _:
            said.add(_assistant(said, _placed(turns)), turns[0][1])


def _placed(turns: Sequence[PlacedTurn]) -> list[Placed]:
    return [(block, f"{at}/content/{i}") for turn, at in turns for i, block in enumerate(_blocks(turn.content))]


def _blocks(content: str | Sequence[Block]) -> Sequence[Block]:
    return (TextBlock(type="text", text=content),) if isinstance(content, str) else content


def _user(said: _Conversation, blocks: Sequence[Placed]) -> None:
    """Results first, as calls are followed by them; all else is one message, at the place of the turn it begins in."""
    parts: list[Any] = []
    first = ""
    for block, at in blocks:
        if isinstance(block, ToolResultBlock):
            _result(said, block, at)
        else:
            first = first or at.rpartition("/content/")[0]
            parts.append(_part(block, at))
    if parts:
        said.add({"role": "user", "content": _joined(parts, "\n\n")}, first)


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
    whole = _joined([_shown(said, inner) for inner in blocks], "\n")
    if block.is_error and isinstance(whole, str):
        whole = f"Error: {whole}"
    said.add({"role": "tool", "tool_call_id": block.tool_use_id, "content": whole}, pointer)


def _shown(said: _Conversation, block: Block) -> Json:
    """A part of what a tool answered: of one that cannot be shown a text says so."""
    match block:
        case TextBlock() | ImageBlock(source=UrlSource() | Base64Source()) | SearchResultBlock():
            return _part(block, "")
        case DocumentBlock() if _document(block) is not None:
            return _part(block, "")
        case ToolReferenceBlock(tool_name=name):
            return {"type": "text", "text": said.offer.found(name)}
        case _:
            said.left_out.append(f"tool_result.{block.type}")
            return {"type": "text", "text": f"[{block.type}: it cannot be shown here]"}


def _part(block: Block, pointer: str) -> Json:
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text}
        case DocumentBlock() if (text := _document(block)) is not None:
            return {"type": "text", "text": text}
        case SearchResultBlock():
            texts = "\n".join(text.text for text in block.content)
            return {"type": "text", "text": f"{block.title} ({block.source})\n\n{texts}"}
        case ImageBlock(source=UrlSource() | Base64Source() as source):
            return {"type": "image_url", "image_url": {"url": _url(source)}}
        case _:
            raise InvalidRequest(f"{pointer}/type", f"a block of type {block.type!r} cannot be shown to a model here")


def _document(block: DocumentBlock) -> str | None:
    """The text of a document, below its title and what is said of it; None for one that is not text."""
    match block.source:
        case TextSource(data=said):
            pass
        case ContentSource(content=content):
            texts = [each.text for each in _blocks(content) if isinstance(each, TextBlock)]
            if len(texts) < len(_blocks(content)):
                return None
            said = "\n\n".join(texts)
        case _:
            return None
    return "\n\n".join([*filter(None, (block.title, block.context)), said])


def _url(source: UrlSource | Base64Source) -> str:
    return source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}"


def _assistant(said: _Conversation, blocks: Sequence[Placed]) -> Json:
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[Json] = []
    for block, at in blocks:
        match block:
            case TextBlock():
                texts.append(block.text)
            case ThinkingBlock():
                said.places.setdefault(f"/messages/{len(said.messages)}/reasoning_content", at)
                reasoning.append(block.thinking)
            case ToolUseBlock():
                arguments = json.dumps(block.input, ensure_ascii=False)
                function = {"name": block.name, "arguments": arguments}
                calls.append({"id": block.id, "type": "function", "function": function})
            case OtherBlock(type="redacted_thinking"):
                pass
            case OtherBlock(type=type_) if type_.endswith(_OF_THE_SERVER):
                said.left_out.append(f"messages.{type_}")
            case _:
                told = f"a block of type {block.type!r} cannot be shown to a model here"
                raise InvalidRequest(f"{at}/type", told)
    message: Json = {"role": "assistant", "content": "".join(texts) or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = "\n".join(reasoning)
    return {**message, "tool_calls": calls} if calls else message


def _instructions(said: _Conversation, turn: Turn, pointer: str) -> str:
    """The text of a system turn, with the tools that it adds and removes."""
    texts: list[str] = []
    for i, block in enumerate(_blocks(turn.content)):
        at = f"{pointer}/content/{i}"
        match block:
            case TextBlock(text=text):
                texts.append(text)
            case ToolAdditionBlock(tool=tool):
                said.places[f"{at}/tool"] = f"{at}/tool"  # a place in the body already
                texts.append(said.offer.add(tool, f"{at}/tool"))
            case ToolRemovalBlock(tool=tool):
                texts.append(said.offer.remove(tool.name))
            case _:
                raise InvalidRequest(f"{at}/type", "only text may stand here, and tools that are added or removed")
    return "\n\n".join(texts)


def _texts(content: str | Sequence[Block], pointer: str) -> list[str]:
    texts: list[str] = []
    for i, block in enumerate(_blocks(content)):
        if not isinstance(block, TextBlock):
            raise InvalidRequest(f"{pointer}/{i}/type", "only text may stand here")
        texts.append(block.text)
    return texts


def _choice(choice: AnthropicChoice | AnthropicNamed | None, offer: Offer) -> ToolChoice:
    callable_ = tuple(tool for tool in offer.tools if tool.name in offer.callable)
    if not callable_ and offer.left_out and choice is not None and choice.type in ("any", "tool"):
        raise InvalidRequest("/tool_choice", "a call is required, but Anthropic runs these tools itself: none is here")
    match choice:
        case None | AnthropicChoice(type="auto"):
            chosen = ToolChoice("auto")
        case AnthropicChoice(type="none"):
            chosen = ToolChoice("none")
        case AnthropicNamed(name=name):
            return required(callable_, "/tool_choice", (name, "/tool_choice/name"))
        case _:
            chosen = required(callable_, "/tool_choice")
    return replace(chosen, only=offer.callable) if offer.removed else chosen


def _format(body: CountBody) -> ResponseFormat | None:
    """Structured output: `output_config.format`, or `output_format` as it was called before."""
    config = body.output_config
    at, given = ("/output_format", body.output_format) if config is None else ("/output_config/format", config.format)
    return None if given is None else ResponseFormat(given.schema_, strict=True, pointer=f"{at}/schema")


def _template_kwargs(body: CountBody) -> Mapping[str, Any]:
    """`thinking` and the last `output_config.effort`, under the names by which chat templates know them."""
    told = [body.output_config, *(turn.output_config for turn in body.messages)]
    effort = next((config.effort for config in reversed(told) if config is not None and config.effort), None)
    known: Json = {} if effort is None else {"reasoning_effort": effort}
    if body.thinking is not None:
        known |= as_variables(on=body.thinking.type != "disabled")
    return template_kwargs(known, None)
