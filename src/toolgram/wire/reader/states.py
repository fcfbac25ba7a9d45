"""The places in which a reader may be, each a small state, and the steps from one to another.

Free text ends at the first mark. In a gap all ways on through the format are followed at once. The end of a body its
own syntax tells, as that of an answer's value (`value`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from toolgram.conversation.message import Message
from toolgram.wire.encodings.expected import UNKNOWN
from toolgram.wire.encodings.json import VALUE_STARTS, RawValue, Status, skip_space
from toolgram.wire.instructions import Action, ArgumentsAt, Exit, FreeAt, JsonAt, StopAt
from toolgram.wire.reader.bodies import Body, body_of
from toolgram.wire.reader.free_text import FreeText, free_text_at, with_exits
from toolgram.wire.reader.gap import (
    TextInstead,
    Thread,
    after_text,
    answer_instead,
    awaited,
    awaits_name,
    calls_any,
    ended,
    first_exits,
    following,
    free_text_way,
    is_no_name,
    past_marks,
    shared_actions,
    stepped,
    text_due,
    text_instead,
    to_tell,
    ways,
    ways_past,
    without_arguments,
    word_due,
)
from toolgram.wire.reader.json_object import ShapeReader
from toolgram.wire.reader.reading import Reading, State
from toolgram.wire.reader.value import InValue


@dataclass(slots=True)
class InText(State):
    """In free text, which ends at the first mark. Where it is `fresh` a value may begin; `after_value` it was one."""

    reading: Reading
    free: FreeText
    fresh: bool = False
    after_value: bool = False
    threads: list[Thread] = field(default_factory=list[Thread])

    def consume(self, buffer: str, start: int) -> tuple[int, bool]:
        """Take text up to the first mark, but hold back what may be the beginning of one."""
        if (self.after_value or self.fresh) and (waits := self._at_value(buffer, start)) is not None:
            return waits
        reading, opened, free = self.reading, self.reading.opened, self.free
        if free.once_begun is not None:
            begin = skip_space(buffer, start) if free.field == "reasoning" else start
            if not free.marks.begins(buffer, begin):
                if free.marks.held_back(buffer, begin) == begin:
                    return start, True
                free = self.free = free.once_begun
        match = free.marks.find.search(buffer, start) if free.marks.find else None
        if match is None:
            keep = free.marks.held_back(buffer, start)
            if opened.may_skip and not buffer[start:keep].strip():
                return start, True  # if a mark comes next, the prefill is none
            opened.may_skip = False
            reading.text(free, text := reading.kept(free, buffer[start:keep]))
            return start + len(text), True
        mark = match[0]
        text = reading.kept(free, buffer[start : match.start()])
        exits, before = free.exits_at(mark, text)
        opened.settle(is_none=not text.strip())
        reading.text(free, text.removesuffix(before))
        opened.held = 0
        for exit_ in exits:
            if exit_.ahead and exit_.text == mark:
                return self._go_ahead(exit_, before, mark, match.end())
        said = "" if free.closes_reasoning(mark) else before + mark
        enter_gap(reading, ways_past(reading.program, mark, exits), said)
        return match.end(), False

    def _go_ahead(self, exit_: Exit, before: str, mark: str, end: int) -> tuple[int, bool]:
        """A call begins that nothing announced: it is read from its beginning on."""
        reading = self.reading
        enter_gap(reading, ways(reading.program, following(reading.program, exit_.at), exit_.actions), before)
        reading.again, reading.committed = mark, True
        return end, False

    def _at_value(self, buffer: str, start: int) -> tuple[int, bool] | None:
        """Where a value may begin, or has ended, white space is none of the answer; None where it is text."""
        begin = skip_space(buffer, start)
        if begin == len(buffer):
            return start, True
        fresh, self.fresh, self.after_value = self.fresh, False, False
        marks = self.free.marks
        if fresh and not marks.begins(buffer, begin):  # a mark may begin as a value does: "[TOOL_CALLS]"
            if marks.held_back(buffer, begin) == begin:
                self.fresh = True
                return start, True
            if buffer[begin] in VALUE_STARTS:
                self.reading.opened.drop(begin - start)
                value = RawValue(partial(self.reading.text, self.free))
                over = partial(enter_text, self.reading, self.free, after_value=True)
                self.reading.state = InValue(value, over, may_stop=self.free.may_stop)
                return begin, False
        return None

    def end(self, rest: str, *, cut: bool) -> bool:
        """Where the turn was cut off, what may be the beginning of a mark is taken for one, and else for text."""
        reading = self.reading
        if cut and rest.strip():
            exits = (exit_ for exit_ in self.free.exits if rest in exit_.before + exit_.text)
            self.threads = [Thread(exit_.at, exit_.actions) for exit_ in exits]
            reading.emit.cut(rest, "the text ends inside " + awaited(reading.program, self.threads))
            return False
        reading.text(self.free, "" if self.after_value else reading.kept(self.free, rest))
        is_half = self.fresh and rest[skip_space(rest, 0) :][:1] in VALUE_STARTS
        return self.free.may_stop and not (is_half or reading.emit.in_named_call)

    def held(self, rest: str) -> Message:
        """All that was not taken is of this text, if it is no mark."""
        rest = self.reading.kept(self.free, rest)
        return Message(reasoning=rest) if self.free.field == "reasoning" else Message(content=rest)

    def closers(self, rest: str) -> tuple[str, ...]:
        """The marks that end it, as the format writes them."""
        del rest
        return self.free.closers if self.free.field == "reasoning" else ()


@dataclass(slots=True)
class InGap(State):
    """Between texts and bodies: all ways on are followed at once; what looks like a call may be text `instead`."""

    reading: Reading
    threads: list[Thread]
    instead: TextInstead | None = None

    @property
    def awaits_a_name(self) -> bool:
        """Where all ways on go through a name that goes on as long as a word does."""
        return awaits_name(self.reading.program, self.threads)

    def settle(self) -> None:
        """Do what all ways agree on, and go over to free text where it may begin here."""
        reading = self.reading
        if self.instead is not None and (calls := past_marks(reading.program, self.threads, self.instead)):
            self.instead, self.threads = None, calls
        if self.instead is None and (shared := to_tell(self.threads)):
            if not act(reading, shared):
                return
            self.threads = [way._replace(actions=way.actions[len(shared) :]) for way in self.threads]
        if (way := free_text_way(reading.program, self.threads)) is not None:
            begin_text(reading, way, self.threads)

    def consume(self, buffer: str, start: int) -> tuple[int, bool]:
        """Go on by a character, or by all of a prescribed text that stands there, until one way is chosen."""
        i, reading = start, self.reading
        while i < len(buffer):
            if len(self.threads) == 1 and (due := text_due(reading.program, self.threads[0], buffer, i)):
                i += len(due)
                reading.here.append(due)
                self.threads = after_text(reading.program, self.threads[0], len(due))
                if not self.threads[0].offset:
                    self._arrive()
            elif word := word_due(reading.program, self.threads, buffer, i):
                i += len(word)
                reading.here.append(word)
                self.threads = [way._replace(captured=way.captured + word) for way in self.threads]
            else:
                if not self._character(buffer[i]):
                    return i, False
                i += 1
            if reading.state is not self:
                return i, False
        return i, True

    def _character(self, char: str) -> bool:
        """Go all ways on by a character; False where one is chosen instead, or none goes on."""
        reading, program = self.reading, self.reading.program
        chosen, alive = stepped(program, self.threads, char, reading.expected, after_calls=reading.emit.calls > 0)
        if chosen is not None and (instead := text_instead(program, chosen, char, alive, reading.here)) is not None:
            self.instead, chosen = instead, None
        if self.instead is not None:
            tools = reading.expected.keys()
            alive = [way for way in alive if calls_any(way, tools)]
            chosen = chosen if chosen is not None and calls_any(chosen, tools) else None
        if chosen is not None:
            self.instead = None
            self._commit(chosen)
        elif not alive and self.instead is not None:
            reading.again = self._as_text(self.instead)
        elif not alive:
            recover(reading, self.threads, may_stop=True)
        else:
            self.threads = alive
            reading.here.append(char)
            if char.isspace():
                self.settle()
            else:
                self._arrive()
            return True
        return False

    def _arrive(self) -> None:
        """Prescribed text was taken whole: where the turn may end here, it needs no explaining later."""
        self.settle()
        code = self.reading.program.code
        if self.reading.state is self and any(isinstance(code[t.at], StopAt) and not t.actions for t in self.threads):
            self.reading.forget()

    def _commit(self, thread: Thread) -> None:
        """Go the one way that is left, into its body or free text."""
        reading = self.reading
        instruction = reading.program.code[thread.at]
        if isinstance(instruction, FreeAt):
            begin_text(reading, thread, self.threads)
        elif act(reading, thread.actions) and isinstance(instruction, JsonAt | ArgumentsAt):
            expected = reading.expected.get(reading.emit.tool, UNKNOWN)
            told = reading.value or reading.expected  # what an answer is, or which tools there are
            answer = answer_instead(reading.program, self.threads, thread) if told else None
            tools = None if answer is None else reading.expected.keys()
            body = body_of(instruction, reading.emit, expected, raw_content=reading.value, tools=tools)
            at, reported = len(reading.taken()), reading.emit.in_named_call
            reading.state = InBody(reading, body, instruction.next, self.threads, answer, at, reported)

    def _as_text(self, instead: TextInstead) -> str:
        """What looked like a call is text after all: enter it; what was taken of it, to be read again."""
        self.instead = None
        return _as_text(self.reading, instead.way, self.threads, sum(map(len, self.reading.before)) + instead.at)

    def end(self, rest: str, *, cut: bool) -> bool:
        """The turn is complete where it may stop; else what was taken of a mark, a name or a call is reported.

        Where it was not `cut` off, a call of a tool that needs none has no arguments: some models say that so.
        """
        reading = self.reading
        if self.instead is not None:
            return _said(reading, self._as_text(self.instead) + rest)
        if (way := ended(reading.program, self.threads)) is not None:
            if not act(reading, way.actions):
                _said(reading, reading.again)
            return True
        if not cut and (empty := without_arguments(reading.program, self.threads)) is not None:
            tool = next((text for action, text in empty if action == "name"), reading.emit.tool)
            if reading.expected.get(tool, UNKNOWN).may_have_no_members:
                return act(reading, empty)
        names = (text for action, text in shared_actions(self.threads) if action == "name")
        reading.committed |= any(name in reading.expected for name in names)
        reading.tell_committed(way.actions for way in self.threads)
        if not reading.emit.in_named_call:
            text, reason = reading.taken() + rest, "the text ends inside " + awaited(reading.program, self.threads)
            is_text = bool(text.strip()) and is_no_name(reading.program, self.threads, text)
            (reading.emit.unreadable if is_text else reading.emit.cut)(text, reason)
        return False


def _as_text(reading: Reading, way: Thread, threads: Iterable[Thread], at: int) -> str:
    """Enter the text that what looked like a call is; what was taken of it, from a place on, is to be read again."""
    taken = reading.taken()[at:]
    reading.opened.drop(at)
    begin_text(reading, way, threads)
    return taken


def _said(reading: Reading, text: str) -> bool:
    """The text is the end of the free text that the reader has gone over to; whether the turn may end there."""
    if not isinstance(reading.state, InText):
        raise TypeError("not in free text")
    reading.text(reading.state.free, text)
    return reading.state.free.may_stop


@dataclass(slots=True)
class InBody(State):
    """In a body, whose end its own syntax tells; after it the format goes on `after`.

    `answer` is the way on which the body may be the answer, `at` where in what was taken it begins: what stands before
    are marks; `reported` says that there were events of it.
    """

    reading: Reading
    body: Body
    after: int
    threads: list[Thread]
    answer: Thread | None
    at: int
    reported: bool

    @property
    def awaits_a_name(self) -> bool:
        """Where a string is begun that is the name."""
        return isinstance(self.body, ShapeReader) and self.body.in_name

    def consume(self, buffer: str, start: int) -> tuple[int, bool]:
        """Take what the body takes; as long as it reports nothing, that may be read as something else."""
        reading, events = self.reading, self.reading.emit.events
        known = len(events)
        end, status = self.body.consume(buffer, start)
        self.reported = self.reported or len(events) > known
        if self.reported:
            reading.forget()
        else:
            reading.before += (*reading.here, buffer[start:end])
            reading.here.clear()
        if status is Status.MORE:
            return end, True
        if status is Status.DONE:
            enter_gap(reading, ways(reading.program, self.after), reading.taken())
        elif self.answer is not None and not self.reported:
            reading.again = _as_text(reading, self.answer, self.threads, self.at)
        else:
            reading.emit.fail()
            reading.before.append(self._untold())
            recover(reading, ways(reading.program, self.after))
        return end, False

    def end(self, rest: str, *, cut: bool) -> bool:
        """A call that has a name stays a call, with what arrived of its arguments; what is none may be the answer."""
        reading = self.reading
        if reading.emit.in_named_call:
            over = None if cut else ended(reading.program, ways(reading.program, self.after))
            if over is not None and self.body.close_at_end(rest):
                return act(reading, over.actions)
            self.body.cut(rest)
        elif self.answer is not None and not (cut or reading.value or self.reported):
            return _said(reading, _as_text(reading, self.answer, self.threads, self.at) + rest)
        else:
            reason = "the text ends inside " + awaited(reading.program, self.threads)
            reading.emit.cut(reading.taken() + self._untold() + rest, reason)
        return False

    def _untold(self) -> str:
        """What was taken of an item of a list behind a call, of which nothing is told."""
        return self.body.untold if isinstance(self.body, ShapeReader) else ""

    def closers(self, rest: str) -> tuple[str, ...]:
        """The quote, where the body is in a string of reasoning; in `rest` an escape may wait."""
        in_reasoning = isinstance(self.body, ShapeReader) and self.body.in_reasoning
        return ('"',) if in_reasoning and not rest else ()


def enter_text(reading: Reading, free: FreeText, *, fresh: bool = False, after_value: bool = False) -> None:
    """Go on with free text; where it is `fresh`, it may be the value of an answer."""
    reading.forget()
    reading.state = InText(reading, free, fresh and reading.value and free.field == "content", after_value)


def enter_gap(reading: Reading, threads: list[Thread], raw: str) -> None:
    """Look for a way on; `raw` is text already taken that becomes content if there is none."""
    reading.before, reading.here = [raw] if raw else [], []
    reading.state = gap = InGap(reading, threads)
    gap.settle()


def act(reading: Reading, actions: tuple[Action, ...]) -> bool:
    """Report what a way did; False where it closed a call that never had a name, whose text is unreadable then."""
    if reading.act(actions):
        return True
    recover(reading, ())
    return False


def begin_text(reading: Reading, thread: Thread, threads: Iterable[Thread]) -> None:
    """Enter the free text of a thread; the marks of the other threads end it too."""
    if not act(reading, thread.actions):
        return
    # A way that took for a tool's name what this one knows by heart ("to=user") has lost against it.
    others = [way for way in threads if not any(action == "name" for action, _ in way.actions)]
    enter_text(reading, free_text_at(reading.program, thread.at, first_exits(reading.program, others)), fresh=True)


def recover(reading: Reading, threads: Iterable[Thread], *, may_stop: bool = False) -> None:
    """No way goes on: what was taken since the last event becomes content, and reading goes on from there.

    Inside a call that was reported already, what would have ended it still does.
    """
    reading.tell_committed(way.actions for way in threads)
    raw, again = "".join(reading.before), "".join(reading.here)
    exits = reading.program.home_exits
    reason = "expected " + awaited(reading.program, threads)
    for thread in threads:
        if may_stop and isinstance(reading.program.code[thread.at], StopAt):
            if not act(reading, thread.actions):
                return
            reason = ""
    if reading.emit.in_named_call:
        exits = with_exits(exits, first_exits(reading.program, threads))
    free = FreeText.of(exits, "content", reason)
    enter_text(reading, free)
    reading.text(free, raw)
    reading.again = again
