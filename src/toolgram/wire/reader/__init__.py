"""A wire format as an incremental reader: raw text in, events out, one pass.

The reader is always in one of three places: in free text, which ends at the first mark; in a body (arguments, JSON of a
known shape), whose end its own syntax tells; or in a gap between the two, where it follows all ways on through the
format at once, one character at a time. Where no way goes on, the text becomes content and an event says so. What is
done depends on the text alone, never on how it was cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolgram.conversation.events import ArgumentsDelta, Cut, Event, Finish, Prefill, ToolCallEnd, ToolCallStart
from toolgram.conversation.message import Message
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.program import Program
from toolgram.wire.reader.emitter import Emitter
from toolgram.wire.reader.gap import ways
from toolgram.wire.reader.reading import Opened, Reading, State
from toolgram.wire.reader.states import InBody, InGap, enter_gap


class Reader:
    """Reads one turn: `feed` it text as it comes, then `finish`; both give events. One owner, one use.

    `opened` is the part of the turn that the prompt holds already; `value` says that the content is a JSON value, and
    `trims` that white space at its end is none of it;
    `expected` tells for each tool what it takes, since tags do not show the types of values. With
    `opens_reasoning` the opened part only opens reasoning that is left in the content: it counts if the model reasons.
    `custom` are the names of the custom tools.
    """

    def __init__(
        self,
        program: Program,
        *,
        value: bool = False,
        trims: bool = False,
        opened: str = "",
        expected: Mapping[str, Expected] | None = None,
        opens_reasoning: bool = False,
        custom: frozenset[str] = frozenset(),
    ) -> None:
        self._reading = Reading(program, Emitter(custom), expected or {}, value, trims)
        enter_gap(self._reading, ways(program, program.start), "")
        self._buffer = ""
        if opened:
            self._run(opened)
            prefill, begun = self._prefill()
            self._reading.emit.events.extend(begun)
            if not _may_be_read_again(self._reading.state):
                self._reading.forget()
            held = len(self._reading.taken()) + len(self._buffer)
            self._reading.opened = Opened(prefill, held, opens_reasoning)

    def feed(self, text: str) -> list[Event]:
        """Read more text; give what became known by it."""
        self._run(text)
        return self._events()

    def finish(self, *, cut: bool = False) -> list[Event]:
        """The text is over: give what was held back, and how the turn ended.

        Where it was `cut` off, what may be the beginning of a mark is taken for one, and else for text.
        """
        reading, emit = self._reading, self._reading.emit
        rest, self._buffer = self._buffer, ""
        complete = reading.state.end(rest, cut=cut)
        events = self._events(final=True)
        dropped = sum(isinstance(event, Cut) for event in events) if self._in_unnamed_call() else 0
        events.append(Finish("tool_calls" if emit.calls else "stop", complete, dropped))
        return events

    @property
    def held(self) -> Message:
        """What is held back, since more text may make it a mark, as what it is if it does not."""
        return self._reading.state.held(self._buffer)

    @property
    def awaits_a_name(self) -> bool:
        """Whether the tool's name comes next, and a word of any letters would be it."""
        return not self._buffer and self._reading.state.awaits_a_name

    @property
    def reasoning_closers(self) -> tuple[str, ...]:
        """What may end the reasoning that the reader is in, as the format writes it; nothing outside of reasoning."""
        return self._reading.state.closers(self._buffer)

    def _prefill(self) -> tuple[Prefill, Sequence[Event]]:
        """What was said so far, and the call that has begun in it, which is told as a whole."""
        events = self._reading.emit.take()
        calls = [event for event in events if isinstance(event, ToolCallStart | ArgumentsDelta | ToolCallEnd)]
        message = Message.from_events(event for event in events if event not in calls)
        return Prefill(message.content or "", message.reasoning or ""), calls

    def _events(self, *, final: bool = False) -> list[Event]:
        events, opened = self._reading.emit.take(), self._reading.opened
        if opened.prefill is not None and (events or final):
            if (prefill := _said(opened.prefill)) != Prefill():
                events.insert(0, prefill)
            opened.prefill = None
        return events

    def _run(self, text: str) -> None:
        reading = self._reading
        buffer = self._buffer + text
        i = 0
        waits = False
        while i < len(buffer) and not waits:
            i, waits = reading.state.consume(buffer, i)
            if again := reading.again:
                reading.again = ""
                if buffer.endswith(again, 0, i):
                    i -= len(again)
                else:  # it came with a text before this one
                    buffer, i = again + buffer[i:], 0
        self._buffer = buffer[i:]

    def _in_unnamed_call(self) -> bool:
        """Whether a call has begun, on whatever way the text goes on, that has no name yet."""
        threads = self._reading.state.threads
        begun = [any(action == "begin" for action, _ in thread.actions) for thread in threads]
        return self._reading.emit.in_unnamed_call or (bool(begun) and all(begun))


def _may_be_read_again(state: State) -> bool:
    """Whether what was taken looks like a call, and may be text."""
    match state:
        case InGap():
            return state.instead is not None
        case InBody():
            return state.answer is not None and not state.reported
        case _:
            return False


def _said(prefill: Prefill) -> Prefill:
    """What the prompt says for the model; the white space of tags with nothing in them is nothing."""
    return Prefill(*(text if text.strip() else "" for text in (prefill.content, prefill.reasoning)))
