"""Runs each side of the comparison in its own process, so that the other one takes nothing from it.

Two engines in one process have more threads than there are cores, and then OpenMP lets each thread sleep where it would
otherwise spin briefly; and our clients' threads hold the interpreter lock, which callbacks need.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from _engine_peers import CONTEXT, SLOTS, Asks, Cost, llama_cpp
from _tool_tasks import Task


class Run(NamedTuple):
    """Several requests, with the seconds that they took, and the processor's."""

    costs: Sequence[Cost]
    wall: float
    cpu: float


@dataclass(frozen=True)
class Side:
    """One who answers: a task of a kind, or many of them, so many at once."""

    ask: Callable[[str, Task], Cost]
    at_once: Callable[[str, Sequence[Task], int], Run]


def here(asks: Asks) -> Side:
    """Who runs in this process."""
    return Side(lambda kind, task: asks[kind](task), lambda kind, tasks, clients: _at_once(asks, kind, tasks, clients))


def apart(model: Path, threads: int | None, slots: int = SLOTS, context: int = CONTEXT) -> Side:
    """llama.cpp's server, in a process that ends with this one."""
    pool = ProcessPoolExecutor(1, get_context("spawn"), _begin, (model, threads, slots, context))
    return Side(
        lambda kind, task: pool.submit(_ask, kind, task).result(),
        lambda kind, tasks, clients: pool.submit(_ask_at_once, kind, tasks, clients).result(),
    )


_THERE: Asks = {}  # of the other process, which has no other way to keep its server between two requests


def _begin(model: Path, threads: int | None, slots: int, context: int) -> None:
    _THERE.update(llama_cpp(model, threads, slots, context))


def _ask(kind: str, task: Task) -> Cost:
    return _THERE[kind](task)


def _ask_at_once(kind: str, tasks: Sequence[Task], clients: int) -> Run:
    return _at_once(_THERE, kind, tasks, clients)


def _at_once(asks: Asks, kind: str, tasks: Sequence[Task], clients: int) -> Run:
    with ThreadPoolExecutor(clients) as pool:
        began, cpu = time.perf_counter(), time.process_time()
        costs = list(pool.map(asks[kind], tasks))
        return Run(costs, time.perf_counter() - began, time.process_time() - cpu)
