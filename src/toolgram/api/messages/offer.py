"""The tools of a conversation: those that it begins with, and those that are found, added and removed on the way.

A tool that is deferred is not announced before the conversation: what stands there stays as it was when the tool is
found, and with it all of the prompt that was read. It is shown where the result of a client's search refers to it, or
where a system turn adds it, and may be called from there on (docs.anthropic.com, Tool search tool).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from toolgram.api.messages.body import AnthropicTool, DefinedTool, OtherTool, ReferredTool
from toolgram.api.messages.tools import tool_for
from toolgram.conversation.request import Tool, distinct

_SEARCH = "tool_search_tool"  # Anthropic runs it


class Offer:
    """What a body's list of tools offers, and what becomes of it as the conversation is read in order."""

    def __init__(self, tools: Sequence[AnthropicTool | OtherTool]) -> None:
        self.left_out: list[str] = []
        known: list[Tool] = []
        finds = not any(isinstance(tool, OtherTool) and tool.type.startswith(_SEARCH) for tool in tools)
        for i, tool in enumerate(tools):
            if (made := tool_for(tool, f"/tools/{i}")) is None:
                self.left_out.append(f"tools.{tool.type}")
            else:
                known.append(replace(made, announced=not (finds and tool.defer_loading)))
        self._tools = {tool.name: tool for tool in distinct(known)}
        self._callable = {tool.name for tool in known if tool.announced}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model was shown: all before the conversation, if none was."""
        shown = tuple(tool for tool in self._tools.values() if tool.announced or tool.name in self._callable)
        return (
            shown if any(tool.announced for tool in shown) else tuple(replace(tool, announced=True) for tool in shown)
        )

    @property
    def removed(self) -> bool:
        """Whether one of them may not be called any more."""
        return any(tool.name not in self._callable for tool in self.tools)

    @property
    def callable(self) -> tuple[str, ...]:
        """The names of those that may be called."""
        return tuple(tool.name for tool in self.tools if tool.name in self._callable)

    def found(self, name: str) -> str:
        """What the model is told of a tool that a search found, or that was added."""
        tool = self._tools.get(name)
        if tool is None:
            return f"There is no tool {name}."
        self._callable.add(name)
        shown = "" if tool.announced else f": {json.dumps(tool.function, ensure_ascii=False)}"
        return f"The tool {name} may be called{shown or '.'}"

    def add(self, added: ReferredTool | DefinedTool, pointer: str) -> str:
        """What the model is told of a tool that a system turn adds."""
        if isinstance(added, ReferredTool):
            return self.found(added.name)
        made = tool_for(added.definition, f"{pointer}/definition")
        if made is None:
            self.left_out.append(f"tools.{added.definition.type}")
            return ""
        self._tools[made.name] = replace(made, announced=False)
        return self.found(made.name)

    def remove(self, name: str) -> str:
        """What the model is told of a tool that a system turn removes."""
        self._callable.discard(name)
        return f"The tool {name} may not be called any more."
