"""The answer of `/v1/responses`: events, of which the last one holds the whole response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgram.api.errors import ApiError, param
from toolgram.api.notes import notes_of
from toolgram.api.responses.tools import Place
from toolgram.chat import Reply
from toolgram.conversation.custom_tools import input_of
from toolgram.conversation.events import (
    ArgumentsDelta,
    ContentDelta,
    CustomCallStart,
    Event,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)
from toolgram.engines.base import Chunk, Usage

Json = dict[str, Any]

# An item's kind, its part, and the event in which its text grows.
_TEXTS = {
    "message": ("output_text", "response.output_text"),
    "reasoning": ("reasoning_text", "response.reasoning_text"),
}


@dataclass(slots=True)
class ResponseWriter:
    """The events of one response. `feed` takes what `toolgram.chat.stream` gives; the last event holds the response."""

    id: str
    created: int
    model: str
    echo: Mapping[str, Any]
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    _output: list[Json] = field(default_factory=list[Json])
    _pieces: list[str] = field(default_factory=list[str])
    _open: bool = False
    _begun: bool = False
    _number: int = 0
    _tokens: int = 0
    _thought: int = 0

    def feed(self, item: Chunk | Event | Reply) -> Iterator[Json]:
        """The events that a piece of the answer makes."""
        if not self._begun:
            self._begun = True
            for type_ in ("response.created", "response.in_progress"):
                yield self._event(type_, response=self._response("in_progress"))
        match item:
            case Chunk():
                self._tokens = len(item.tokens)
            case ContentDelta(text) | Unreadable(text):
                yield from self._text("message", text)
            case ReasoningDelta(text):
                self._thought, self._tokens = self._thought + self._tokens, 0
                yield from self._text("reasoning", text)
            case ToolCallStart(_, name, id_):
                yield from self._close()
                yield from self._call(name, id_, custom=isinstance(item, CustomCallStart))
            case ArgumentsDelta(_, text):
                yield from self._arguments(text)
            case ToolCallEnd(_, id_):
                yield from self._ended(id_)
            case Reply():
                yield from self._over(item)
            case _:
                pass

    def failed(self, error: ApiError) -> Iterator[Json]:
        """The events of an error after what was generated."""
        place = None if error.pointer is None else param(error.pointer)
        yield self._event("error", code=error.code, message=error.message, param=place)
        told = {"error": {"code": "server_error", "message": error.message}}
        yield self._event("response.failed", response={**self._response("failed"), **told})

    def _text(self, kind: str, text: str) -> Iterator[Json]:
        if not text:
            return
        if not self._open or self._output[-1]["type"] != kind:
            yield from self._close()
            empty: Json = {"role": "assistant", "content": []} if kind == "message" else {"summary": [], "content": []}
            self._add({"type": kind, **empty})
            yield self._told()
            yield self._at("response.content_part.added", content_index=0, part=_part(kind, ""))
        self._pieces.append(text)
        yield self._at(f"{_TEXTS[kind][1]}.delta", content_index=0, delta=text, **_logprobs(kind))

    def _call(self, name: str, id_: str | None, *, custom: bool) -> Iterator[Json]:
        """A call begins; it is told once it has an id, that of a custom tool at its end."""
        type_, carried = ("custom_tool_call", "input") if custom else ("function_call", "arguments")
        called = {"name": name}
        if (place := self.places.get(name)) is not None:  # the client knows it by its namespace and its name there
            called = {"namespace": place[0], "name": place[1]}
        self._add({"type": type_, "call_id": id_, **called, carried: ""})
        if id_ is not None and not custom:
            yield self._told()

    def _arguments(self, text: str) -> Iterator[Json]:
        self._pieces.append(text)
        call = self._output[-1]
        if text and call["call_id"] is not None and call["type"] == "function_call":
            yield self._at("response.function_call_arguments.delta", delta=text)

    def _ended(self, id_: str | None) -> Iterator[Json]:
        yield from self._known(id_)
        if not "".join(self._pieces):
            yield from self._arguments("{}")
        yield from self._close()

    def _known(self, id_: str | None) -> Iterator[Json]:
        """A call that waited for its id, or for its end, is told."""
        call = self._output[-1]
        waited = call["call_id"] is None or call["type"] == "custom_tool_call"
        call["call_id"] = call["call_id"] or id_
        if waited:
            yield self._told()
            if (text := "".join(self._pieces)) and call["type"] == "function_call":
                yield self._at("response.function_call_arguments.delta", delta=text)

    def _close(self, status: str = "completed") -> Iterator[Json]:
        """The end of the item that is open."""
        if not self._open:
            return
        item, text = self._output[-1], "".join(self._pieces)
        item["status"] = status
        match item["type"]:
            case "function_call":
                item["arguments"] = text
                yield self._at("response.function_call_arguments.done", arguments=text, name=item["name"])
            case "custom_tool_call":
                item["input"] = input_of(text)
                yield self._at("response.custom_tool_call_input.delta", delta=item["input"])
                yield self._at("response.custom_tool_call_input.done", input=item["input"])
            case kind:
                part = _part(kind, text)
                item["content"] = [part]
                yield self._at(f"{_TEXTS[kind][1]}.done", content_index=0, text=text, **_logprobs(kind))
                yield self._at("response.content_part.done", content_index=0, part=part)
        yield self._at("response.output_item.done", item=dict(item))
        self._open = False

    def _over(self, reply: Reply) -> Iterator[Json]:
        cut = reply.finish_reason == "length"
        if self._open and "call_id" in self._output[-1]:
            yield from self._known(reply.message.tool_calls[-1].id)
        yield from self._close("incomplete" if cut else "completed")
        status = "incomplete" if cut else "completed"
        whole = {**self._response(status), "usage": self._usage(reply.usage), **notes_of(reply)}
        if cut:
            whole["incomplete_details"] = {"reason": "max_output_tokens"}
        yield self._event(f"response.{status}", response=whole)

    def _add(self, item: Json) -> None:
        self._open = True
        self._pieces.clear()
        prefix = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}[item["type"]]
        id_ = f"{prefix}_{self.id.removeprefix('resp_')}_{len(self._output)}"
        self._output.append({"id": id_, **item, "status": "in_progress"})

    def _told(self) -> Json:
        return self._at("response.output_item.added", item=dict(self._output[-1]))

    def _at(self, type_: str, **fields: Any) -> Json:
        """An event of the last item."""
        index = len(self._output) - 1
        if "item" not in fields:
            fields["item_id"] = self._output[index]["id"]
        return self._event(type_, output_index=index, **fields)

    def _event(self, type_: str, **fields: Any) -> Json:
        number, self._number = self._number, self._number + 1
        return {"type": type_, "sequence_number": number, **fields}

    def _response(self, status: str) -> Json:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": [dict(item) for item in self._output],
            "usage": None,
            **self.echo,
        }

    def _usage(self, usage: Usage) -> Json:
        return {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": self._thought},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }


def _part(kind: str, text: str) -> Json:
    more: Json = {"annotations": [], "logprobs": []} if kind == "message" else {}
    return {"type": _TEXTS[kind][0], "text": text, **more}


def _logprobs(kind: str) -> Json:
    return {"logprobs": []} if kind == "message" else {}
