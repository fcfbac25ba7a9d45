"""A wire format as an incremental reader: raw text in, events out, one pass.

The reader is always in one of three places: in free text, which ends at the first mark; in a body (arguments, JSON of a
known shape), whose end its own syntax tells; or in a gap between the two, where it follows all ways on through the
format at once, one character at a time. Where no way goes on, the text becomes content and an event says so. What is
done depends on the text alone, never on how it was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from toolgram.conversation.events import Cut, Event, Finish, Prefill
from toolgram.conversation.message import Message
from toolgram.wire.encodings.expected import UNKNOWN, Expected
from toolgram.wire.encodings.json import VALUE_STARTS, RawValue, Status, skip_space
from toolgram.wire.program import Action, ArgumentsAt, FreeAt, JsonAt, MarkAt, Program, StopAt
from toolgram.wire.reader.bodies import Body, HoldsText, body_of
from toolgram.wire.reader.emitter import Emitter
from toolgram.wire.reader.free_text import FreeText, with_exits
from toolgram.wire.reader.gap import (
    Thread,
    awaited,
    behind_text,
    calls_any,
    first_exits,
    following,
    step,
    text_due,
    ways,
)
from toolgram.wire.reader.json_object import ShapeReader


class Reader:
    """Reads one turn: `feed` it text as it comes, then `finish`; both give events. One owner, one use.

    `opened` is the part of the turn that the prompt holds already; `value` says that the content is a JSON value;
    `expected` tells for each tool what it takes, since tags do not show the types of values. With
    `opens_reasoning` the opened part only opens reasoning that is left in the content: it counts if the model reasons.
    `custom` are the names of the custom tools.
    """

    def __init__(
        self,
        program: Program,
        *,
        value: bool = False,
        opened: str = "",
        expected: Mapping[str, Expected] | None = None,
        opens_reasoning: bool = False,
        custom: frozenset[str] = frozenset(),
    ) -> None:
        self._program = program
        self._value = value
        self._expected = expected or {}
        self._emit = Emitter(custom)
        self._buffer = ""
        self._mode: Callable[[str, int], tuple[int, bool]] = self._in_gap
        self._threads: list[Thread] = []
        self._raw: list[str] = []
        self._kept = 0
        self._again = ""
        self._free = FreeText.of(program.home_exits, "content")
        self._fresh = False
        self._after_value = False
        self._value_may_end = bool
        self._body: Body | None = None
        self._answer: Thread | None = None
        self._text_instead: Thread | None = None
        self._told = False
        self._after_body: int | FreeText = 0
        self._prefill: Prefill | None = None
        self._may_skip = False
        self._held_prefill = 0
        self._enter_gap(ways(program, program.start), "")
        if opened:
            self._run(opened)
            message = Message.from_events(self._emit.take())
            self._prefill = Prefill(message.content or "", message.reasoning or "")
            self._held_prefill = len(self._buffer)
            self._may_skip = opens_reasoning
            self._forget()

    def feed(self, text: str) -> list[Event]:
        """Read more text; give what became known by it."""
        self._run(text)
        return self._events()

    def finish(self, *, cut: bool = False) -> list[Event]:
        """The text is over: give what was held back, and how the turn ended.

        Where it was `cut` off, what may be the beginning of a mark is taken for one, and else for text.
        """
        complete = self._end(cut=cut)
        events = self._events(final=True)
        dropped = sum(isinstance(event, Cut) for event in events) if self._in_unnamed_call() else 0
        events.append(Finish("tool_calls" if self._emit.calls else "stop", complete, dropped))
        return events

    @property
    def held(self) -> Message:
        """What is held back, since more text may make it a mark, as what it is if it does not."""
        text = self._buffer if self._mode == self._in_free else ""
        return Message(reasoning=text) if self._free.field == "reasoning" else Message(content=text)

    @property
    def reasoning_closers(self) -> tuple[str, ...]:
        """What may end the reasoning that the reader is in, as the format writes it; nothing outside of reasoning."""
        if self._mode == self._in_body and isinstance(self._body, ShapeReader):
            return ('"',) if self._body.in_reasoning and not self._buffer else ()  # an escape waits in the buffer
        if self._mode != self._in_free or self._free.field != "reasoning":
            return ()
        free = self._free.once_begun or self._free
        return tuple(exit_.before + exit_.text for exit_ in free.exits)

    def _events(self, *, final: bool = False) -> list[Event]:
        events = self._emit.take()
        if self._prefill is not None and (events or final):
            if self._prefill.content or self._prefill.reasoning:
                events.insert(0, self._prefill)
            self._prefill = None
        return events

    def _run(self, text: str) -> None:
        buffer = self._buffer + text
        i = 0
        waits = False
        while i < len(buffer) and not waits:
            i, waits = self._mode(buffer, i)
            if again := self._again:
                self._again = ""
                if buffer.endswith(again, 0, i):
                    i -= len(again)
                else:  # it came with a text before this one
                    buffer, i = again + buffer[i:], 0
        self._buffer = buffer[i:]

    def _end(self, *, cut: bool) -> bool:
        """Settle what is left; whether the turn is complete."""
        rest, self._buffer = self._buffer, ""
        if self._mode == self._in_free and cut and rest.strip():
            exits = (exit_ for exit_ in self._free.exits if rest in exit_.before + exit_.text)
            self._threads = [Thread(exit_.at, exit_.actions) for exit_ in exits]
            self._emit.cut(rest, "the text ends inside " + awaited(self._program, self._threads))
            return False
        if self._mode == self._in_free:
            self._text("" if self._after_value else rest)
            return self._free.may_stop and not self._emit.in_named_call
        if self._mode == self._in_gap:
            if self._text_instead is not None:
                self._text(self._as_text(self._text_instead) + rest)
                return self._free.may_stop
            for thread in self._threads:
                if isinstance(self._program.code[thread.at], StopAt):
                    self._act(thread.actions)
                    self._text(self._again)
                    return True
        elif isinstance(self._after_body, FreeText) and self._value_may_end():
            return self._after_body.may_stop
        if self._emit.in_named_call:
            if self._mode == self._in_body and isinstance(self._body, HoldsText):
                self._body.cut(rest)
        else:
            text, reason = "".join(self._raw) + rest, "the text ends inside " + awaited(self._program, self._threads)
            (self._emit.unreadable if self._is_no_name(text) else self._emit.cut)(text, reason)
        return False

    def _is_no_name(self, text: str) -> bool:
        """Whether what stands in the place of a name is all that there is, or goes on over marks: then it is text."""
        names = [way.captured for way in self._threads if self._mode == self._in_gap]
        return bool(names) and all(
            name.strip() == text.strip() or any(mark in name for mark in self._program.marks) for name in names
        )

    def _in_unnamed_call(self) -> bool:
        """Whether a call has begun, on whatever way the text goes on, that has no name yet."""
        begun = [any(action == "begin" for action, _ in thread.actions) for thread in self._threads]
        return self._emit.in_unnamed_call or (bool(begun) and all(begun))

    # Free text

    def _enter_free(self, free: FreeText, *, fresh: bool = False) -> None:
        self._mode = self._in_free
        self._free = free
        self._fresh = fresh and self._value and free.field == "content"
        self._after_value = False
        self._threads = []
        self._forget()

    def _in_free(self, buffer: str, i: int) -> tuple[int, bool]:
        if self._after_value:
            if skip_space(buffer, i) == len(buffer):
                return i, True  # white space before the end of the turn is none of the answer
            self._after_value = False
        if self._fresh:
            start = skip_space(buffer, i)
            if start == len(buffer):
                return i, True
            # A mark may begin as a value does: "[TOOL_CALLS]".
            if not self._free.marks.begins(buffer, start):
                if self._free.marks.held_back(buffer, start) == start:
                    return i, True
                if buffer[start] in VALUE_STARTS:
                    self._fresh = False
                    value = RawValue(self._emit.content)
                    self._value_may_end = lambda: value.may_end
                    self._enter_body(value, self._free)
                    return start, False
            self._fresh = False
        free = self._free
        if free.once_begun is not None:
            start = skip_space(buffer, i)
            if not free.marks.begins(buffer, start):
                if free.marks.held_back(buffer, start) == start:
                    return i, True
                free = self._free = free.once_begun
        match = free.marks.find.search(buffer, i) if free.marks.find else None
        if match is None:
            keep = free.marks.held_back(buffer, i)
            if self._may_skip and not buffer[i:keep].strip():
                return i, True  # if a mark comes next, the prefill is none
            self._may_skip = False
            self._text(buffer[i:keep])
            return keep, True
        mark = match[0]
        text = buffer[i : match.start()]
        exits = [exit_ for exit_ in free.exits if exit_.text.startswith(mark)]
        before = max((exit_.before for exit_ in exits if text.endswith(exit_.before)), key=len, default="")
        if self._may_skip and not text.strip():
            self._prefill = None
        self._may_skip = False
        self._text(text.removesuffix(before))
        self._held_prefill = 0
        threads: list[Thread] = []
        for exit_ in exits:
            if exit_.text == mark:
                threads.extend(ways(self._program, following(self._program, exit_.at), exit_.actions))
            else:
                threads.append(Thread(exit_.at, exit_.actions, len(mark)))
        self._enter_gap(threads, before + mark)
        return match.end(), False

    def _text(self, text: str) -> None:
        """Free text goes to its field; what of it the prompt held already is part of the prefill."""
        free = self._free
        if self._held_prefill and self._prefill is not None:
            held, text = text[: self._held_prefill], text[self._held_prefill :]
            self._held_prefill -= len(held)
            if free.field == "reasoning":
                self._prefill = replace(self._prefill, reasoning=self._prefill.reasoning + held)
            else:
                self._prefill = replace(self._prefill, content=self._prefill.content + held)
        if free.unreadable:
            self._emit.unreadable(text, free.unreadable)
        elif free.field == "reasoning":
            self._emit.reasoning(text)
        else:
            self._emit.content(text)

    # Gaps

    def _enter_gap(self, threads: list[Thread], raw: str) -> None:
        """Look for a way on; `raw` is text already taken that becomes content if there is none."""
        self._mode = self._in_gap
        self._threads = threads
        self._raw = [raw] if raw else []
        self._kept = len(self._raw)
        self._settle()

    def _forget(self) -> None:
        """What was taken so far is told, or is not of the model: it needs no explaining any more."""
        self._raw = []
        self._kept = 0

    def _settle(self) -> None:
        """Do what all ways agree on, and go over to free text where it may begin here."""
        threads = self._threads
        first = threads[0].actions
        shared = 0
        while shared < len(first) and all(t.actions[: shared + 1] == first[: shared + 1] for t in threads):
            shared += 1
        if shared:
            if not self._act(first[:shared]):
                return
            threads = self._threads = [t._replace(actions=t.actions[shared:]) for t in threads]
        code = self._program.code
        for thread in threads:
            match code[thread.at]:
                case FreeAt():
                    self._begin_free(thread)
                    return
                case MarkAt() if not thread.offset:
                    continue
                case _:
                    return

    def _begin_free(self, thread: Thread) -> None:
        """Enter the free text of a thread; the marks of the other threads end it too."""
        if not self._act(thread.actions):
            return
        free = self._program.code[thread.at]
        if not isinstance(free, FreeAt):
            raise TypeError("not at free text")
        # A way that took for a tool's name what this one knows by heart ("to=user") has lost against it.
        others = [way for way in self._threads if not any(action == "name" for action, _ in way.actions)]
        exits = with_exits(self._program.free_exits(thread.at), first_exits(self._program, others))
        may_stop = any(isinstance(self._program.code[at], StopAt) for at, _ in self._program.closure(free.next))
        text = FreeText.of(exits, free.field, may_stop=may_stop)
        if free.field == "reasoning":
            # A model may skip the reasoning that its prompt opens: what may begin a turn then comes first of all.
            text = FreeText.of(
                with_exits(exits, self._program.home_exits), free.field, may_stop=may_stop, once_begun=text
            )
        self._enter_free(text, fresh=True)

    def _in_gap(self, buffer: str, i: int) -> tuple[int, bool]:
        while i < len(buffer):
            if len(self._threads) == 1 and (due := text_due(self._program, self._threads[0], buffer, i)):
                i += len(due)
                self._raw.append(due)
                self._threads = behind_text(self._program, self._threads[0], len(due))
                if not self._threads[0].offset:
                    self._arrive()
                if self._mode != self._in_gap:
                    return i, False
                continue
            char = buffer[i]
            alive: list[Thread] = []
            chosen = None
            for thread in self._threads:
                chosen = step(self._program, thread, char, alive)
                if chosen is not None:
                    break
            if chosen is not None and self._may_be_call(chosen, char, alive):
                self._text_instead, chosen = chosen, None
            if self._text_instead is not None:
                alive = [way for way in alive if calls_any(way, self._expected.keys())]
                chosen = chosen if chosen is not None and calls_any(chosen, self._expected.keys()) else None
            if chosen is not None:
                self._text_instead = None
                self._commit(chosen)
                return i, False
            if not alive and self._text_instead is not None:
                self._again = self._as_text(self._text_instead)
                return i, False
            if not alive:
                self._recover(self._threads, may_stop=True)
                return i, False
            self._threads = alive
            self._raw.append(char)
            i += 1
            if char.isspace():
                self._settle()
            else:
                self._arrive()
            if self._mode != self._in_gap:
                return i, False
        return i, True

    def _arrive(self) -> None:
        """Prescribed text was taken whole: where the turn may end here, it needs no explaining later."""
        self._settle()
        stops = (isinstance(self._program.code[t.at], StopAt) and not t.actions for t in self._threads)
        if self._mode == self._in_gap and any(stops):
            self._forget()

    def _act(self, actions: tuple[Action, ...]) -> bool:
        """Tell what a way did; False where it closed a call that never had a name, whose text is unreadable then."""
        for action, text in actions:
            match action:
                case "begin":
                    self._emit.begin()
                case "name":
                    self._emit.name(text)
                case "id":
                    self._emit.id(text.replace("{name}", self._emit.tool))
                case _:
                    if not self._emit.end():
                        self._recover(())
                        return False
                    self._forget()
        if self._emit.in_named_call:
            self._forget()
        return True

    def _commit(self, thread: Thread) -> None:
        """Go the one way that is left, into its body or free text."""
        instruction = self._program.code[thread.at]
        if isinstance(instruction, FreeAt):
            self._begin_free(thread)
            return
        if not self._act(thread.actions):
            return
        if isinstance(instruction, JsonAt | ArgumentsAt):
            expected = self._expected.get(self._emit.tool, UNKNOWN)
            self._answer = self._answer_instead(thread) if self._value else None
            tools = None if self._answer is None else self._expected.keys()
            body = body_of(instruction, self._emit, expected, raw_content=self._value, tools=tools)
            self._enter_body(body, instruction.next)

    def _may_be_call(self, chosen: Thread, char: str, alive: list[Thread]) -> bool:
        """Whether text that may be free is also what calls without a mark begin with: they come first."""
        is_free = isinstance(self._program.code[chosen.at], FreeAt)
        return is_free and bool(alive) and char in self._program.first_characters

    def _as_text(self, way: Thread) -> str:
        """What looked like a call is text after all: enter it; what was taken of it, to be read again."""
        taken = "".join(self._raw[self._kept :])
        self._text_instead = None
        self._begin_free(way)
        return taken

    def _answer_instead(self, chosen: Thread) -> Thread | None:
        """The way on which the JSON that begins is the answer, if there is one: the call only wins if it is one."""
        code = self._program.code
        return next((way for way in self._threads if way != chosen and isinstance(code[way.at], FreeAt)), None)

    # Bodies

    def _enter_body(self, body: Body, after: int | FreeText) -> None:
        self._mode = self._in_body
        self._body = body
        self._after_body = after
        self._told = self._emit.in_named_call

    def _in_body(self, buffer: str, i: int) -> tuple[int, bool]:
        if self._body is None:
            raise TypeError("not in a body")
        events = len(self._emit.events)
        end, status = self._body.consume(buffer, i)
        self._told = self._told or len(self._emit.events) > events
        if self._told:
            self._forget()
        else:
            self._raw.append(buffer[i:end])
            self._kept = len(self._raw)
        after = self._after_body
        if status is Status.MORE:
            return end, True
        if status is Status.FAILED and self._answer is not None and not self._told:
            self._again = "".join(self._raw)
            self._begin_free(self._answer)
        elif status is Status.FAILED:
            self._recover(() if isinstance(after, FreeText) else ways(self._program, after))
        elif isinstance(after, FreeText):
            self._enter_free(after)
            self._after_value = True
        else:
            self._enter_gap(ways(self._program, after), "".join(self._raw))
        return end, False

    # What cannot be read

    def _recover(self, threads: Iterable[Thread], *, may_stop: bool = False) -> None:
        """No way goes on: what was taken since the last event becomes content, and reading goes on from there.

        What was taken in a gap is read again as text, since a mark may begin in it. Inside a call that was told
        already, what would have ended it still does.
        """
        raw, again = "".join(self._raw[: self._kept]), "".join(self._raw[self._kept :])
        exits = self._program.home_exits
        reason = "expected " + awaited(self._program, threads)
        for thread in threads:
            if may_stop and isinstance(self._program.code[thread.at], StopAt):
                if not self._act(thread.actions):
                    return
                reason = ""
        if self._emit.in_named_call:
            exits = with_exits(exits, first_exits(self._program, threads))
        self._enter_free(FreeText.of(exits, "content", reason))
        self._text(raw)
        self._again = again
