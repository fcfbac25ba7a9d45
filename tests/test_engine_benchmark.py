"""The benchmark of the engine: its tasks are sound, and it tells differences apart. No model is run."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import toolgram
from toolgram.engines.base import Chunk, Logprob, TokenLogprobs

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
tool_tasks: Any = import_module("_tool_tasks")
equality: Any = import_module("_engine_equality")
common: Any = import_module("_common")


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
    ],
)
def test_differences_are_told_apart(one: list[Chunk], other: list[Chunk], expected: str) -> None:
    assert equality.difference(one, other) == expected
