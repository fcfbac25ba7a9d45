"""The answer of `/v1/responses`: events, of which the last one holds the whole response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgram.api.errors import ApiError, openai_error, param
from toolgram.api.notes import logprobs_json, notes_of
from toolgram.api.responses.mcp import ApprovedCall, CallResult, Listing, McpPlace, item_of_list
from toolgram.api.responses.mcp_body import error_of
from toolgram.api.responses.parts import MESSAGE, REASONING, SUMMARY, Texts, of_text
from toolgram.api.responses.sealed import sealed
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
from toolgram.engines.base import Chunk, TokenLogprobs, Usage

Json = dict[str, Any]

# The event in which the arguments of a call grow; an approval is asked for when they are whole.
_GROWING = {"function_call": "response.function_call_arguments", "mcp_call": "response.mcp_call_arguments"}
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "mcp_list_tools": "mcpl",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
}


@dataclass(slots=True)
class ResponseWriter:
    """The events of one response, whose last one holds the response.

    `feed` takes what `toolgram.chat.stream` gives, of one turn or of several, and what MCP servers do between them; a
    reply is the end. Items come one after another: text inside a call, which only an unconstrained model writes, is
    told behind it. `places` and `mcp` are the tools of namespaces and of MCP servers, by the names that the model
    knows them by. With `encrypts` reasoning is given in a form that is handed back, too, and with `summarizes` as its
    own summary.
    """

    id: str
    created: int
    model: str
    echo: Mapping[str, Any]
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    mcp: Mapping[str, McpPlace] = field(default_factory=dict[str, McpPlace])
    encrypts: bool = False
    summarizes: bool = False
    _output: list[Json] = field(default_factory=list[Json])
    _pieces: list[str] = field(default_factory=list[str])
    _likely: list[TokenLogprobs] = field(default_factory=list[TokenLogprobs])  # of tokens that no event has told yet
    _logprobs: list[Json] = field(default_factory=list[Json])  # of the open item
    _open: bool = False
    _untold: bool = False  # whether the open item is a call that no event has told yet
    _held: list[tuple[Texts, str]] = field(default_factory=list[tuple[Texts, str]])  # from inside a call
    _begun: bool = False
    _number: int = 0
    _running: dict[int, int] = field(default_factory=dict[int, int])  # calls of a turn that have no result yet

    def feed(self, item: Chunk | Event | Reply | Listing | ApprovedCall | CallResult) -> Iterator[Json]:
        """The events that a piece of the answer makes."""
        if not self._begun:
            yield from self.alive()
        match item:
            case Chunk():
                self._likely += item.logprobs
            case ContentDelta(text) | Unreadable(text):
                yield from self._text(MESSAGE, text)
            case ReasoningDelta(text):
                yield from self._text(self._reasoning, text)
            case ToolCallStart(index, name, id_):
                if self._in_call:  # one without an end is over when the next begins
                    yield from self._ended(index - 1, None)
                yield from self._close()
                yield from self._call(name, id_, custom=isinstance(item, CustomCallStart))
            case ArgumentsDelta(_, text):
                yield from self._arguments(text)
            case ToolCallEnd(index, id_):
                yield from self._ended(index, id_)
            case Listing():
                yield from self._listing(item)
            case ApprovedCall():
                yield from self._mcp_call(self.mcp[item.name], item.approval)
                yield from self._arguments(item.arguments)
                yield from self._ended(item.index, None)
            case CallResult():
                yield from self._result(item)
            case Reply():
                yield from self._over(item)
            case _:
                pass

    def alive(self) -> Iterator[Json]:
        """The events of a silence: the beginning, if nothing was told yet, and that the response is in progress.

        Not OpenAI's own `keepalive`, which is in no document of theirs, and which clients of some versions refuse.
        """
        if not self._begun:
            self._begun = True
            yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))

    def failed(self, error: ApiError) -> Iterator[Json]:
        """The events of an error after what was generated, which the response holds as far as it came."""
        yield from self._known(None)
        yield from self._cut("incomplete")
        place = None if error.pointer is None else param(error.pointer)
        # OpenAI documents the fields, and sends an object that holds them: clients look for one or the other.
        yield self._event("error", code=error.code, message=error.message, param=place, **openai_error(error))
        told = {"error": {"code": "server_error", "message": error.message}}
        yield self._event("response.failed", response={**self._response("failed"), **told})

    @property
    def _reasoning(self) -> Texts:
        return SUMMARY if self.summarizes else REASONING

    @property
    def _in_call(self) -> bool:
        return self._open and self._output[-1]["type"] not in ("message", "reasoning")

    def _text(self, texts: Texts, text: str) -> Iterator[Json]:
        if not text:
            return
        likely, self._likely = self._likely, []
        if self._in_call:
            self._held.append((texts, text))
            return
        if begins := not self._open or self._output[-1]["type"] != texts.kind:
            yield from self._close()
            self._add(texts.begun())
            yield self._told()
            yield self._at(f"{texts.parts}.added", **{texts.index: 0}, part=texts.part_of(""))
        self._pieces.append(text)
        told = logprobs_json(of_text(likely, text) if begins else likely) if texts.likely else []
        self._logprobs += told
        yield self._at(f"{texts.text}.delta", **{texts.index: 0}, delta=text, **texts.logprobs(told))

    def _call(self, name: str, id_: str | None, *, custom: bool) -> Iterator[Json]:
        """A call begins; it is told once it has an id, that of a custom tool at its end."""
        if (of_server := self.mcp.get(name)) is not None:
            yield from self._mcp_call(of_server)
            return
        type_, carried = ("custom_tool_call", "input") if custom else ("function_call", "arguments")
        called = {"name": name}
        if (place := self.places.get(name)) is not None:  # the client knows it by its namespace and its name there
            called = {"namespace": place[0], "name": place[1]}
        self._add({"type": type_, "call_id": id_, **called, carried: ""})
        self._untold = id_ is None or custom
        if not self._untold:
            yield self._told()

    def _mcp_call(self, place: McpPlace, approval: str | None = None) -> Iterator[Json]:
        """A call of a server's tool begins. One that waits for an approval is told at its end."""
        called = {"server_label": place.label, "name": place.tool.own_name, "arguments": ""}
        if place.asks and approval is None:
            self._add({"type": "mcp_approval_request", **called})
            return
        self._add({"type": "mcp_call", **called, "approval_request_id": approval, "output": None, "error": None})
        yield self._told()
        yield self._at("response.mcp_call.in_progress")

    def _arguments(self, text: str) -> Iterator[Json]:
        self._pieces.append(text)
        call = self._output[-1]
        if text and call["type"] in _GROWING and not self._untold:
            yield self._at(f"{_GROWING[call['type']]}.delta", delta=text)

    def _ended(self, index: int, id_: str | None) -> Iterator[Json]:
        yield from self._known(id_)
        if not "".join(self._pieces):
            yield from self._arguments("{}")
        if self._output[-1]["type"] == "mcp_call":
            yield from self._runs(index)
        else:
            yield from self._finish("completed")
        yield from self._release()

    def _known(self, id_: str | None) -> Iterator[Json]:
        """A call that waited for its id, or for its end, is told; one that never came by an id has one of ours."""
        if not self._untold:
            return
        self._untold = False
        call = self._output[-1]
        call["call_id"] = call["call_id"] or id_ or f"call_{call['id'].partition('_')[2]}"
        yield self._told()
        if (text := "".join(self._pieces)) and call["type"] == "function_call":
            yield self._at("response.function_call_arguments.delta", delta=text)

    def _runs(self, index: int) -> Iterator[Json]:
        """The arguments of a server's call are whole: it stays open until its result comes, and others begin."""
        call = self._output[-1]
        call["arguments"] = "".join(self._pieces)
        yield self._at("response.mcp_call_arguments.done", arguments=call["arguments"])
        self._running[index] = len(self._output) - 1
        self._open = False

    def _result(self, result: CallResult) -> Iterator[Json]:
        yield from self._close()
        at = self._running.pop(result.index)
        call = self._output[at]
        if result.is_error:
            call |= {"status": "failed", "error": error_of(result.text)}
        else:
            call |= {"status": "completed", "output": result.text}
        yield self._at(f"response.mcp_call.{call['status']}", at)
        yield self._at("response.output_item.done", at, item=dict(call))

    def _listing(self, listing: Listing) -> Iterator[Json]:
        whole = item_of_list(listing)
        self._add({**whole, "tools": [], "error": None})
        yield self._told()
        yield self._at("response.mcp_list_tools.in_progress")
        self._output[-1] |= whole
        yield self._at(f"response.mcp_list_tools.{'completed' if listing.error is None else 'failed'}")
        yield self._at("response.output_item.done", item=dict(self._output[-1]))
        self._open = False

    def _close(self, status: str = "completed") -> Iterator[Json]:
        """The end of the item that is open, and of the text that came inside it."""
        while self._open:
            yield from self._finish(status)
            yield from self._release()

    def _release(self) -> Iterator[Json]:
        """The text that came inside a call is told, now that the call is over."""
        held = self._held.copy()
        self._held.clear()
        for texts, text in held:
            yield from self._text(texts, text)

    def _finish(self, status: str) -> Iterator[Json]:
        """The end of the item that is open."""
        self._open = False
        item, text = self._output[-1], "".join(self._pieces)
        if "status" in item:
            item["status"] = status
        match item["type"]:
            case "function_call":
                item["arguments"] = text
                yield self._at("response.function_call_arguments.done", arguments=text, name=item["name"])
            case "custom_tool_call":
                item["input"] = input_of(text)
                yield self._at("response.custom_tool_call_input.delta", delta=item["input"])
                yield self._at("response.custom_tool_call_input.done", input=item["input"])
            case "mcp_call":  # it was cut off
                item |= {"arguments": text, "status": "incomplete"}
                yield self._at("response.mcp_call_arguments.done", arguments=text)
            case "mcp_approval_request" if status == "incomplete":  # what is not whole is not asked
                self._output.pop()
                return
            case "mcp_approval_request":
                item["arguments"] = text
                yield self._told()
            case kind:
                texts = MESSAGE if kind == "message" else self._reasoning
                part = texts.part_of(text, self._logprobs)
                item[texts.held] = [part]
                if kind == "reasoning" and self.encrypts:
                    item["encrypted_content"] = sealed(text)
                at = {texts.index: 0}
                yield self._at(f"{texts.text}.done", **at, text=text, **texts.logprobs(self._logprobs))
                yield self._at(f"{texts.parts}.done", **at, part=part)
        yield self._at("response.output_item.done", item=dict(item))

    def _over(self, reply: Reply) -> Iterator[Json]:
        calls, cut = reply.message.tool_calls, reply.finish_reason == "length"
        lacks = bool(calls) and calls[-1].incomplete and reply.finish_reason != "tool_calls"
        status = "incomplete" if cut or lacks else "completed"
        if self._in_call:
            yield from self._known(calls[-1].id)
        yield from self._cut(status)
        whole = {**self._response(status), "usage": self._usage(reply.usage), **notes_of(reply)}
        if cut:
            whole["incomplete_details"] = {"reason": "max_output_tokens"}
        yield self._event(f"response.{status}", response=whole)

    def _cut(self, status: str) -> Iterator[Json]:
        """Nothing more comes: the end of what is open, and of calls that were not run."""
        yield from self._close(status)
        for at in self._running.values():
            self._output[at]["status"] = "incomplete"
            yield self._at("response.output_item.done", at, item=dict(self._output[at]))

    def _add(self, item: Json) -> None:
        self._open, self._untold = True, False
        self._pieces.clear()
        self._logprobs = []
        id_ = f"{_PREFIXES[item['type']]}_{self.id.removeprefix('resp_')}_{len(self._output)}"
        status = {} if item["type"] in ("mcp_list_tools", "mcp_approval_request") else {"status": "in_progress"}
        self._output.append({"id": id_, **item, **status})

    def _told(self) -> Json:
        return self._at("response.output_item.added", item=dict(self._output[-1]))

    def _at(self, type_: str, index: int | None = None, **fields: Any) -> Json:
        """An event of an item, by default of the last one."""
        index = len(self._output) - 1 if index is None else index
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
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            **({"estimated": True} if usage.estimated else {}),
        }
