"""The answers of Ollama's API: from events to objects of theirs, each a line of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from toolgram.api.json_text import as_it_is, object_text
from toolgram.api.notes import logprobs_json, notes_of
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
from toolgram.engines.base import Chunk, TokenLogprobs, Usage

Json = dict[str, Any]
Kind = Literal["chat", "generate"]

_LINE_BREAKS = str.maketrans("\r\n", "  ")
_NANO = 1_000_000_000


def timestamp(seconds: float | None = None) -> str:
    """A time as RFC 3339 writes it; None is now."""
    when = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")


def loaded(kind: Kind, model: str, *, ends: bool) -> Json:
    """The answer to a body that says nothing: the model is there, and stays."""
    return {**_object(model, _said(kind)), "done": True, "done_reason": "unload" if ends else "load"}


def whole(kind: Kind, objects: Iterable[Json]) -> Json:
    """What the objects of a stream add up to, so that whole and streamed answers cannot differ."""
    texts: dict[str, list[str]] = {"content" if kind == "chat" else "response": []}
    lists: dict[str, list[Any]] = {}
    logprobs: list[Any] = []
    last: Json = {}
    for last in objects:
        for name, value in (last["message"] if kind == "chat" else last).items():
            if name in ("content", "response", "thinking"):
                texts.setdefault(name, []).append(value)
            elif name == "tool_calls":
                lists.setdefault(name, []).extend(value)
        logprobs += last.get("logprobs", ())
    said: Json = {**{name: "".join(parts) for name, parts in texts.items()}, **lists}
    told = {"message": {"role": "assistant", **said}} if kind == "chat" else said
    return {**last, **told, **({"logprobs": logprobs} if logprobs else {})}


def _said(kind: Kind, text: str = "", **more: Any) -> Json:
    """The part of an object that says something."""
    return {"message": {"role": "assistant", "content": text, **more}} if kind == "chat" else {"response": text, **more}


def _object(model: str, said: Json) -> Json:
    return {"model": model, "created_at": timestamp(), **said, "done": False}


@dataclass(slots=True)
class _Call:
    """A call under way."""

    index: int
    name: str
    id: str | None
    arguments: list[str] = field(default_factory=list[str])

    @property
    def json(self) -> Json:
        """The call, whole. Arguments that are no object, which only where nothing is enforced come, are left out."""
        text = object_text("".join(self.arguments))
        # Outside of strings a line may break as the model likes, and within them none does.
        arguments: Any = {} if text is None else as_it_is(text.translate(_LINE_BREAKS))
        known = {} if self.id is None else {"id": self.id}
        return {**known, "function": {"index": self.index, "name": self.name, "arguments": arguments}}


@dataclass(slots=True)
class AnswerWriter:
    """The objects of one answer, which `began` at a time of `time.perf_counter`.

    A call is told when it is whole, as an object has no beginning of its own: one that was cut off is not told, since
    clients run what they are told, and counts among those that were dropped.
    """

    kind: Kind
    model: str
    began: float
    _first: float | None = None
    _call: _Call | None = None
    _likely: list[TokenLogprobs] = field(default_factory=list[TokenLogprobs])

    def feed(self, item: Chunk | Event | Reply) -> Iterator[Json]:
        """The objects that a piece of the answer makes."""
        match item:
            case Chunk():
                self.hear(item)
            case ContentDelta(text) | Unreadable(text):
                if text:
                    yield self.say(text)
            case ReasoningDelta(text):
                if text:
                    yield self._tell(_said(self.kind, thinking=text))
            case ToolCallStart(index, name, id_):
                yield from self._called()  # what another one follows is over
                self._call = _Call(index, name, id_)
            case ArgumentsDelta(_, text) if self._call is not None:
                self._call.arguments.append(text)
            case ToolCallEnd(_, id_):
                yield from self._called(id_)
            case Reply():
                yield from self._over(item)
            case _:
                pass

    def hear(self, chunk: Chunk) -> None:
        """Raw text came, of which nothing may be told yet."""
        if self._first is None:
            self._first = time.perf_counter()
        self._likely += chunk.logprobs

    def say(self, text: str) -> Json:
        """More text."""
        return self._tell(_said(self.kind, text))

    def alive(self) -> Json:
        """A sign of life: clients parse each line, so that none may be empty."""
        return _object(self.model, _said(self.kind))

    def end(self, reason: str, usage: Usage, notes: Json) -> Json:
        """The last object. Clients divide by the durations, so that none is 0; the model was loaded before."""
        now = time.perf_counter()
        first = now if self._first is None else self._first
        return {
            **self._tell(_said(self.kind)),
            "done": True,
            "done_reason": reason,
            "total_duration": _nanoseconds(now - self.began),
            "load_duration": 1,
            "prompt_eval_count": usage.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(usage.prefill_seconds or first - self.began),
            "eval_count": usage.completion_tokens,
            "eval_duration": _nanoseconds(usage.decode_seconds or now - first),
            **({"estimated": True} if usage.estimated else {}),
            **notes,
        }

    def _called(self, id_: str | None = None) -> Iterator[Json]:
        """The call that is under way, if there is one."""
        if (call := self._call) is not None:
            self._call = None
            call.id = call.id or id_
            yield self._tell(_said(self.kind, tool_calls=[call.json]))

    def _over(self, reply: Reply) -> Iterator[Json]:
        notes = notes_of(reply)
        if self._call is not None:
            if reply.finish_reason == "tool_calls":
                yield from self._called(reply.message.tool_calls[-1].id)
            else:
                notes["dropped_tool_calls"] = reply.dropped_calls + 1
        yield self.end("length" if reply.finish_reason == "length" else "stop", reply.usage, notes)

    def _tell(self, said: Json) -> Json:
        """An object, with how likely the tokens since the last one were."""
        likely, self._likely = logprobs_json(self._likely), []
        return {**_object(self.model, said), **({"logprobs": likely} if likely else {})}


def _nanoseconds(seconds: float) -> int:
    return max(1, int(seconds * _NANO))
