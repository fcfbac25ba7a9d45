"""Tools that run, and agents that run them to an answer: Python functions as tools of a model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgram.agent.tools import FunctionTool, InvalidTool, tool_of, tools_of, writes

if TYPE_CHECKING:
    from toolgram.agent.agent import Agent
    from toolgram.agent.calls import Tool, report_progress
    from toolgram.agent.runs import Limits, NoAnswer, Run

_LATER = {  # what needs anyio, and the engines
    "Agent": "agent",
    "Limits": "runs",
    "NoAnswer": "runs",
    "Run": "runs",
    "Tool": "calls",
    "report_progress": "calls",
}

__all__ = [
    "Agent",
    "FunctionTool",
    "InvalidTool",
    "Limits",
    "NoAnswer",
    "Run",
    "Tool",
    "report_progress",
    "tool_of",
    "tools_of",
    "writes",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
