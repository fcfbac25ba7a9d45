"""The same call again and again: small models that have called go on calling until the tokens run out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolgram.chat.runaways import EndedRepetition
from toolgram.conversation.events import ArgumentsDelta, Event, ToolCallEnd, ToolCallStart

MOST = 3
"""Calls of one tool with the same arguments, one after the other: then the turn ends."""


@dataclass(slots=True)
class EqualCalls:
    """Watches a turn for calls that are all the same; `ended` is the last of them, where the turn ended for that."""

    ended: EndedRepetition | None = None
    _index: int = 0
    _name: str | None = None  # of the call that is being read
    _pieces: list[str] = field(default_factory=list[str])
    _last: tuple[str, str] | None = None  # the name and the arguments of the call before
    _count: int = 0

    def take(self, events: Iterable[Event]) -> None:
        """What was read of the turn."""
        for event in events:
            match event:
                case ToolCallStart(index, name):
                    self._index, self._name = index, name
                    self._pieces.clear()
                case ArgumentsDelta(_, text):
                    self._pieces.append(text)
                case ToolCallEnd() if self._name is not None:
                    call = self._name, "".join(self._pieces)
                    self._count = self._count + 1 if call == self._last else 1
                    self._last, self._name = call, None
                case _:
                    pass

    def end(self) -> bool:
        """Whether the turn ends here: the last calls are the same, and no other has begun."""
        if self._count < MOST or self._name is not None:
            return False
        self.ended = EndedRepetition(self._index, "")
        return True
