"""Searching tools: whether the one that a question wants is among those shown, and what is saved.

The 54 questions of `_tool_tasks` each name the tools that may answer them; all these stand among those of the shop
(`_common.tools`) and, where conformance/tool_sets.jsonl is there (see `_data.py`), those of public MCP servers.
`found` is the share of questions of which a tool that may answer them is among so many of the best by BM25, with the
question as the query. The prompt is that of SmolLM2's template.

    python benchmarks/tool_search.py
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import toolgram
from _common import CHATML, show, tools
from _tool_tasks import tasks
from agents import SHARED, tool_sets
from toolgram.agent.search import Index

COUNTS = (1, 3, 5, 8, 16)


@dataclass(frozen=True)
class Offered:
    """A tool that is only searched."""

    source: Mapping[str, Any]
    writes = False

    @property
    def name(self) -> str:
        return self.source["function"]["name"]

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        return dict(self.source)

    async def call(self, arguments: str) -> Any:
        """Nothing is run here."""
        raise NotImplementedError


def main() -> None:
    """The tables."""
    asked = tasks()
    own = [tool for task in asked for tool in task.tools]
    sets: dict[str, Sequence[Mapping[str, Any]]] = {"the questions'": own, "and a shop's": [*own, *tools(30)]}
    if (SHARED / "conformance" / "tool_sets.jsonl").exists():
        others = [tool for listed in tool_sets().values() for tool in listed]
        sets["and those of servers and agents"] = [*own, *tools(30), *others]
    found: list[tuple[Any, ...]] = []
    costs: list[tuple[Any, ...]] = []
    for name, many in sets.items():
        offered = list({tool.name: tool for tool in map(Offered, many)}.values())
        start = time.process_time()
        index = Index(offered)
        made = time.process_time() - start
        start = time.process_time()
        ranks = [[each["name"] for each in index.best(task.question, max(COUNTS))] for task in asked]
        searched = (time.process_time() - start) / len(asked)
        wanted = [{tool["function"]["name"] for tool in task.tools} for task in asked]
        shares = [sum(bool(want & set(rank[:most])) for want, rank in zip(wanted, ranks, strict=True)) / len(asked)
                  for most in COUNTS]  # fmt: skip
        found.append((name, len(offered), *shares))
        named = {tool.name: tool.source for tool in offered}
        few = [
            len(_prompt(task.question, [named[each] for each in rank[:8]]))
            for task, rank in zip(asked, ranks, strict=True)
        ]
        costs.append((name, 1000 * made, 1000 * searched, len(_prompt(asked[0].question, list(named.values()))),
                      sum(few) // len(few)))  # fmt: skip
    show("Found among the best", ("tools", "count", *map(str, COUNTS)), found)
    head = ("tools", "index, ms", "search, ms", "prompt with all, characters", "with the best 8")
    show("What it costs, in processor time, and saves", head, costs)


def _prompt(question: str, shown: Sequence[Mapping[str, Any]]) -> str:
    body = {"messages": [{"role": "user", "content": question}], "tools": list(shown)}
    return toolgram.plan(body, CHATML, style="hermes_2_pro").prompt


if __name__ == "__main__":
    main()
