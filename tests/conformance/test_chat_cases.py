"""Real outputs of real models, with the message expected: whole, by characters and in random pieces.

The data is read in place (../shared beside the checkout); without it these tests skip.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import toolgram
from toolgram import Message

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = SHARED / "conformance" / "chat_cases.jsonl"
needs_cases = pytest.mark.skipif(not CASES.exists(), reason=f"{CASES.name} is not beside this checkout")

# Cases whose expected message we hold to be wrong, by reason. A case that does come out must be taken off the list.
NOT_READ = {
    "a call is expected inside reasoning that is never closed: a mark inside reasoning is no call": frozenset({11}),
    "reasoning is expected of a <think> that only repeats the one in the prompt": frozenset({14}),
    "a string of tags is expected, though they read as the object that the schema admits too": frozenset({333}),
    "calls of tools that were not offered are expected to be lost; we keep them as content": frozenset({430, 431}),
}
KNOWN = {case: reason for reason, cases in NOT_READ.items() for case in cases}


@cache
def cases() -> list[dict[str, Any]]:
    """All rows of the data."""
    return [json.loads(line) for line in CASES.read_text().splitlines()] if CASES.exists() else []


@cache
def template(name: str) -> toolgram.ChatTemplate:
    """A template of the data."""
    return toolgram.ChatTemplate.from_file(SHARED / "templates" / name)


def body(request: dict[str, Any]) -> dict[str, Any]:
    """The request as a chat-completions body."""
    made: dict[str, Any] = {
        "messages": request["messages"],
        "reasoning_format": "none" if request["reasoning_format"] == "none" else "auto",
        "chat_template_kwargs": {"enable_thinking": request["enable_thinking"]},
        "continue_final_message": request["continue_final_message"] is not None,
        "parallel_tool_calls": request["parallel_tool_calls"],
    }
    if request["tools"]:
        made |= {"tools": request["tools"], "tool_choice": request["tool_choice"]}
    if schema := request["json_schema"]:
        made["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return made


def plain(message: dict[str, Any] | Message) -> tuple[Any, ...]:
    """What is compared: texts without white space around them, arguments as JSON."""
    if isinstance(message, Message):
        calls = [(call.name, parsed(call.arguments)) for call in message.tool_calls]
        return ((message.content or "").strip(), (message.reasoning or "").strip(), calls)
    calls = [(call["name"], parsed(call["arguments"])) for call in message.get("tool_calls") or []]
    return ((message.get("content") or "").strip(), (message.get("reasoning_content") or "").strip(), calls)


def parsed(arguments: str) -> Any:
    """The arguments as a value, or as they are where they are cut off."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def in_pieces(plan: toolgram.Plan, text: str, rng: random.Random, longest: int) -> Message:
    """The message that a text says, fed in pieces."""
    reader, events, at = plan.reader(), [], 0
    while at < len(text):
        size = rng.randint(1, longest)
        events += reader.feed(text[at : at + size])
        at += size
    return Message.from_events([*events, *reader.finish()])


@needs_cases
def test_the_data_is_there() -> None:
    assert len(cases()) > 250


@needs_cases
@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case['id']}-{case['template']}")
def test_an_output_reads_to_its_message(case: dict[str, Any]) -> None:
    try:
        plan = toolgram.plan(body(case["request"]), template(case["template"]))
    except toolgram.ToolgramError:
        if case["id"] in KNOWN:
            return
        raise
    message = plan.parse(case["output"])
    rng = random.Random(case["id"])
    for longest in (1, 3, 9):
        assert in_pieces(plan, case["output"], rng, longest) == message
    read = plain(message) == plain(case["expect"])
    assert read != (case["id"] in KNOWN), (KNOWN.get(case["id"]), message, case["expect"])
