"""Requests and tools that several probes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgram.doctor.probe import Ask

Json = dict[str, Any]


def tool(name: str, about: str, parameters: Mapping[str, Json], *, strict: bool = False) -> Json:
    """A tool in OpenAI's shape, all of whose parameters are required."""
    schema = {"type": "object", "properties": dict(parameters), "required": list(parameters)}
    more = {"strict": True} if strict else {}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema, **more}}


def said(text: str, *tools: Json, system: str = "", **more: Any) -> Json:
    """The body of a conversation in which a user says this; `more` are fields of it."""
    messages = [{"role": "system", "content": system}] if system else []
    body: Json = {"messages": [*messages, {"role": "user", "content": text}], **more}
    return {**body, "tools": list(tools)} if tools else body


def in_schema(schema: Json) -> Json:
    """The response format of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


WEATHER = tool("get_weather", "Get the weather of a city.", {"city": {"type": "string"}, "days": {"type": "integer"}})
TIMER = tool("set_timer", "Start a timer.", {"minutes": {"type": "integer"}})

CAPITAL = Ask(said("What is the capital of France? Answer with one word."))
COUNT = Ask(said("Count from one to ten, with commas, as in: one, two, three"), max_tokens=64)
PUZZLE = Ask(said("Anna is older than Ben, and Ben is older than Carl. Who is the youngest? Think about it first."))
RAIN = Ask(said("What will the weather be in Paris for 3 days?", WEATHER, tool_choice="required"))
RAIN_AUTO = Ask(said("What will the weather be in Paris for 3 days?", WEATHER))
GOODBYE = Ask(said("Thank you, that was all. Say goodbye.", WEATHER))
