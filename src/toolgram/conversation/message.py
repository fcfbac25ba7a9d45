"""The assistant's turn as a value: content, reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolgram.conversation.custom_tools import input_of
from toolgram.conversation.events import (
    ArgumentsDelta,
    ContentDelta,
    CustomCallStart,
    Event,
    Prefill,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)
from toolgram.conversation.json_text import is_json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `arguments` is JSON text; `id` if the wire has one.

    An `incomplete` call was cut off, or could not be read: its arguments are a prefix of JSON text, whole without the
    call's end, or no JSON.
    """

    name: str
    arguments: str
    id: str | None = None
    incomplete: bool = False

    def to_openai(self) -> dict[str, Any]:
        """The call in the shape of the chat-completions API; `id` and `incomplete` stand in it if it has them."""
        return self._openai("function", {"name": self.name, "arguments": self.arguments})

    def _openai(self, kind: str, said: dict[str, str]) -> dict[str, Any]:
        call: dict[str, Any] = {} if self.id is None else {"id": self.id}
        return call | {"type": kind, kind: said} | ({"incomplete": True} if self.incomplete else {})


@dataclass(frozen=True, slots=True)
class CustomToolCall(ToolCall):
    """One call of a custom tool."""

    @property
    def input(self) -> str:
        """The text that the tool is given."""
        return input_of(self.arguments)

    def to_openai(self) -> dict[str, Any]:
        """The call in the shape of the chat-completions API; `id` and `incomplete` stand in it if it has them."""
        return self._openai("custom", {"name": self.name, "input": self.input})


@dataclass(frozen=True, slots=True)
class Message:
    """What the assistant said; a part that is not there is None."""

    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @staticmethod
    def from_events(events: Iterable[Event]) -> Message:
        """The message that a reader's events add up to; unreadable text is part of the content, a `Cut` is not."""
        content: list[str] = []
        reasoning: list[str] = []
        names: list[str] = []
        kinds: list[type[ToolCall]] = []
        ids: list[str | None] = []
        ended: set[int] = set()
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
                    kinds.append(CustomToolCall if isinstance(event, CustomCallStart) else ToolCall)
                    ids.append(id_)
                    arguments.append([])
                case ToolCallEnd(index, id_):
                    ended.add(index)
                    ids[index] = ids[index] if id_ is None else id_
                case Prefill(prefilled, thought):
                    content.append(prefilled)
                    reasoning.append(thought)
                case _:
                    pass
        parts = enumerate(zip(kinds, names, map("".join, arguments), ids, strict=True))
        last = len(names) - 1  # those before it were over when it began: only broken arguments show that they are not
        over = {at for at, each in enumerate(arguments) if at in ended or (at < last and is_json("".join(each)))}
        calls = tuple(kind(name, text, id_, at not in over) for at, (kind, name, text, id_) in parts)
        return Message("".join(content) or None, "".join(reasoning) or None, calls)

    def to_openai(self) -> dict[str, Any]:
        """The message in the shape of the chat-completions API; `id` is left out of a call that has none."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [call.to_openai() for call in self.tool_calls]
        return message
