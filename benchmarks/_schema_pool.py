"""Work in processes that may hang or die: each piece has a time limit, and takes nobody along."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Tell = Callable[[str], None]
"""Names the stage that begins; each stage has the whole time limit."""

_MEMORY = 6 * 2**30  # bytes of address space for a worker: some grammars make a peer take all there is
_FORK = multiprocessing.get_context("fork")  # the tasks are not sent, and imports are not repeated


class Lost(NamedTuple):
    """A piece of work without a result: its process was stopped at the time limit, or died."""

    how: Literal["hung", "died"]
    stage: str


@dataclass(slots=True)
class _Worker(Generic[Result]):
    process: multiprocessing.process.BaseProcess
    connection: Connection
    task: int = -1
    stage: str = ""
    since: float = 0.0


def run(
    tasks: Sequence[Task], work: Callable[[Task, Tell], Result], jobs: int, seconds: float
) -> list[Result | Lost]:
    """The result of each task, in order. An exception in `work` is raised here."""
    results: list[Any] = [None] * len(tasks)
    waiting = iter(range(len(tasks)))
    workers: list[_Worker[Result]] = []

    def next_task(worker: _Worker[Result]) -> None:
        worker.task = next(waiting, -1)
        if worker.task < 0:
            _stop(worker)
            return
        worker.stage, worker.since = "start", time.monotonic()
        worker.connection.send(worker.task)
        workers.append(worker)

    def lose(worker: _Worker[Result], how: Literal["hung", "died"]) -> None:
        results[worker.task] = Lost(how, worker.stage)
        _stop(worker)
        next_task(_start(tasks, work))

    for _ in range(min(jobs, len(tasks))):
        next_task(_start(tasks, work))
    try:
        while workers:
            ready = wait([worker.connection for worker in workers], timeout=0.1)
            for worker in [*workers]:
                if worker.connection in ready:
                    message = _receive(worker)
                    if isinstance(message, str):
                        worker.stage, worker.since = message, time.monotonic()
                        continue
                    workers.remove(worker)
                    if message is None:
                        lose(worker, "died")
                        continue
                    results[worker.task] = _unpacked(message)
                    next_task(worker)
                elif time.monotonic() > worker.since + seconds:
                    workers.remove(worker)
                    lose(worker, "hung")
    finally:
        for worker in workers:
            _stop(worker)
    return results


def _start(tasks: Sequence[Task], work: Callable[[Task, Tell], Result]) -> _Worker[Result]:
    ours, theirs = _FORK.Pipe()
    process = _FORK.Process(target=_serve, args=(theirs, tasks, work), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _stop(worker: _Worker[Result]) -> None:
    worker.process.kill()
    worker.process.join()
    worker.connection.close()


def _receive(worker: _Worker[Result]) -> Any:
    try:
        return worker.connection.recv()
    except (EOFError, ConnectionResetError):
        return None


def _unpacked(message: tuple[Any, BaseException | None]) -> Any:
    result, error = message
    if error is not None:
        raise error
    return result


def _serve(connection: Connection, tasks: Sequence[Task], work: Callable[[Task, Tell], Result]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # C++ libraries write warnings there; exceptions go to the parent
    while True:
        task = connection.recv()
        try:
            message: tuple[Any, BaseException | None] = work(tasks[task], connection.send), None
        except Exception as error:  # noqa: BLE001 - it is raised again in the parent
            message = None, error
        connection.send(message)
