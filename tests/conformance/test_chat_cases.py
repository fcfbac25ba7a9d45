"""Real outputs of real models, with the message expected: whole, by characters and in random pieces.

The data is read in place (../shared beside the checkout); without it these tests skip.
"""

from __future__ import annotations

import json
import random
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from toolgram import Message

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = SHARED / "conformance" / "chat_cases.jsonl"
NOW = datetime(2026, 11, 20)  # of both turns: a day may begin between them
needs_cases = pytest.mark.skipif(not CASES.exists(), reason=f"{CASES.name} is not beside this checkout")

# Cases whose expected message we hold to be wrong, by reason. A case that does come out must be taken off the list.
NOT_READ = {
    "reasoning is expected of a <think> that only repeats the one in the prompt": frozenset({14}),
    "a string of tags is expected, though they read as the object that the schema admits too": frozenset({333}),
    "calls of tools that were not offered are expected to be lost; we keep them as content": frozenset({430, 431}),
}
# Cases whose output the grammar does not admit, as it is not in the one spelling of the format and the request.
NOT_ADMITTED = {
    "it stops early": frozenset({49, 60, 255, 271}),
    "text before a required call": frozenset({18, 23}),
    "no line break before a call": frozenset({343}),
    "no line break behind the arguments": frozenset({96, 97, 363, 368}),
    "JSON without spaces": frozenset({28, 29, 156, 157}),
    "words of JSON among those of Python": frozenset({247, 248, 263, 264}),
    "parameters that must be there, in another order than the schema has them": frozenset({127, 128}),
    "an answer of no text, with its tags": frozenset({215, 217, 218, 219}),
    "a fence around the answer": frozenset({31, 404}),
}


def listed(lists: dict[str, frozenset[int]], case: dict[str, Any]) -> bool:
    """Whether a case is on one of these lists."""
    return any(case["id"] in cases for cases in lists.values())


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


each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case['id']}-{case['template']}")


@needs_cases
@each_case
def test_an_output_reads_to_its_message(case: dict[str, Any]) -> None:
    plan = toolgram.plan(body(case["request"]), template(case["template"]))
    message = plan.parse(case["output"])
    rng = random.Random(case["id"])
    for longest in (1, 3, 9):
        assert in_pieces(plan, case["output"], rng, longest) == message
    read = plain(message) == plain(case["expect"])
    assert read != listed(NOT_READ, case), (message, case["expect"])


@needs_cases
@each_case
def test_what_was_read_can_be_written_and_is_admitted_in_every_dialect(case: dict[str, Any]) -> None:
    plan = toolgram.plan(body(case["request"]), template(case["template"]))
    if plan.constraint is None:
        return
    message = plan.parse(case["output"])
    written = plan.write(message) if plan.writable(message) else None
    grammar = plan.constraint.grammar
    assert grammar.accepts(case["output"]) != listed(NOT_ADMITTED, case), written
    texts = {text for text in (case["output"], written) if text is not None and grammar.accepts(text)}
    assert written is None or written in texts
    if texts:
        assert all(lark_accepts(grammar.to("lark"), text) for text in texts)
        assert all(ebnf_accepts(grammar.to("ebnf"), text) for text in texts)
        assert gbnf_accepted(grammar.to("gbnf"), texts) == texts


@needs_cases
@each_case
def test_what_was_read_is_rendered_as_it_was_written(case: dict[str, Any]) -> None:
    if not case["rerender_matches"]:
        return
    request = body(case["request"])
    plan = toolgram.plan(request, template(case["template"]), now=NOW)
    turn = plan.parse(case["output"]).to_openai()
    for index, call in enumerate(turn.get("tool_calls", ())):
        call.setdefault("id", f"call0000{index}")
    after = request | {"messages": [*request["messages"], turn], "add_generation_prompt": False}
    again = toolgram.plan(after, template(case["template"]), now=NOW).prompt
    assert again.startswith(plan.prompt + case["output"])
