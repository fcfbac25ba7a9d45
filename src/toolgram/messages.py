"""The assistant's turn as a value: content, reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolgram.events import (
    ArgumentsDelta,
    ContentDelta,
    Event,
    Prefill,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `arguments` is JSON text, or a prefix of it where the model was cut off; `id` if the wire has one."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What the assistant said; a part that is not there is None."""

    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @staticmethod
    def from_events(events: Iterable[Event]) -> Message:
        """The message that a reader's events add up to; unreadable text is part of the content."""
        content: list[str] = []
        reasoning: list[str] = []
        names: list[str] = []
        ids: list[str | None] = []
        arguments: list[list[str]] = []
        for event in events:
            match event:
                case ArgumentsDelta(index, text):
                    arguments[index].append(text)
                case ContentDelta(text) | Unreadable(text):
                    content.append(text)
                case ReasoningDelta(text):
                    reasoning.append(text)
                case ToolCallStart(_, name, id_):
                    names.append(name)
                    ids.append(id_)
                    arguments.append([])
                case ToolCallEnd(index, id_) if id_ is not None:
                    ids[index] = id_
                case Prefill(prefilled, thought):
                    content.append(prefilled)
                    reasoning.append(thought)
                case _:
                    pass
        calls = zip(names, ("".join(pieces) for pieces in arguments), ids, strict=True)
        return Message("".join(content) or None, "".join(reasoning) or None, tuple(ToolCall(*call) for call in calls))

    def to_openai(self) -> dict[str, Any]:
        """The message in the shape of the chat-completions API; `id` is left out of a call that has none."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                ({} if call.id is None else {"id": call.id})
                | {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        return message
