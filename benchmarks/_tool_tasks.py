"""Tasks that want a tool called: 54 questions, each with one to five of 27 tools, as `_tool_tasks.json` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolgram

_FILE = Path(__file__).with_name("_tool_tasks.json")


@dataclass(frozen=True)
class Task:
    """A question, and the tools that may be called, in OpenAI's shape."""

    question: str
    tools: tuple[Mapping[str, Any], ...]

    def request(self, **options: Any) -> dict[str, Any]:
        """A chat-completions body that wants one call, unless the options say otherwise."""
        messages = [{"role": "user", "content": self.question}]
        wanted = {"tool_choice": "required", "parallel_tool_calls": False}
        return {"messages": messages, "tools": list(self.tools), **wanted, **options}

    def plan(self, template: toolgram.ChatTemplate, **options: Any) -> toolgram.Plan:
        """The request as a prompt and a grammar."""
        return toolgram.plan(self.request(**options), template)


def tasks() -> Sequence[Task]:
    """All tasks, always in the same order."""
    stored = json.loads(_FILE.read_text(encoding="utf-8"))
    tools = {tool["name"]: {"type": "function", "function": tool} for tool in stored["tools"]}
    return [Task(task["question"], tuple(tools[name] for name in task["tools"])) for task in stored["tasks"]]
