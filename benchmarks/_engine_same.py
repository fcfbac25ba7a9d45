"""Whether the same request gets the same answer again: three rounds, the first of them cold, one request at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import toolgram
from _common import show
from _engine_peers import ours
from _engine_sides import Side, apart, here
from _tool_tasks import Task, tasks
from toolgram.engines.llama_cpp.engine import LlamaCpp

_ROUNDS = ("cold", "warm", "warm again")


def same(model: Path, requests: int, threads: int | None) -> None:
    """Print how many of so many greedy answers differ between rounds: ours, deterministic, and of llama.cpp's server.

    Tool calls come first, then texts without a grammar. The last of ours shares its memory among many requests, as an
    engine does whose context is long.
    """
    template = toolgram.ChatTemplate.from_gguf(model)
    chosen = [("call", task) for task in tasks()][:requests]
    chosen += [("text", task) for task in tasks()][: requests - len(chosen)]
    rows: list[list[object]] = []
    for name, options in (
        ("toolgram", {}),
        ("toolgram, memory shared", {"parallel": 1}),
        ("toolgram, deterministic", {"deterministic": True}),
    ):
        engine = LlamaCpp(model, threads=threads, **options)
        rows.append([name, *differences(here(ours(engine, template)), chosen)])
        engine.close()
    rows.append(["llama.cpp", *differences(apart(model, threads), chosen)])
    head = ["who", *(f"{one}, {other}" for one, other in combinations(_ROUNDS, 2))]
    show(f"Answers of {len(chosen)} that differ between two rounds", head, rows)


def differences(side: Side, chosen: Sequence[tuple[str, Task]]) -> list[int]:
    """For each two rounds how many answers differ."""
    rounds = [[side.ask(kind, task).text for kind, task in chosen] for _ in _ROUNDS]
    return [sum(a != b for a, b in zip(one, other, strict=True)) for one, other in combinations(rounds, 2)]
