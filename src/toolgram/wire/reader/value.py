"""In the value of an answer, whose end its own syntax tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from toolgram.wire.encodings.json import RawValue, Status
from toolgram.wire.reader.gap import Thread
from toolgram.wire.reader.reading import State


@dataclass(slots=True)
class InValue(State):
    """In the value of an answer, which is content as it comes; where it is `over`, free text goes on, or the turn may
    stop."""

    value: RawValue
    over: Callable[[], object]
    may_stop: bool
    threads: list[Thread] = field(default_factory=list[Thread])

    def consume(self, buffer: str, start: int) -> tuple[int, bool]:
        """Take the value."""
        end, status = self.value.consume(buffer, start)
        if status is Status.DONE:
            self.over()
        return end, status is Status.MORE

    def end(self, rest: str, *, cut: bool) -> bool:
        """The turn may end with a number or a word."""
        del rest, cut
        return self.value.may_end and self.may_stop
