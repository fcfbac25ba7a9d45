"""What the states of a reader have in common: where events go, and what was taken and is not explained yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from toolgram.conversation.events import Prefill
from toolgram.conversation.message import Message
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.instructions import Action
from toolgram.wire.program import Program
from toolgram.wire.reader.emitter import Emitter
from toolgram.wire.reader.free_text import FreeText
from toolgram.wire.reader.gap import Thread

_LONGEST_SPACE = 64  # characters that are held back; more of them are text


class State(ABC):
    """A place in which a reader may be; `threads` are the ways that it followed to there, while that matters."""

    __slots__ = ()
    threads: list[Thread]

    @property
    def awaits_a_name(self) -> bool:
        """Whether a word that comes next, whatever its letters, is the tool's name."""
        return False

    @abstractmethod
    def consume(self, buffer: str, start: int) -> tuple[int, bool]:
        """Take what can be read up to the next state; whether more text is needed."""

    @abstractmethod
    def end(self, rest: str, *, cut: bool) -> bool:
        """The text is over, `rest` was not taken: settle what is open; whether the turn is complete."""

    def held(self, rest: str) -> Message:
        """What is held back, since more text may make it a mark, as what it is if it does not."""
        del rest
        return Message()

    def closers(self, rest: str) -> tuple[str, ...]:
        """What may end the reasoning that the reader is in; nothing outside of reasoning."""
        del rest
        return ()


@dataclass(slots=True)
class Opened:
    """What the prompt holds of the turn: it is part of the message, never of what is streamed.

    `held` characters of it wait in the buffer. With `may_skip` it only opens reasoning: it counts if the model reasons.
    """

    prefill: Prefill | None = None
    held: int = 0
    may_skip: bool = False

    def settle(self, *, is_none: bool) -> None:
        """A mark came: a prefill that might be skipped is none, or counts."""
        if self.may_skip and is_none:
            self.prefill = None
        self.may_skip = False

    def drop(self, count: int) -> None:
        """So many characters were taken that are no text: of those that were held, they are the first."""
        self.held = max(0, self.held - count)

    def take(self, field_: str, text: str) -> str:
        """The text without what of it was held; that goes to its field of the prefill."""
        if not self.held or self.prefill is None:
            return text
        held, text = text[: self.held], text[self.held :]
        self.held -= len(held)
        if field_ == "reasoning":
            self.prefill = replace(self.prefill, reasoning=self.prefill.reasoning + held)
        else:
            self.prefill = replace(self.prefill, content=self.prefill.content + held)
        return text


@dataclass(slots=True)
class Reading:
    """What the states of a reader share; `value`: the content is a JSON value; `trims`: it does not end in white space.

    What was taken since the last event stands in `before` and, from the gap that the reader is in, in `here`: if no way
    goes on, the first becomes content, and the second is read `again`, since a mark may begin in it. With `committed` a
    call has begun that ended the reasoning: no longer can it be text.
    """

    program: Program
    emit: Emitter
    expected: Mapping[str, Expected]
    value: bool
    trims: bool = False
    opened: Opened = field(default_factory=Opened)
    before: list[str] = field(default_factory=list[str])
    here: list[str] = field(default_factory=list[str])
    again: str = ""
    committed: bool = False
    state: State = field(init=False)

    def forget(self) -> None:
        """What was taken so far is reported, or is not of the model: it needs no explaining any more."""
        self.before.clear()
        self.here.clear()

    def taken(self) -> str:
        """All that was taken since the last event."""
        return "".join(self.before) + "".join(self.here)

    def kept(self, free: FreeText, text: str) -> str:
        """The text without the white space at its end that is none of it, unless more text comes."""
        if not self.trims or free.field != "content":
            return text
        kept = text.rstrip()
        return kept if len(text) - len(kept) <= _LONGEST_SPACE else text

    def text(self, free: FreeText, text: str) -> None:
        """Free text goes to its field; what of it the prompt held already is part of the prefill."""
        text = self.opened.take(free.field, text)
        if free.unreadable:
            self.emit.unreadable(text, free.unreadable)
        elif free.field == "reasoning":
            self.emit.reasoning(text)
        else:
            self.emit.content(text)

    def act(self, actions: tuple[Action, ...]) -> bool:
        """Report what a way did; False where it closed a call that never had a name."""
        emit = self.emit
        for action, text in actions:
            match action:
                case "begin":
                    emit.begin()
                case "name":
                    emit.name(text)
                case "again":
                    emit.unreadable("" if text == emit.tool else text, "the call has another name before")
                case "id":
                    emit.id(text.replace("{name}", emit.tool))
                case _:
                    if not emit.end():
                        return False
                    self.forget()
        if emit.in_named_call:
            self.committed, self.opened.held = False, 0
            self.forget()
        return True

    def tell_committed(self, ways: Iterable[tuple[Action, ...]]) -> None:
        """Where it was settled that a call begins, of a tool that is offered, it stays one, whatever comes of it."""
        if self.committed and not self.emit.in_named_call:
            self.act(next((way for way in ways if any(text in self.expected for _, text in way)), ()))
        self.committed = False
