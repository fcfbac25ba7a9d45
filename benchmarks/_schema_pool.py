"""Work in processes that may hang or die: each piece has a time limit, and takes nobody along.

The limit is of processor time, so that a busy machine makes nobody hang: the kernel ends a process at the limit,
whatever C code it is in.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
How = Literal["hung", "died"]
Tell = Callable[[str], None]
"""Names the stage that begins; each stage has the whole time limit."""

_PATIENCE = 10  # times the limit, by the clock on the wall: for what hangs and does not compute

_TASKS_PER_PASS = 50  # after so many a worker looks for garbage among all that it holds
_NEVER = 1_000_000  # as a number of passes over younger objects

_MEMORY = 6 * 2**30  # bytes of address space for a worker: some grammars make a peer take all there is
_FORK = multiprocessing.get_context("fork")  # the tasks are not sent, and imports are not repeated


class Lost(NamedTuple):
    """A piece of work without a result: its process was stopped at the time limit, or died."""

    how: How
    stage: str


@dataclass(slots=True)
class _Worker(Generic[Result]):
    process: BaseProcess
    connection: Connection
    task: int = -1
    stage: str = ""
    since: float = 0.0


def run(tasks: Sequence[Task], work: Callable[[Task, Tell], Result], jobs: int, seconds: float) -> list[Result | Lost]:
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

    def lose(worker: _Worker[Result], how: How) -> None:
        results[worker.task] = Lost(how, worker.stage)
        _stop(worker)
        next_task(_start(tasks, work, seconds))

    for _ in range(min(jobs, len(tasks))):
        next_task(_start(tasks, work, seconds))
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
                        lose(worker, _way_it_ended(worker))
                        continue
                    results[worker.task] = _unpacked(message)
                    next_task(worker)
                elif time.monotonic() > worker.since + seconds * _PATIENCE:
                    workers.remove(worker)
                    lose(worker, "hung")
    finally:
        for worker in workers:
            _stop(worker)
    return results


def _start(tasks: Sequence[Task], work: Callable[[Task, Tell], Result], seconds: float) -> _Worker[Result]:
    ours, theirs = _FORK.Pipe()
    process = _FORK.Process(target=_serve, args=(theirs, tasks, work, seconds), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _stop(worker: _Worker[Result]) -> None:
    worker.process.kill()
    worker.process.join()
    worker.connection.close()


def _way_it_ended(worker: _Worker[Result]) -> How:
    worker.process.join()
    return "hung" if worker.process.exitcode == -signal.SIGPROF else "died"


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


def _serve(connection: Connection, tasks: Sequence[Task], work: Callable[[Task, Tell], Result], seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # C++ libraries write warnings there; exceptions go to the parent

    def tell(stage: str) -> None:
        connection.send(stage)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends the process

    # A pass over all objects takes a second where the parent and earlier tasks left many: it is nobody's work, and is
    # done between two tasks. Those over young objects stay where they come.
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    parent = os.getppid()
    for count in itertools.count(1):
        while not connection.poll(5):
            if os.getppid() != parent:  # it was killed; its end of the pipe is open in others
                return
        task: int = connection.recv()
        tell("start")
        try:
            message: tuple[Any, BaseException | None] = work(tasks[task], tell), None
        except Exception as error:  # noqa: BLE001 - it is raised again in the parent
            message = None, error
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(message)
        if count % _TASKS_PER_PASS == 0:
            gc.collect()
