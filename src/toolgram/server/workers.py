"""Several processes that accept from one socket. Each has its own application; they share only their metrics."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType

import uvicorn
from prometheus_client.multiprocess import mark_process_dead  # pyright: ignore[reportUnknownVariableType] - it has no types
from starlette.types import ASGIApp

MakeApp = Callable[[], ASGIApp]
"""Makes an application in the process that calls it; it is pickled to get there."""

_LOOK = 0.2  # seconds between two checks whether to stop
_REST = 1.0  # seconds before a dead worker is replaced: one that cannot start would keep a processor busy


def serve_by_workers(make: MakeApp, listener: socket.socket, count: int) -> None:
    """Serve the socket with several processes, until SIGTERM or SIGINT.

    A process that dies is replaced. At the end each finishes its running streams.
    """
    stop = threading.Event()

    def stop_soon(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop_soon)
    with tempfile.TemporaryDirectory(prefix="toolgram-") as counts:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts  # tells workers where to count; must exist before they start
        workers = [_started(make, listener) for _ in range(count)]
        while not stop.is_set():
            wait([worker.sentinel for worker in workers], timeout=_LOOK)
            if all(worker.is_alive() for worker in workers) or stop.wait(_REST):
                continue
            workers = [worker if worker.is_alive() else _replaced(worker, make, listener) for worker in workers]
        _end(workers)


def _started(make: MakeApp, listener: socket.socket) -> SpawnProcess:
    # Spawned, not forked: a process with threads or an event loop must not be copied.
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(make, listener))
    worker.start()
    return worker


def _replaced(dead: SpawnProcess, make: MakeApp, listener: socket.socket) -> SpawnProcess:
    mark_process_dead(dead.pid)  # its requests are no longer running
    return _started(make, listener)


def _end(workers: Sequence[SpawnProcess]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


def _work(make: MakeApp, listener: socket.socket) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    uvicorn.Server(uvicorn.Config(make(), log_level="warning", access_log=False)).run([listener])


def _end_with_parent() -> None:
    """Stops this process when its parent is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
