"""The JSON Schema of a thoughtful_steps turn as in 2024: one call, and a required property that is nowhere."""

from __future__ import annotations

from typing import Any

ANY_CALL: dict[str, Any] = {
    "properties": {
        "name": {"title": "Name of the tool to call", "type": "string"},
        "arguments": {"title": "Arguments to pass to the tool", "type": "object"},
    },
    "required": ["name", "arguments"],
}


def turn_schema(call: Any, result: Any) -> dict[str, Any]:
    """A thought, then a call or a result, in the schemas given."""
    steps = [
        {"properties": {"tool_calls": {"prefixItems": [call]}}, "required": ["tool_calls"]},
        {"title": "Result (achieving original goal)", "properties": {"result": result}, "required": ["result"]},
    ]
    return {
        "type": "object",
        "properties": {
            "thought_about_next_step_only": {"title": "Thought about next step", "type": "string"},
            "next_step": {
                "title": "Next Step: either a result or one or more tool calls to achieve the original goal",
                "oneOf": steps,
            },
        },
        "required": ["original_goal", "thought_about_next_step_only", "next_step"],
    }
