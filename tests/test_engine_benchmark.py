"""The benchmark of the engine: its tasks are sound, it tells differences apart; many requests leave nothing behind."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import toolgram
from toolgram.engines.base import Chunk, Logprob, TokenLogprobs
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.models.catalog import default_model

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
tool_tasks: Any = import_module("_tool_tasks")
equality: Any = import_module("_engine_equality")
memory: Any = import_module("_engine_memory")
peers: Any = import_module("_engine_peers")
common: Any = import_module("_common")
sharing: Any = import_module("sharing")


def test_tasks_have_sound_tools_and_a_plan() -> None:
    tasks = tool_tasks.tasks()
    assert len(tasks) == 54
    for task in tasks:
        for tool in task.tools:
            jsonschema_rs.meta.validate(tool["function"]["parameters"])
    plan: toolgram.Plan = tasks[3].plan(common.CHATML)
    assert plan.constraint is not None
    assert tasks[3].question in plan.prompt


def said(*tokens: str, doubt: float = 2.0) -> list[Chunk]:
    """An answer in these tokens, each likelier than another one by `doubt`."""

    def told(piece: str) -> TokenLogprobs:
        chosen = Logprob(hash(piece), piece.encode(), -0.1)
        return TokenLogprobs(chosen, (chosen, Logprob(-1, b"?", -0.1 - doubt)))

    return [Chunk("", logprobs=(told(token),)) for token in tokens]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (said("a", "b"), said("a", "b"), "the same tokens"),
        (said("ab"), said("a", "b"), "the same text in other tokens"),
        (said("a", "b", "c"), said("a", "x", "c"), "another text"),
        (said("a", "b", "c"), said("a", "x", "c", doubt=0.1), "another text after a tie"),
        (said("a", "bit"), [*said("a"), *said("b", doubt=0.1), *said("y")], "another text after a tie"),
    ],
)
def test_differences_are_told_apart(one: list[Chunk], other: list[Chunk], expected: str) -> None:
    assert equality.difference(one, other, 0.5) == expected


def test_the_template_of_the_chat_layer_announces_tools_and_ends_at_a_name() -> None:
    plan: toolgram.Plan = tool_tasks.tasks()[0].plan(toolgram.ChatTemplate(peers.WITH_TOOLS, "", "<|im_end|>"))
    assert plan.style.name == "functionary_v3"
    assert plan.prompt.endswith(">>>")
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts('calculate_triangle_area\n{"base": 10, "height": 5}')


def test_hundreds_of_requests_leave_nothing() -> None:
    budget = 512
    engine = LlamaCpp(default_model(), context=256, parallel=memory.AT_ONCE, budget=budget, threads=1)
    slots: Any = engine._scheduler._slots  # pyright: ignore[reportPrivateUsage] - what is kept is not seen from outside
    asyncio.run(memory.many(engine, range(100)))
    before = memory.resident()
    asyncio.run(memory.many(engine, range(100, 400)))
    assert memory.resident() - before < 15_000_000
    engine._worker.submit(int).result()  # pyright: ignore[reportPrivateUsage] - when all that were left have ended
    assert slots._used == []
    assert len(slots._free) + len(slots._ended) == engine._model.sequences  # pyright: ignore[reportPrivateUsage]
    stored = {tuple(slot.tokens[:size]) for slot in slots._ended for size in range(1, len(slot.tokens) + 1)}
    assert 0 < len(stored) <= budget
    engine.close()


def test_what_two_clients_take_of_each_other_is_measured() -> None:
    engine = LlamaCpp(default_model(), context=512, parallel=sharing.SLOTS, threads=1)
    rows = asyncio.run(sharing.measured(engine, 1, 20))
    assert len(rows) == 4
    assert all(min(numbers) > 0 for _, *numbers in rows)
    engine.close()
