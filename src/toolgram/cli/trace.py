"""`toolgram explain --trace`: what the model wrote, and what it would have written without the grammar."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolgram.chat import Reply, generate
from toolgram.cli.inputs import BadInput
from toolgram.engines.base import Sampling, TracePoint
from toolgram.engines.llama_cpp.bundled_server import LlamaObject
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.planning.plan import Plan

_MOST_TOKENS = 512
_BEFORE = 24  # characters of the text before a token


def trace_plan(plan: Plan, engine: LlamaCpp | LlamaObject) -> None:
    """Runs the plan, greedily; prints the raw text, where the model wanted another token, and the divergences.

    Raises BadInput where nothing is constrained, or the engine records no trace.
    """
    if plan.constraint is None:
        raise BadInput("there is nothing to trace: without tools or a schema the model alone writes the answer")
    if isinstance(engine, LlamaObject):
        raise BadInput("llama.cpp's own server, which runs here, does not tell what the grammar ruled out")
    try:
        reply = asyncio.run(_run(plan, engine))
        _print(reply, engine)
    finally:
        engine.close()


def _print(reply: Reply, engine: LlamaCpp) -> None:
    others = [point for point in reply.trace if point.preferred != point.token]
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print("# Raw text", style="bold")
    console.print(reply.text)
    console.print("\n# What the model alone would have written", style="bold")
    sampled = sum(not point.forced for point in reply.trace)
    console.print(f"{sampled} of {reply.usage.completion_tokens} tokens were sampled, {len(others)} would be others")
    if others:
        console.print(_table(reply, others, engine))
    console.print("\n# Divergences", style="bold")
    console.print("\n".join(_divergences(reply)) or "none: no number and no bounded string was cut short")


async def _run(plan: Plan, engine: LlamaCpp) -> Reply:
    return await generate(plan, engine, Sampling(max_tokens=_MOST_TOKENS, trace=True))


def _table(reply: Reply, points: Sequence[TracePoint], engine: LlamaCpp) -> Table:
    """A line for each token; white space is shown as Python writes it."""
    table = Table(box=None, pad_edge=False)
    for column in ("after", "written", "preferred", "ruled out"):
        table.add_column(column, justify="right" if column in ("after", "ruled out") else "left", no_wrap=True)
    for point in points:
        before = _shown(reply.text[max(point.offset - _BEFORE, 0) : point.offset])
        written, preferred = engine.detokenize([point.token]), point.piece.decode(errors="replace")
        table.add_row(before, _shown(written), _shown(preferred), f"{point.removed:.0%}")
    return table


def _shown(text: str) -> Text:
    return Text(text.encode("unicode_escape").decode() if not text.isprintable() else text)


def _divergences(reply: Reply) -> Iterator[str]:
    for one in reply.divergences:
        where = "the answer" if one.call is None else f"{reply.message.tool_calls[one.call].name} (call {one.call})"
        yield f"{where}, {one.pointer or 'the whole'}: instead it was about to write {one.preferred!r}"
