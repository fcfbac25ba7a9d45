"""Several processes that accept from one socket. Each has its own application; they share only their metrics."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead  # pyright: ignore[reportUnknownVariableType] - it has no types
from starlette.types import ASGIApp

from toolgram.server.listening import Listening, config

MakeApp = Callable[[], ASGIApp]
"""Makes an application in the process that calls it; it is pickled to get there."""

_LOOK = 0.2  # seconds between two checks whether to stop
_SLACK = 5  # seconds in which a worker that has cut off its answers ends
_REST = 1.0  # seconds before a dead worker is replaced: one that cannot start would keep a processor busy


def serve_by_workers(make: MakeApp, listener: socket.socket, count: int, shutdown_timeout: int) -> None:
    """Serve the socket with several processes, until SIGTERM or SIGINT.

    A process that dies is replaced. At the end each finishes its running streams, as far as they end within
    `shutdown_timeout` seconds; a second signal ends all at once.
    """
    stop = threading.Event()
    workers: list[SpawnProcess] = []

    def stop_soon(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            _kill(workers)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop_soon)
    with tempfile.TemporaryDirectory(prefix="toolgram-") as counts:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts  # tells workers where to count; must exist before they start
        workers += [_started(make, listener, shutdown_timeout) for _ in range(count)]
        while not stop.is_set():
            wait([worker.sentinel for worker in workers], timeout=_LOOK)
            if all(worker.is_alive() for worker in workers) or stop.wait(_REST):
                continue
            for place, worker in enumerate(workers):
                if not worker.is_alive():
                    mark_process_dead(worker.pid)  # its requests are no longer running
                    workers[place] = _started(make, listener, shutdown_timeout)
        _end(workers, shutdown_timeout)


def _started(make: MakeApp, listener: socket.socket, shutdown_timeout: int) -> SpawnProcess:
    # Spawned, not forked: a process with threads or an event loop must not be copied.
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(make, listener, shutdown_timeout))
    worker.start()
    return worker


def _end(workers: Sequence[SpawnProcess], shutdown_timeout: int) -> None:
    for worker in workers:
        worker.terminate()
    last = time.monotonic() + shutdown_timeout + _SLACK
    for worker in workers:
        worker.join(max(0, last - time.monotonic()))
    _kill(workers)
    for worker in workers:
        worker.join()


def _kill(workers: Sequence[SpawnProcess]) -> None:
    for worker in workers:
        worker.kill()


def _work(make: MakeApp, listener: socket.socket, shutdown_timeout: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Not ours, which ends at once: Ctrl-C reaches the workers twice, from the terminal and from their parent.
    Listening(config(make(), shutdown_timeout)).run([listener])


def _end_with_parent() -> None:
    """Stops this process when its parent is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
