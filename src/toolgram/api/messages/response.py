"""The answer of Anthropic's `/v1/messages`: from events to events of theirs, from a reply to a message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolgram.api.json_text import as_it_is, object_text
from toolgram.api.notes import notes_of
from toolgram.chat import Reply
from toolgram.conversation.events import (
    ArgumentsDelta,
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)
from toolgram.engines.base import Chunk, Usage

Json = dict[str, Any]

# Clients drop reasoning that is not signed, or show it as text. Nobody checks it when it comes back.
_SIGNATURE = "toolgram"
_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def message_of(events: Iterable[Json]) -> Json:
    """The message that the events of a stream add up to, so that whole and streamed answers cannot differ."""
    message: Json = {}
    blocks: list[tuple[Json, dict[str, list[str]]]] = []
    for event in events:
        match event:
            case {"type": "message_start"}:
                message = event["message"]
            case {"type": "content_block_start", "content_block": block}:
                blocks.append((block, defaultdict(list)))
            case {"type": "content_block_delta", "delta": delta}:
                for name, text in delta.items():
                    blocks[-1][1][name].append(text)
            case {"type": "content_block_stop", "incomplete": True}:
                blocks[-1][0]["incomplete"] = True
            case {"type": "message_delta", "delta": ended}:
                noted = {name: value for name, value in event.items() if name not in ("type", "delta")}
                message |= {"content": [_block(*block) for block in blocks], **ended, **noted}
            case _:
                pass
    return message


def _block(block: Json, pieces: Mapping[str, list[str]]) -> Json:
    said = {name: "".join(texts) for name, texts in pieces.items() if name != "type"}
    return (
        {**block, "input": _input(said.get("partial_json", ""))} if block["type"] == "tool_use" else {**block, **said}
    )


def _ended(reply: Reply, max_tokens: int | None) -> Json:
    """Why it ended: a stop sequence is not the end of the turn, and the end of the context not that of `max_tokens`."""
    if reply.finish_reason == "length" and max_tokens is not None and 0 < reply.usage.completion_tokens < max_tokens:
        return {"stop_reason": "model_context_window_exceeded", "stop_sequence": None}
    if reply.finish_reason == "stop" and reply.stopped_by is not None:
        return {"stop_reason": "stop_sequence", "stop_sequence": reply.stopped_by}
    return {"stop_reason": _REASONS[reply.finish_reason], "stop_sequence": None}


def _input(arguments: str) -> Any:
    """The arguments as an object, as they were written; empty where the call was cut off: half an object is none."""
    text = object_text(arguments)
    return {} if text is None else as_it_is(text)


def _message(id_: str, model: str, content: list[Json], usage: Json) -> Json:
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": max(0, usage.prompt_tokens - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        **({"estimated": True} if usage.estimated else {}),
    }


@dataclass(slots=True)
class MessageWriter:
    """The events of one message, in Anthropic's order: a block begins, grows and ends before the next one.

    Text inside a call stands behind it. Where nothing is `enforced` the arguments of a call are told when it ends, and
    not at all where they are no object: who reads them piece by piece takes them for JSON.
    """

    id: str
    model: str
    prompt_tokens: int = 0
    max_tokens: int | None = None
    enforced: bool = True
    _index: int = -1
    _open: str = ""
    _waiting: ToolCallStart | None = None
    _held: str = ""
    _inside: str = ""  # text inside a call
    _empty: bool = True
    _begun: bool = False

    def feed(self, item: Chunk | Event | Reply) -> Iterator[Json]:
        """The events that a piece of the answer makes."""
        yield from self._begin()
        match item:
            case ContentDelta(text) | Unreadable(text):
                if self._in_call:
                    self._inside += text
                else:
                    yield from self._text(text)
            case ReasoningDelta(text):
                yield from self._end_call()
                block = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._grow("thinking", block, {"type": "thinking_delta", "thinking": text}, text)
            case ToolCallStart():
                yield from self._end_call()
                yield from self._close()
                self._waiting, self._held, self._empty = item, "", True
                if item.id is not None:
                    yield from self._call(item.id)
            case ArgumentsDelta(_, text):
                yield from self._arguments(text)
            case ToolCallEnd(_, id_):
                yield from self._call(id_)
                yield from self._arguments("{}" if self._empty else "")
                yield from self._end_call(whole=True)
            case Reply():
                yield from self._over(item)
            case _:
                pass

    def alive(self) -> Iterator[Json]:
        """The events of a silence: the beginning, if nothing was told yet, and a ping."""
        yield from self._begin()
        yield {"type": "ping"}

    def _begin(self) -> Iterator[Json]:
        if not self._begun:
            self._begun = True
            start = _message(self.id, self.model, [], _usage(Usage(prompt_tokens=self.prompt_tokens)))
            yield {"type": "message_start", "message": start}

    def _grow(self, kind: str, block: Json, delta: Json, text: str) -> Iterator[Json]:
        if not text:
            return
        if self._open != kind:
            yield from self._close()
            yield self._start(kind, block)
        yield self._delta(delta)

    @property
    def _in_call(self) -> bool:
        return self._waiting is not None or self._open == "tool_use"

    def _text(self, text: str) -> Iterator[Json]:
        yield from self._grow("text", {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, text)

    def _call(self, id_: str | None) -> Iterator[Json]:
        """The block of the call that waited for its id, and what came of its arguments meanwhile."""
        if self._waiting is None:
            return
        name, self._waiting = self._waiting.name, None
        yield self._start("tool_use", {"type": "tool_use", "id": id_, "name": name, "input": {}})
        held, self._held = self._held, ""
        yield from self._arguments(held)

    def _arguments(self, text: str) -> Iterator[Json]:
        self._empty = self._empty and not text
        if self._waiting is not None or not self.enforced:
            self._held += text
        elif text:
            yield self._delta({"type": "input_json_delta", "partial_json": text})

    def _end_call(self, *, whole: bool = False) -> Iterator[Json]:
        """The end of a call, where one is open: one that did not end itself is cut; and the text that was inside."""
        if not self._in_call:
            return
        yield from self._call(None)
        held, self._held = self._held, ""
        if (text := object_text(held)) is not None:
            yield self._delta({"type": "input_json_delta", "partial_json": text})
        yield from self._close(cut=not whole)
        inside, self._inside = self._inside, ""
        yield from self._text(inside)

    def _over(self, reply: Reply) -> Iterator[Json]:
        if self._waiting is not None:
            yield from self._call(reply.message.tool_calls[-1].id)
        yield from self._end_call()
        yield from self._close()
        yield {
            "type": "message_delta",
            "delta": _ended(reply, self.max_tokens),
            "usage": _usage(reply.usage),
            **notes_of(reply),
        }
        yield {"type": "message_stop"}

    def _start(self, kind: str, block: Json) -> Json:
        self._open = kind
        self._index += 1
        return {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close(self, *, cut: bool = False) -> Iterator[Json]:
        if not self._open:
            return
        if self._open == "thinking":
            yield self._delta({"type": "signature_delta", "signature": _SIGNATURE})
        self._open = ""
        yield {"type": "content_block_stop", "index": self._index} | ({"incomplete": True} if cut else {})
