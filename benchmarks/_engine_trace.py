"""What the trace costs: the same calls with it and without, in turns, by processor time."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import toolgram
from _common import show
from _engine_census import LONGEST, bound
from _tool_tasks import Task
from toolgram.engines.base import Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Run:
    """A call: its text, and the processor seconds after its first chunk."""

    text: str
    decoding: float
    passes: int


def trace(engine: LlamaCpp, template: toolgram.ChatTemplate, tasks: Sequence[Task]) -> None:
    """Print what decoding costs with the trace against without: the least of some rounds for each call."""
    ratios: list[float] = []
    times = {False: 0.0, True: 0.0}
    passes = {False: 0, True: 0}
    equal = 0
    for task in tasks:
        plan = task.plan(template)
        best = {traced: _run(engine, plan, traced=traced) for traced in (False, True)}  # also reads the prompt
        for _ in range(_ROUNDS):
            for traced in best:
                best[traced] = min(best[traced], _run(engine, plan, traced=traced), key=lambda run: run.decoding)
        for traced, run in best.items():
            times[traced] += run.decoding
            passes[traced] += run.passes
        ratios.append(best[True].decoding / best[False].decoding)
        equal += best[True].text == best[False].text
    rows: list[list[object]] = [
        [name, 1000 * times[traced] / len(tasks), passes[traced] / len(tasks), times[traced] / times[False]]
        for name, traced in (("without", False), ("with the trace", True))
    ]
    head = ["", "decoding, ms of processor", "passes", "×"]
    show(f"The trace, on {len(tasks)} calls; the least of {_ROUNDS + 1} rounds each", head, rows)
    print(f"\nThe median of the calls is × {statistics.median(ratios):.3f}; {equal} of them have the same text.")


def _run(engine: LlamaCpp, plan: toolgram.Plan, *, traced: bool) -> _Run:
    return asyncio.run(_asked(engine, plan, Sampling(max_tokens=LONGEST, trace=traced)))


async def _asked(engine: LlamaCpp, plan: toolgram.Plan, sampling: Sampling) -> _Run:
    text, began, passes = "", 0.0, 0
    async for chunk in engine.generate(plan.prompt_parts, bound(engine, plan), sampling):
        began = began or time.process_time()
        text += chunk.text
        passes = chunk.usage.forward_passes if chunk.usage else passes
    return _Run(text, time.process_time() - began, passes)
