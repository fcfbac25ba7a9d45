"""Whether the engine's memory grows with the number of requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import toolgram
from _common import show
from toolgram.engines.base import Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.grammar.constraint import Constraint

AT_ONCE = 16
PARTS = 10


def memory(engine: LlamaCpp, requests: int) -> None:
    """Print the memory of this process after each tenth of so many requests."""
    sizes = [resident()]
    for part in range(PARTS):
        asyncio.run(many(engine, range(part * requests // PARTS, (part + 1) * requests // PARTS)))
        sizes.append(resident())
    rows = [[part * requests // PARTS, size / 1e6] for part, size in enumerate(sizes)]
    show(f"Memory of the process over {requests} requests, {AT_ONCE} at once", ["requests", "MB"], rows)


async def many(engine: LlamaCpp, numbers: Sequence[int]) -> None:
    """A short request for each number, all with other prompts and grammars; some have none, some are left early."""
    left = iter(numbers)
    await asyncio.gather(*(_client(engine, left) for _ in range(AT_ONCE)))


async def _client(engine: LlamaCpp, numbers: Iterator[int]) -> None:
    for number in numbers:
        constraint = Constraint(toolgram.schema_grammar({"const": f"a{number}"})) if number % 3 else None
        sampling = Sampling(max_tokens=2, temperature=1.0, seed=number)
        async with aclosing(engine.generate(((f"{number}", False),), constraint, sampling)) as chunks:
            async for _ in chunks:
                if number % 5 == 0:
                    break


def resident() -> int:
    """The bytes of memory that this process has; 0 if the system does not report it (Linux does)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
