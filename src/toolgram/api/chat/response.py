"""The answer of `/v1/chat/completions`: from events to chunks, from replies to a completion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgram.api.notes import logprobs_json, notes_of, trace_json
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
from toolgram.conversation.message import CustomToolCall, ToolCall
from toolgram.engines.base import Chunk, TokenLogprobs, Usage

Json = dict[str, Any]

REASONING = "reasoning_content"
"""What thoughts are told as, and under no second name: clients take two names for one field that comes twice, and give
up (aaif-goose/goose#8715), or show each thought twice (MoonshotAI/kimi-code#3928)."""


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer and all chunks of it say of themselves.

    `logprobs`: the chunks tell how likely their tokens were, if the engine does; `include_tokens`: they tell each
    token, whether the grammar forced it, and where the model alone would have written another one. Calls of the custom
    tools that are `as_functions` are told as those of functions, with their input as it is in the place of arguments.
    """

    id: str
    created: int
    model: str
    legacy: bool = False
    include_usage: bool = False
    include_tokens: bool = False
    logprobs: bool = True
    as_functions: frozenset[str] = frozenset()

    def called(self, name: str, said: str) -> Json:
        """The call of a custom tool."""
        if name in self.as_functions:
            return {"type": "function", "function": {"name": name, "arguments": said}}
        return {"type": "custom", "custom": {"name": name, "input": said}}


def completion(head: Head, replies: Sequence[Reply], logprobs: Sequence[Sequence[TokenLogprobs]]) -> Json:
    """The ChatCompletion of the replies, one for each choice, and of how likely the tokens of each were."""
    return {
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [
            {
                "index": index,
                "message": _message(head, reply),
                "logprobs": _logprobs(likely),
                "finish_reason": _finish(head, reply),
                **notes_of(reply),
            }
            for index, (reply, likely) in enumerate(zip(replies, logprobs, strict=True))
        ],
        "usage": usage_json([reply.usage for reply in replies]),
    }


def _logprobs(tokens: Sequence[TokenLogprobs]) -> Json | None:
    return {"content": logprobs_json(tokens), "refusal": None} if tokens else None


def usage_json(usages: Sequence[Usage]) -> Json:
    """What the choices cost together; the prompt is counted once.

    `reasoning_closed` says that reasoning was ended at its bound, so that what must follow has room, and `estimated`
    that an upstream counted no tokens.
    """
    closed = {"reasoning_closed": True} if any(usage.reasoning_closed for usage in usages) else {}
    prompt = max((usage.prompt_tokens for usage in usages), default=0)
    written = sum(usage.completion_tokens for usage in usages)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": max((usage.cached_tokens for usage in usages), default=0)},
        "completion_tokens_details": {"reasoning_tokens": sum(usage.reasoning_tokens for usage in usages), **closed},
        **({"estimated": True} if any(usage.estimated for usage in usages) else {}),
    }


def _message(head: Head, reply: Reply) -> Json:
    message = reply.message
    json: Json = {"role": "assistant", "content": message.content, "refusal": None}
    if message.reasoning is not None:
        json[REASONING] = message.reasoning
    if not message.tool_calls:
        return json
    if head.legacy:
        return json | {"function_call": _function(message.tool_calls[0])}
    return json | {"tool_calls": [_call(head, call) for call in message.tool_calls]}


def _call(head: Head, call: ToolCall) -> Json:
    cut = {"incomplete": True} if call.incomplete else {}
    if isinstance(call, CustomToolCall):
        return {"id": call.id, **head.called(call.name, call.input), **cut}
    return {"id": call.id, "type": "function", "function": _function(call), **cut}


def _function(call: ToolCall) -> Json:
    """What is called; a call without arguments has none, but one that was cut off before them has not got them yet."""
    return {"name": call.name, "arguments": call.arguments or ("" if call.incomplete else "{}")}


def _finish(head: Head, reply: Reply) -> str:
    return "function_call" if head.legacy and reply.finish_reason == "tool_calls" else reply.finish_reason


@dataclass(slots=True)
class _Call:
    """A call under way: what of it must wait, for its id or (that of a custom tool) for its end."""

    name: str
    id: str | None
    custom: bool
    waiting: list[str] = field(default_factory=list[str])
    empty: bool = True
    told: bool = False


@dataclass(slots=True)
class ChunkWriter:
    """The chunks of one choice. The first tells the role, the last the finish reason; a call is told once it has an id.

    `feed` takes what `toolgram.chat.stream` gives, in its order.
    """

    head: Head
    index: int = 0
    usage: Usage | None = None
    _likely: list[TokenLogprobs] = field(default_factory=list[TokenLogprobs])
    _calls: list[_Call] = field(default_factory=list[_Call])
    _begun: bool = False

    def feed(self, item: Chunk | Event | Reply) -> Iterator[Json]:
        """The chunks that a piece of the answer makes."""
        yield from self.begin()
        match item:
            case Chunk():
                if self.head.logprobs:
                    self._likely += item.logprobs
                if self.head.include_tokens:
                    told: Json = {"tokens": tokens_json(item), "trace": trace_json(item.trace)}
                    if told := {name: value for name, value in told.items() if value}:
                        yield self._chunk({}, **told)
            case ContentDelta(text) | Unreadable(text):
                if text:
                    yield self._chunk({"content": text})
            case ArgumentsDelta(index, text):
                yield from self._arguments(self._calls[index], index, text)
            case ReasoningDelta(text):
                if text:
                    yield self._chunk({REASONING: text})
            case ToolCallStart(index, name, id_):
                self._calls.append(call := _Call(name, id_, isinstance(item, CustomCallStart)))
                if id_ is not None and not call.custom:
                    yield self._tell(call, index, "")
            case ToolCallEnd(index, id_):
                yield from self._end(self._calls[index], index, id_)
            case Reply():
                yield from self._over(item)
            case _:
                pass

    def begin(self) -> Iterator[Json]:
        """The first chunk, unless it was told."""
        if not self._begun:
            self._begun = True
            yield self._chunk({"role": "assistant", "content": None})

    def _arguments(self, call: _Call, index: int, text: str) -> Iterator[Json]:
        call.empty = call.empty and not text
        if not call.told:
            call.waiting.append(text)
        elif text:
            yield self._more(index, text)

    def _end(self, call: _Call, index: int, id_: str | None) -> Iterator[Json]:
        call.id = call.id or id_
        if not call.told:
            yield self._tell(call, index, "".join(call.waiting) or "{}")
        elif call.empty:
            yield self._more(index, "{}")
        call.empty = False

    def _over(self, reply: Reply) -> Iterator[Json]:
        self.usage = reply.usage
        for index, call in enumerate(self._calls):
            if not call.told:  # it was cut off before it had an id
                call.id = reply.message.tool_calls[index].id
                yield self._tell(call, index, "".join(call.waiting))
        cut = [at for at, call in enumerate(reply.message.tool_calls) if call.incomplete and not self.head.legacy]
        calls = [{"index": at, "function": {"arguments": ""}, "incomplete": True} for at in cut]
        yield self._chunk({"tool_calls": calls} if calls else {}, _finish(self.head, reply), **notes_of(reply))

    def _tell(self, call: _Call, index: int, arguments: str) -> Json:
        """The first of a call: its id, type and name, which no other chunk tells."""
        call.told = True
        if self.head.legacy:  # which has a place for one call
            told = {} if index else {"function_call": {"name": call.name, "arguments": arguments}}
            return self._chunk(told)
        delta: Json = {"index": index, "id": call.id}
        if call.custom:
            delta |= self.head.called(call.name, input_of(arguments))
        else:
            delta |= {"type": "function", "function": {"name": call.name, "arguments": arguments}}
        return self._chunk({"tool_calls": [delta]})

    def _more(self, index: int, arguments: str) -> Json:
        if self.head.legacy:
            return self._chunk({} if index else {"function_call": {"arguments": arguments}})
        return self._chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})

    def _chunk(self, delta: Json, finish: str | None = None, **noted: Any) -> Json:
        likely, self._likely = _logprobs(self._likely), []  # of the tokens since the last chunk
        choice: Json = {"index": self.index, "delta": delta, "logprobs": likely, "finish_reason": finish, **noted}
        return _chunk(self.head, [choice])


def tokens_json(chunk: Chunk) -> list[Json]:
    """The tokens of a piece of the answer, in raw text; those that the grammar forced were written without a choice.

    An engine that does not tell its tokens apart has one entry for the piece, without `bytes` and `logprob`.
    """
    if not chunk.logprobs:
        return [{"text": chunk.text, "forced": 0 < len(chunk.tokens) == chunk.forced}] if chunk.text else []
    chosen = len(chunk.logprobs) - chunk.forced  # the forced ones are the last
    return [
        {
            "text": one.chosen.piece.decode(errors="replace"),
            "bytes": list(one.chosen.piece),
            "logprob": one.chosen.logprob,
            "forced": at >= chosen,
        }
        for at, one in enumerate(chunk.logprobs)
    ]


def usage_chunk(head: Head, usages: Sequence[Usage]) -> Json:
    """The chunk after the last one, which tells what all of it cost."""
    return {**_chunk(head, []), "usage": usage_json(usages)}


def _chunk(head: Head, choices: list[Json]) -> Json:
    chunk: Json = {
        "id": head.id,
        "object": "chat.completion.chunk",
        "created": head.created,
        "model": head.model,
        "choices": choices,
    }
    return {**chunk, "usage": None} if head.include_usage else chunk
