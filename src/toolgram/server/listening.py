"""How a server listens: how long it waits for clients that send or read nothing, how many there are, how it ends."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    import resource
except ImportError:  # on Windows
    resource = None


_FILES = 65_536  # that a server asks the system for: each connection is one, and systems begin with 256 or 1024
_OTHER_FILES = 128  # models, logs, upstreams, and what comes before there is room for it
_AT_ONCE = 16  # connections that are let in before others are dropped
BACKLOG = 2048  # those that the system keeps until they are let in
# Where there are too many connections, one of so many goes, so that they are not looked through for each that comes.
_DROPPED = 16  # of an address
_DROPPED_OF_ALL = 1024  # of all


class Connection(H11Protocol):
    """A connection that is dropped where a request's headers, or any reading of its answer, take too long.

    Where there are too many, some of those go whose request is not whole: of the address that has most of these.
    """

    headers_within = 30.0  # seconds
    reads_within = 60.0

    _began = 0.0  # when its client had nothing more to wait for, by the clock of the loop
    _dropped = False
    _for_headers: asyncio.TimerHandle | None = None
    _for_reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """A client has come."""
        super().connection_made(transport)
        self._await_headers()
        if len(self.connections) > most_connections():
            _make_room(self, [each for each in self.connections if isinstance(each, Connection)])

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._for_headers = _stopped(self._for_headers)
        self._for_reading = _stopped(self._for_reading)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        super().data_received(data)
        # uvicorn's own note says that there always is one.
        if self.cycle is None or self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] - see above
            self._await_headers()
        else:
            self._for_headers = _stopped(self._for_headers)

    def waits_since(self) -> float | None:
        """Since when it waits for a request, or the rest of one; None where it does not."""
        waits = self._for_headers is not None or self.conn.their_state is h11.SEND_BODY
        return self._began if waits and not self._dropped else None

    def drop(self) -> None:
        """End it."""
        self._dropped = True
        self.transport.abort()

    @property
    def address(self) -> str:
        """Of the client."""
        return self.client[0] if self.client else ""

    def _await_headers(self) -> None:
        if self._for_headers is None:
            self._began = self.loop.time()
            self._for_headers = self.loop.call_later(self.headers_within, self.transport.abort)

    def pause_writing(self) -> None:
        """The client does not read as fast as is written."""
        super().pause_writing()
        self._for_reading = self.loop.call_later(self.reads_within, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read."""
        self._for_reading = _stopped(self._for_reading)
        super().resume_writing()


def _make_room(new: Connection, connections: Sequence[Connection]) -> None:
    """Drop some that wait, the oldest ones of the addresses that have most of them; or else the new one."""
    waiting = [(since, each) for each in connections if each is not new and (since := each.waits_since()) is not None]
    if not waiting:
        new.drop()
        return
    of_address = Counter(each.address for _, each in waiting)
    worst_first = sorted(waiting, key=lambda each: (-of_address[each[1].address], each[0]))
    many = max(max(of_address.values()) // _DROPPED, len(waiting) // _DROPPED_OF_ALL) + 1
    for _, each in worst_first[:many]:
        each.drop()


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Listening(uvicorn.Server):
    """A server that lets few connections in at a time, so that there is time to drop others; the system keeps the rest.

    asyncio would let in as many as the system may keep, each of which is a file, and end where there are none.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)


class Server(Listening):
    """A server that finishes what it has begun at the first signal to end, and ends at once at the second."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to end; on a terminal it is said what is waited for."""
        if self.should_exit:
            os._exit(128 + sig)  # nothing that runs is waited for, threads neither
        if (running := len(self.server_state.tasks)) and sys.stderr.isatty():
            within = self.config.timeout_graceful_shutdown
            said = f"\nending: {running} running, for {within} seconds at most (--shutdown-timeout); Ctrl-C ends now\n"
            os.write(sys.stderr.fileno(), said.encode())  # a buffer may be in use where a signal comes
        super().handle_exit(sig, frame)


def most_connections() -> int:
    """How many connections there are files for: asyncio writes a thousand tracebacks a second where there is none."""
    files = _FILES if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(files - _OTHER_FILES, files // 2) if files > 0 else _FILES


def take_files() -> None:
    """Ask the system for as many files as a server may want."""
    if resource is not None:
        given, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if most == resource.RLIM_INFINITY else min(_FILES, most)
        if given < wanted and given != resource.RLIM_INFINITY:
            with suppress(ValueError, OSError):  # macOS gives no more than it is set up for
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def config(
    app: ASGIApp | Callable[[], ASGIApp], shutdown_timeout: int, host: str = "127.0.0.1", port: int = 0
) -> uvicorn.Config:
    """What uvicorn is to know; answers that run `shutdown_timeout` seconds after it was told to end are cut off."""
    return uvicorn.Config(
        app,
        host,
        port,
        log_level="warning",
        access_log=False,
        http=Connection,
        backlog=_AT_ONCE,
        timeout_graceful_shutdown=shutdown_timeout,
    )
