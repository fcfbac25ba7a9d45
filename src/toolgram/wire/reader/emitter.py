"""Where the readers of a turn put what they find: it becomes events."""

from __future__ import annotations

from toolgram.conversation.events import (
    ArgumentsDelta,
    ContentDelta,
    CustomCallStart,
    Cut,
    Event,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Unreadable,
)
from toolgram.conversation.json_text import is_json


class Emitter:
    """Collects events. A call whose arguments come before its name is held until the name is known.

    `custom` are the names of the custom tools.
    """

    __slots__ = ("_arguments", "_custom", "_failed", "_id", "_name", "_open", "calls", "events")

    def __init__(self, custom: frozenset[str] = frozenset()) -> None:
        self._custom = custom
        self.events: list[Event] = []
        self.calls = 0
        self._open = False
        self._name: str | None = None
        self._id: str | None = None
        self._arguments: list[str] = []
        self._failed = False

    def take(self) -> list[Event]:
        """The events since the last time, neighbouring pieces of one text joined."""
        merged: list[Event] = []
        for event in self.events:
            last = merged[-1] if merged else None
            match last, event:
                case (ContentDelta(a), ContentDelta(b)):
                    merged[-1] = ContentDelta(a + b)
                case (ReasoningDelta(a), ReasoningDelta(b)):
                    merged[-1] = ReasoningDelta(a + b)
                case (ArgumentsDelta(i, a), ArgumentsDelta(j, b)) if i == j:
                    merged[-1] = ArgumentsDelta(i, a + b)
                case (Unreadable(a, reason), Unreadable(b, same)) if reason == same:
                    merged[-1] = Unreadable(a + b, reason)
                case _:
                    merged.append(event)
        self.events.clear()
        return merged

    def content(self, text: str) -> None:
        """More of the answer."""
        if text:
            self.events.append(ContentDelta(text))

    def reasoning(self, text: str) -> None:
        """More of the reasoning."""
        if text:
            self.events.append(ReasoningDelta(text))

    def unreadable(self, text: str, reason: str) -> None:
        """Text that nothing explains."""
        if text:
            self.events.append(Unreadable(text, reason))

    def cut(self, text: str, reason: str) -> None:
        """The end of the text, which says nothing yet."""
        if text:
            self.events.append(Cut(text, reason))

    @property
    def in_unnamed_call(self) -> bool:
        """Whether a call is open whose name is not known."""
        return self._open and self._name is None

    @property
    def in_named_call(self) -> bool:
        """Whether a call is open that the receiver has heard of."""
        return self._open and self._name is not None

    @property
    def tool(self) -> str:
        """The tool of the call, "" if it is not known."""
        return self._name or ""

    @property
    def has_arguments(self) -> bool:
        """Whether anything has arrived of the arguments of the call."""
        return bool(self._arguments)

    def begin(self) -> None:
        """A call begins."""
        self._open = True
        self._failed = False
        self._name = self._id = None
        self._arguments.clear()

    def name(self, text: str) -> None:
        """The tool of the call is known: it can be told, with what has arrived of it so far."""
        if not self._open or self._name is not None:
            return
        self._name = text
        start = CustomCallStart if text in self._custom else ToolCallStart
        self.events.append(start(self.calls, text, self._id))
        self.events.extend(ArgumentsDelta(self.calls, piece) for piece in self._arguments)
        self.calls += 1

    def id(self, text: str) -> None:
        """The call's id."""
        self._id = text

    def arguments(self, text: str) -> None:
        """More of the arguments, as JSON text."""
        if text and self._open:
            self._arguments.append(text)
            if self._name is not None:
                self.events.append(ArgumentsDelta(self.calls - 1, text))

    def fail(self) -> None:
        """What follows in the call cannot be read."""
        self._failed = True

    def end(self) -> bool:
        """The call is complete; False where it never had a name. A call without arguments has the arguments {}.

        One whose arguments are no JSON, or could not be read, ends as one that was cut off.
        """
        if not self._open:
            return False
        if self._name is None:
            self._open = False
            return False
        is_whole = is_json("".join(self._arguments)) if self._arguments else not self._failed
        if not is_whole:
            self._open = False
            return True
        if not self._arguments:
            self.arguments("{}")
        self._open = False
        self.events.append(ToolCallEnd(self.calls - 1, self._id))
        return True
