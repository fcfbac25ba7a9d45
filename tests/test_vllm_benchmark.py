"""The benchmark beside vLLM: what it asks for, and how it counts what comes. No time is asserted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
import _vllm_asks as asks
from _tool_tasks import tasks

TASK = tasks()[0]
NAME = TASK.tools[0]["function"]["name"]
USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def answer(*deltas: dict[str, Any], finish: str = "stop", usage: dict[str, Any] = USAGE) -> asks.Answer:
    events = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    events += [{"choices": [{"delta": {}, "finish_reason": finish}]}, usage]
    lines = [f"data: {json.dumps(event)}\n".encode() for event in events]
    return asks._read(lines, asks.body("required", TASK, "m"), 0.1, 0.2)


def call(name: str, *arguments: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"name": name, "arguments": ""}, *({"arguments": text} for text in arguments)]
    return [{"tool_calls": [{"index": 0, "function": part}]} for part in parts]


@pytest.mark.parametrize(
    ("deltas", "finish", "outcome"),
    [
        (call(NAME, '{"base": 10,', ' "height": 5}'), "tool_calls", "call"),
        (call(NAME, '{"base": "ten", "height": 5}'), "tool_calls", "invalid call"),
        (call(NAME, '{"base": 10'), "tool_calls", "invalid call"),
        (call("other", "{}"), "tool_calls", "invalid call"),
        (call(NAME, '{"base": 10'), "length", "cut off"),
        ([{"content": "It is 25."}], "stop", "text"),
    ],
)
def test_what_came(deltas: list[dict[str, Any]], finish: str, outcome: str) -> None:
    found = answer(*deltas, finish=finish)
    assert (found.outcome, found.prompt_tokens, found.tokens) == (outcome, 7, 3)


def test_what_ends_without_its_cost_is_an_error() -> None:
    assert answer({"content": "It"}, usage={"error": {"message": "no"}, "choices": []}).outcome == "error"


def test_the_kinds_of_questions() -> None:
    assert "tools" not in asks.body("text", TASK, "m")
    strict = asks.body("required, strict", TASK, "m")
    assert strict["tool_choice"] == "required"
    assert all(tool["function"]["strict"] for tool in strict["tools"])
    assert not any("strict" in tool["function"] for tool in TASK.tools)
