"""Many tools: a model is shown those that fit what is asked, and a tool that finds others.

What fits is found by BM25 over names, descriptions and parameters (Robertson and Zaragoza, 2009), as bm25s has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolgram.agent.calls import CallFailed, Tool
from toolgram.agent.results import shortened
from toolgram.agent.tools import InvalidTool

NAME = "search_tools"
_FOUND = 5  # tools that one search finds
_ABOUT = 200  # characters of a description in what is found
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
_PLURAL = re.compile(r"(?<=[a-z]{3})s$")


class Index:
    """Finds tools by words."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Raises InvalidTool where bm25s is not installed."""
        try:
            import bm25s  # pyright: ignore[reportMissingTypeStubs] - it has none
        except ImportError as error:
            raise InvalidTool(
                "to search tools needs a package that is not installed: pip install 'toolgram[search]'"
            ) from error
        self._functions: list[Mapping[str, Any]] = [tool.to_openai()["function"] for tool in tools]
        self._ranking: Any = bm25s.BM25()
        self._ranking.index([_words(_said(each)) or [NAME] for each in self._functions], show_progress=False)

    def best(self, query: str, most: int) -> list[Mapping[str, Any]]:
        """The functions that fit best, the best first; none that shares no word with the query."""
        words = _words(query)
        if not words:
            return []
        scores = self._ranking.get_scores(words)
        order = sorted(range(len(self._functions)), key=lambda at: -scores[at])
        return [self._functions[at] for at in order[:most] if scores[at] > 0]


def _said(function: Mapping[str, Any]) -> str:
    """What is said of a function; its name counts twice."""
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Any]", parameters.get("properties") or {})
    about = (
        cast("Mapping[str, Any]", each).get("description") for each in properties.values() if isinstance(each, Mapping)
    )
    said = (function["name"], function["name"], function.get("description"), *properties, *about)
    return " ".join(str(each) for each in said if each)


def _words(text: str) -> list[str]:
    """The words in small letters; what is joined in a name stands apart, and a plural is as its singular."""
    return [_PLURAL.sub("", word.lower()) for word in _WORDS.findall(text)]


@dataclass
class Shown:
    """The tools that a model is shown: the best for what it was asked, those that it called, and those it found.

    There are `most` at once beside the search, the latest found.
    """

    tools: Mapping[str, Tool]
    index: Index
    most: int
    names: dict[str, None] = field(default_factory=dict[str, None])

    name = NAME
    writes = False

    def add(self, names: Iterable[str]) -> None:
        """Show these too."""
        for name in names:
            if name in self.tools:
                self.names.pop(name, None)
                self.names[name] = None
        for name in list(self.names)[: -self.most]:
            del self.names[name]

    def read(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Show what fits the last thing that the user said, and what was called."""
        said = [_said_in(each["content"]) for each in messages if each.get("role") == "user"]
        self.add(each["name"] for each in reversed(self.index.best(said[-1] if said else "", self.most)))
        calls = (call for each in messages for call in each.get("tool_calls") or ())
        self.add(call["function"]["name"] for call in calls if "function" in call)

    def now(self) -> dict[str, Tool]:
        """The tools to show, and this one."""
        return {**{name: self.tools[name] for name in self.names}, self.name: self}

    def to_openai(self) -> dict[str, Any]:
        """The search in the shape of a chat-completions request."""
        about = f"Find tools. There are {len(self.tools)}; what is found can be called from the next turn on."
        query = {"type": "string", "description": "What the tool is to do, in a few words."}
        parameters = {"type": "object", "properties": {"query": query}, "required": ["query"]}
        return {"type": "function", "function": {"name": self.name, "description": about, "parameters": parameters}}

    async def call(self, arguments: str) -> str:
        """What was found, a line for each."""
        try:
            query = str(json.loads(arguments)["query"])
        except (ValueError, KeyError, TypeError) as error:
            raise CallFailed('The arguments must be {"query": "…"}') from error
        found = self.index.best(query, min(_FOUND, self.most))
        self.add(each["name"] for each in reversed(found))
        lines = (f"{each['name']}: {shortened(each.get('description') or '', _ABOUT)}" for each in found)
        return "\n".join(lines) or "There is no such tool."


def _said_in(content: Any) -> str:
    """What a message says: its text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = (cast("Mapping[str, Any]", part).get("text") for part in parts if isinstance(part, dict))
    return " ".join(text for text in texts if isinstance(text, str))
