"""What a reader finds in raw text, in the order it finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Prefill:
    """What the prompt already holds of this turn: the first of all events if there is any, never streamed on."""

    content: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More text of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call begins: `index` counts the calls of the turn from 0; `id` is None unless the wire carries one."""

    index: int
    name: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class CustomCallStart(ToolCallStart):
    """A call of a custom tool begins; its arguments are those of a function of one string, `input`."""


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More JSON text of the arguments of call `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The call `index` is complete; a call that was cut off has no end."""

    index: int
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Text that the wire format does not explain; it is part of the content, and `reason` says what was expected."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a text that stopped before it said anything: half a tag, a call of which nothing was told.

    It is no part of the message; `reason` says what it stopped inside of.
    """

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The text is over; `complete` is False where it stopped inside a call or another unfinished part.

    `dropped_calls` counts the calls, one at most, that were cut off before anything of them was told.
    """

    reason: Literal["stop", "tool_calls"]
    complete: bool = True
    dropped_calls: int = 0


Event = (
    Prefill | ContentDelta | ReasoningDelta | ToolCallStart | ArgumentsDelta | ToolCallEnd | Unreadable | Cut | Finish
)
