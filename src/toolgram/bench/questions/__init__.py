"""The questions, by kind, with the tools that they offer and the calls, or the answer, that are right.

An argument whose name ends with "?" may be left out. Where several values are right they are listed under "any".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

KINDS = ("simple", "choice", "several", "optional", "numbers", "dates", "enums", "nested", "none", "schema")
"""One tool; one of several; several calls; arguments that need not be there; numbers and units; dates; words out of a
list; objects inside objects; no tool fits; an answer in a schema."""


@dataclass(frozen=True)
class Expected:
    """A call that is right."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """A question, the tools that it offers, and the calls that are right; with a `schema`, the answer that is."""

    id: str
    kind: str
    ask: str
    tools: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[Expected, ...] = ()
    schema: Mapping[str, Any] | None = None
    answer: Any = None

    def body(self, tool_choice: str) -> dict[str, Any]:
        """The chat-completions body that asks it."""
        messages = [{"role": "user", "content": self.ask}]
        if self.schema is not None:
            named = {"name": "answer", "schema": self.schema}
            return {"messages": messages, "response_format": {"type": "json_schema", "json_schema": named}}
        return {"messages": messages, "tools": list(self.tools), "tool_choice": tool_choice}


@cache
def questions(kind: str) -> tuple[Question, ...]:
    """The questions of a kind."""
    return tuple(_read(kind))


def _read(kind: str) -> Iterator[Question]:
    tools = _json("tools")
    for number, one in enumerate(_json(kind), 1):
        offered = tuple(
            {"type": "function", "function": {"name": name, **tools[name]}} for name in one.get("tools", ())
        )
        calls = tuple(Expected(call["name"], call["arguments"]) for call in one.get("calls", ()))
        yield Question(f"{kind}-{number}", kind, one["ask"], offered, calls, one.get("schema"), one.get("answer"))


def _json(name: str) -> Any:
    return json.loads(files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
