"""How many tokens of a tool call the grammar forces, and what not sampling them saves."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence

import toolgram
from _common import show
from _tool_tasks import Task
from toolgram.engines.base import Sampling, SupportsGrammar, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp

LONGEST = 128  # tokens of a call


def usage_of(engine: LlamaCpp, plan: toolgram.Plan, sampling: Sampling) -> Usage:
    """What one generation cost."""
    return asyncio.run(_usage(engine, plan, sampling))


async def _usage(engine: LlamaCpp, plan: toolgram.Plan, sampling: Sampling) -> Usage:
    usage = Usage()
    async for chunk in engine.generate(plan.prompt_parts, bound(engine, plan), sampling):
        usage = chunk.usage or usage
    return usage


def bound(engine: LlamaCpp, plan: toolgram.Plan) -> SupportsGrammar | None:
    """The constraint of a plan with markers as tokens of the engine's model."""
    return None if plan.constraint is None else plan.constraint.bind(engine.vocabulary)


def census(engine: LlamaCpp, template: toolgram.ChatTemplate, tasks: Sequence[Task]) -> list[Usage]:
    """Print what the grammar forces in the calls of these tasks, and what each of them cost."""
    sampling = Sampling(max_tokens=LONGEST)
    usages = [usage_of(engine, task.plan(template), sampling) for task in tasks]
    rows = [
        _row("tokens of a call", [usage.completion_tokens for usage in usages]),
        _row("of them forced", [usage.forced_tokens for usage in usages]),
        _row("forced, per cent", [100 * usage.forced_tokens / usage.completion_tokens for usage in usages]),
        _row("forward passes", [usage.forward_passes for usage in usages]),
        # each token that is sampled costs a pass
        _row("saved, per cent", [100 - 100 * usage.forward_passes / usage.completion_tokens for usage in usages]),
    ]
    show(f"What the grammar forces, on {len(usages)} calls", ["", "least", "median", "mean", "most", "all"], rows)
    return usages


def _row(name: str, values: Sequence[float]) -> list[object]:
    total = None if "per cent" in name else sum(values)
    return [name, *map(float, (min(values), statistics.median(values), statistics.fmean(values), max(values))), total]
