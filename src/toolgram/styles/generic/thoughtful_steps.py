"""The style in which the model writes one sentence of reasoning, then a call or an answer, all in one JSON object.

A turn::

    {"thought_about_next_step_only": "The weather is needed.", "next_step": {"tool_calls": [{"name": "get_weather",
    "arguments": {"city": "Paris"}}]}}

(on one line), or `{"result": …}` as the next step. It needs no special tokens and no knowledge of tags.
"""

from __future__ import annotations

from typing import Any

from toolgram.styles.base import Announcement, ToolStyle, answer_prompt, tool_list
from toolgram.wire.format import Alt, Arguments, Array, Call, Content, Name, Object, Reasoning, WireFormat

_CALL = Object(("name", Name()), ("arguments", Arguments()))

WIRE = WireFormat(
    Object(
        ("thought_about_next_step_only", Reasoning()),
        ("next_step", Alt(Object(("tool_calls", Array(Call(_CALL)))), Object(("result", Content())))),
    )
)

# The titles are worded as in the 2024 profile; models take them as instructions.
_THOUGHT = {"title": "Thought about next step", "type": "string"}
_CALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"title": "Name of the tool to call", "type": "string"},
        "arguments": {"title": "Arguments to pass to the tool", "type": "object"},
    },
    "required": ["name", "arguments"],
}


def turn_schema(result: Any, *, parallel: bool) -> Any:
    """The JSON Schema of a turn, which is shown to the model; `result` is the schema of the answer."""
    calls: dict[str, Any] = {"type": "array", "items": _CALL_SCHEMA, "minItems": 1}
    if not parallel:
        calls["maxItems"] = 1
    return {
        "type": "object",
        "properties": {
            "thought_about_next_step_only": _THOUGHT,
            "next_step": {
                "title": "Next Step: either a result or one or more tool calls to achieve the original goal",
                "oneOf": [
                    {"type": "object", "properties": {"tool_calls": calls}, "required": ["tool_calls"]},
                    {
                        "title": "Result (achieving original goal)",
                        "type": "object",
                        "properties": {"result": result},
                        "required": ["result"],
                    },
                ],
            },
        },
        "required": ["thought_about_next_step_only", "next_step"],
    }


def announce_turn(tools: tuple[Any, ...], schema: Any) -> str:
    """The format prompt: the tools, and the schema of a turn."""
    listed = f"You are a function calling AI model.\nHere are the tools available:\n{tool_list(tools)}"
    return f"{listed}\n{answer_prompt(schema)}"


def _announce(about: Announcement) -> str:
    result = about.answer if about.has_answer else {"type": "string"}
    return announce_turn(about.tools, turn_schema(result, parallel=about.parallel))


THOUGHTFUL_STEPS = ToolStyle(
    "thoughtful_steps", WIRE, "reasoning, then calls or a result, in one JSON object", _announce, framed=True
)
