"""Streams, of events or lines: sent as they come, with signs of life in silence, and stopped when the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, TypeVar

from starlette.types import Receive, Scope, Send

from toolgram.api.errors import shutting_down
from toolgram.api.json_text import json_bytes
from toolgram.errors import ToolgramError

T = TypeVar("T")

DONE = b"data: [DONE]\n\n"
EVENTS, LINES = "text/event-stream; charset=utf-8", "application/x-ndjson"
"""The types of streams."""
_MOST_HELD = 64  # events of a stream that wait to be written
_AT_ONCE = 0.02  # seconds for which it is not worth to watch whether the client leaves
_LINE_ENDS = {"\x85".encode(): b"\\u0085", "\u2028".encode(): b"\\u2028", "\u2029".encode(): b"\\u2029"}


class ClientGone(Exception):
    """The client has closed the connection: nobody waits for an answer."""


def data(value: Any) -> bytes:
    """An event of JSON."""
    return b"data: %b\n\n" % _line(value)


def named(value: Mapping[str, Any]) -> bytes:
    """A JSON event named by its `type`."""
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), _line(value))


def all_named(values: Iterable[Mapping[str, Any]]) -> bytes:
    """JSON events named by their `type`."""
    return b"".join(map(named, values))


def line(value: Any) -> bytes:
    """A line of JSON."""
    return b"%b\n" % _line(value)


def _line(value: Any) -> bytes:
    """JSON on one line, also for clients that end lines where Unicode does, as Python's `splitlines`."""
    line = json_bytes(value)
    for end, escape in _LINE_ENDS.items():
        if end in line:
            line = line.replace(end, escape)
    return line


def comment() -> bytes:
    """A sign of life where an API has no event for that."""
    return b": keep-alive\n\n"


class EventStream:
    """An answer in events, or in what else `media` is. Nothing is sent before the first one, so that an earlier error
    has its own status.

    `work` is entered while events are made; `failed` makes the event for an error after that. That the server no longer
    waits for its answers, and cancels them, is such an error. `alive` makes what is sent in silence: clients that give
    up where no event comes for a while (Codex, after 300 s) see no comments.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        work: AbstractAsyncContextManager[None],
        failed: Callable[[ToolgramError], bytes],
        headers: Mapping[str, str],
        keep_alive: float,
        alive: Callable[[], bytes] = comment,
        media: str = EVENTS,
    ) -> None:
        self._events = events
        self._work = work
        self._failed = failed
        self._headers = {
            "content-type": media,
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
            **headers,
        }
        self._keep_alive = keep_alive
        self._alive = alive
        self._started = self._quiet = False
        self._held = list[bytes]()
        self._writing: asyncio.Task[None] | None = None
        self._wrote = False  # in this turn of the event loop

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as an ASGI application."""
        producer = asyncio.create_task(self._produce(send))
        gone = asyncio.create_task(disconnected(receive))
        try:
            while not producer.done() and not gone.done():
                self._quiet = True
                both = {producer, gone}
                await asyncio.wait(both, timeout=self._keep_alive, return_when=asyncio.FIRST_COMPLETED)
                if self._quiet and not producer.done() and not gone.done():
                    await self._write(send, self._alive())
        except asyncio.CancelledError:  # the server ends, and no longer waits for its answers
            await _stop(gone, producer)
            if not self._started:
                raise
            if producer.cancelled():
                await self._fail(send, shutting_down())
        finally:
            finished = producer.done()
            await _stop(gone, producer, *([] if self._writing is None else [self._writing]))
        if not finished:
            raise ClientGone
        if not producer.cancelled():
            producer.result()

    async def _produce(self, send: Send) -> None:
        try:
            async with self._work, aclosing(self._events) as events:
                async for event in events:
                    await self._tell(send, event)
            await self._written()
        except ToolgramError as error:
            await self._written()
            if not self._started:
                raise
            await self._fail(send, error)
        else:
            await send({"type": "http.response.body", "body": b""})

    async def _fail(self, send: Send, error: ToolgramError) -> None:
        await self._write(send, self._failed(error))
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, send: Send, event: bytes) -> None:
        """Writes the first event of a turn of the event loop at once, and those of the same turn after it in one.

        An engine that is ahead of the server brings several in a turn, and half of what an event costs is the writing.
        """
        self._held.append(event)
        if self._writing is not None and not self._writing.done():
            if len(self._held) > _MOST_HELD:  # the client is slow
                await self._written()
            return
        await self._written()
        if self._wrote:
            self._writing = asyncio.create_task(self._write(send))
            return
        self._wrote = True
        asyncio.get_running_loop().call_soon(self._next_turn)
        await self._write(send)

    def _next_turn(self) -> None:
        self._wrote = False

    async def _written(self) -> None:
        """Waits until what was held is written."""
        if self._writing is not None:
            await self._writing

    async def _write(self, send: Send, last: bytes = b"") -> None:
        """Writes what is held, and `last`."""
        self._quiet = False
        if not self._started:
            self._started = True
            headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in self._headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        while self._held or last:
            body, self._held, last = b"".join((*self._held, last)), [], b""
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def while_connected(receive: Receive, answer: Coroutine[Any, Any, T]) -> T:
    """The result, unless the client leaves first: then the work is stopped, and ClientGone raised."""
    making = asyncio.create_task(answer)
    try:
        await asyncio.wait({making}, timeout=_AT_ONCE)
        if making.done():
            return making.result()
        gone = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait({making, gone}, return_when=asyncio.FIRST_COMPLETED)
            if making.done():
                return making.result()
        finally:
            await _stop(gone)
    finally:
        await _stop(making)
    raise ClientGone


async def disconnected(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    """Stop what is not finished, and wait until it has stopped; what is finished keeps its result."""
    running: list[Awaitable[Any]] = []
    for task in tasks:
        if not task.done():
            task.cancel()
            running.append(task)
    await asyncio.gather(*running, return_exceptions=True)
