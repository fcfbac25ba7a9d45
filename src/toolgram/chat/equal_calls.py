"""The same calls again and again: small models that have called go on calling until the tokens run out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolgram.chat.runaways import EndedRepetition
from toolgram.conversation.events import ArgumentsDelta, Event, ToolCallEnd, ToolCallStart

MOST = 3
"""Times that the same calls are made, one after the other: then the turn ends."""
_LONGEST = 8  # calls that are made again and again: a model that goes through more says something by that

_Call = tuple[str, str]  # the name and the arguments


@dataclass(slots=True)
class EqualCalls:
    """Watches a turn for calls that come again: one that is the same each time, or a few in the same order.

    `ended` is the last of them, where the turn ended for that.
    """

    ended: EndedRepetition | None = None
    _index: int = 0
    _name: str | None = None  # of the call that is being read
    _pieces: list[str] = field(default_factory=list[str])
    _last: deque[_Call] = field(default_factory=lambda: deque(maxlen=MOST * _LONGEST))
    _again: bool = False  # whether the last ones came before

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
                    self._last.append((self._name, "".join(self._pieces)))
                    self._name, self._again = None, _ends_in_rounds(self._last)
                case _:
                    pass

    def end(self) -> bool:
        """Whether the turn ends here: the last calls came before, and no other has begun."""
        if self._name is not None or not self._again:
            return False
        self.ended = EndedRepetition(self._index, "")
        return True


def _ends_in_rounds(calls: Sequence[_Call]) -> bool:
    last = list(calls)
    rounds = (last[-MOST * size :] for size in range(1, len(last) // MOST + 1))
    return any(each[size:] == each[:-size] for size, each in enumerate(rounds, 1))
