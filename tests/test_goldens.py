"""What each style makes of a request, in files that a person can read: `pytest --update-golden` rewrites them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import toolgram
from situations import CHATML, GENERIC, tool
from toolgram import Message, ToolCall

WEATHER = tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["C", "F"]},
        },
        "required": ["city"],
    },
)
TIME = tool("get_time", None)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
ASK = {"role": "user", "content": "What is the weather in Paris, and what time is it?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}

CASES: dict[str, tuple[dict[str, Any], Message]] = {
    "calls": (
        {"messages": [ASK], "tools": [WEATHER, TIME], "tool_choice": "required"},
        Message(None, None, (ToolCall("get_weather", '{"city": "Paris", "days": 3}'), ToolCall("get_time", "{}"))),
    ),
    "after-a-result": (
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                ASK,
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "call_1", "content": "18 °C"},
            ],
            "tools": [WEATHER],
        },
        Message("It is 18 °C in Paris."),
    ),
    "schema-or-call": (
        {
            "messages": [{"role": "user", "content": "Who is Ada?"}],
            "tools": [WEATHER],
            "parallel_tool_calls": False,
            "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}},
        },
        Message('{"name": "Ada Lovelace", "age": 36}'),
    ),
}

OWN_WAYS = {
    "schema-or-own-call": '{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Paris"\n  }\n}',
    "schema-in-a-fence": '```json\n{\n  "name": "Ada Lovelace",\n  "age": 36\n}\n```',
}


@pytest.mark.parametrize("style", GENERIC)
@pytest.mark.parametrize("case", CASES)
def test_a_style(style: str, case: str, golden: Callable[[str, str], None]) -> None:
    request, message = CASES[case]
    plan = toolgram.plan(request, CHATML, style=style, now=datetime(2026, 11, 20))
    output = plan.write(message)
    assert output is not None
    _keep(plan, request, output, f"{style}/{case}", golden)


@pytest.mark.parametrize("case", OWN_WAYS)
def test_calls_and_answers_in_the_model_s_own_way(case: str, golden: Callable[[str, str], None]) -> None:
    request, _ = CASES["schema-or-call"]
    _keep(toolgram.plan(request, CHATML, style="qwen_coder"), request, OWN_WAYS[case], f"qwen_coder/{case}", golden)


def _keep(
    plan: toolgram.Plan, request: dict[str, Any], output: str, folder: str, golden: Callable[[str, str], None]
) -> None:
    """What the plan makes of the request, and of an output."""
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(output)
    reader = plan.reader()
    half = len(output) // 2
    events = [*reader.feed(output[:half]), *reader.feed(output[half:]), *reader.finish()]

    def keep(name: str, text: str) -> None:
        golden(f"{folder}/{name}", text)

    keep("request.json", _json(request, indent=2))
    keep("prompt.txt", plan.prompt)
    keep("grammar.gbnf", plan.constraint.grammar.to("gbnf"))
    keep("output.txt", output)
    keep("events.jsonl", "".join(_json({type(e).__name__: dataclasses.asdict(e)}) for e in events))
    keep("message.json", _json(plan.parse(output).to_openai(), indent=2))


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
