"""How a server listens: how long it waits for clients that send or read nothing, and how it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A connection that is dropped where a request's headers, or any reading of its answer, take too long."""

    headers_within = 30.0  # seconds
    reads_within = 60.0

    _for_headers: asyncio.TimerHandle | None = None
    _for_reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """A client has come."""
        super().connection_made(transport)
        self._await_headers()

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

    def _await_headers(self) -> None:
        if self._for_headers is None:
            self._for_headers = self.loop.call_later(self.headers_within, self.transport.abort)

    def pause_writing(self) -> None:
        """The client does not read as fast as is written."""
        super().pause_writing()
        self._for_reading = self.loop.call_later(self.reads_within, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read."""
        self._for_reading = _stopped(self._for_reading)
        super().resume_writing()


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Server(uvicorn.Server):
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
        timeout_graceful_shutdown=shutdown_timeout,
    )
