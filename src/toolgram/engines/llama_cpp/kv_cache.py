"""Which sequence of the model holds what, so that a prompt is not read again where it is known.

Where sequences share the memory of the model, a pass looks at every place in it for each of its tokens, whoever the
place belongs to: 5,000 tokens that nobody uses make a pass of 16 a third longer. So what ended is put aside before
long, to ordinary memory. To put a token aside and to fetch it costs as much as to have it there while ten are written.

Layers that are recurrent have one state, that after all that was read: it goes on from there, or from a place where it
was noted. Such places are before the end of a prompt, which the next one of a conversation has in common with it, where
a prompt parts from others, as after the same tools, and every few thousand tokens.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, TypeVar

from toolgram.engines.llama_cpp.gguf_model import Model, State

_PATIENCE = 64  # tokens that others evaluate before what ended is put aside
_MOST = 256  # texts that are aside: each is compared with each prompt
_WORTH_FETCHING = 4  # tokens, beyond those that a sequence has: to read them takes longer
_WORTH_NOTING = 64  # tokens of a prompt, from the last place where its states were noted
_BEFORE_END = 16  # tokens of a prompt that ask for the answer, and may not be in the next one
_MOST_NOTED = 4  # places of a sequence: the first, which many may have in common, and the last ones
_EVERY = 4096  # tokens between two places where states are noted whoever may go on from there


class Noted(NamedTuple):
    """The states of the layers that are recurrent, after so many tokens."""

    length: int
    state: State


@dataclass(slots=True, eq=False)
class Slot:
    """A sequence of the model, and the tokens that it has read."""

    sequence: int
    tokens: list[int]
    steady: int  # how many of the first tokens were evaluated in whole grains
    used: int = 0  # how many tokens had been evaluated in all when it was last used
    tidy: bool = False  # in the order of the text from the start of the memory, with nothing of others between
    noted: tuple[Noted, ...] = ()
    to_note: list[int] = field(default_factory=list[int])  # after how many tokens of its prompt, in order

    @property
    def next_note(self) -> int | None:
        """After how many tokens more its states are to be noted."""
        return self.to_note[0] - len(self.tokens) if self.to_note else None


@dataclass(frozen=True, slots=True, eq=False)
class _Aside:
    """What a sequence had read, outside of the model."""

    tokens: Sequence[int]
    steady: int
    state: State
    noted: tuple[Noted, ...]


_Known = TypeVar("_Known", Slot, _Aside)


class Slots:
    """The sequences of a model: those in use, and those that ended, which are put aside after a while.

    Where memories are apart, that is only when its place is needed. What a new prompt has in common with any of them is
    not read again, in whole grains of so many tokens. Of those that ended the least recently used goes first. Aside
    there are as many bytes at most as the model tells.

    Where memory is shared, attention is summed up in the order of the places in it, so that the last digits of the
    logits depend on where the tokens are. A sequence that is taken while no other is in use therefore has the memory to
    itself, and lies there in order: then the same prompt gets the same answer again.
    """

    def __init__(self, model: Model, grain: int = 1) -> None:
        self._model = model
        self._grain = grain
        self._free = list(range(model.sequences))
        self._used: list[Slot] = []
        self._ended: list[Slot] = []  # the least recently used first
        self._aside: list[_Aside] = []  # so too
        self._evaluated = 0
        self._notes = not model.shares and grain == 1

    def take(self, prompt: Sequence[int]) -> Slot:
        """A sequence that has as much of the prompt as any has, but never all: the last token gives the logits.

        There must be one that is not in use.
        """
        if not self._used and not self._model.apart:
            self._tidy_up(prompt)
        slot = self._taken(prompt)
        slot.steady = len(prompt) - 1
        slot.to_note = self._worth_noting(slot, prompt) if self._notes else []
        slot.tidy = not self._used
        for other in self._used:
            other.tidy = False
        self._used.append(slot)
        return slot

    def _worth_noting(self, slot: Slot, prompt: Sequence[int]) -> list[int]:
        """After how many tokens another prompt is likely to go on otherwise."""
        others = (*self._used, *self._ended, *self._aside)
        parting = {common(other.tokens, prompt) for other in others if other is not slot}
        places = {max(parting, default=0), len(prompt) - _BEFORE_END, *range(_EVERY, len(prompt), _EVERY)}
        found: list[int] = []
        for place in sorted(places):
            if place - max([len(slot.tokens), *found]) >= _WORTH_NOTING and place < len(prompt):
                found.append(place)
        return found

    def will_part(self, slot: Slot, length: int) -> None:
        """Another prompt waits that goes on otherwise after so many tokens of the one that the sequence reads."""
        if self._notes and length - len(slot.tokens) >= _WORTH_NOTING and length not in slot.to_note:
            insort(slot.to_note, length)

    def note(self, slot: Slot) -> None:
        """Note the states of a sequence, where it has read as far as they are to be noted."""
        if slot.next_note == 0:
            noted = Noted(slot.to_note.pop(0), self._model.save(slot.sequence, states=True))
            slot.noted = (*slot.noted[:1], *slot.noted[1:][-_MOST_NOTED + 2 :], noted)
            self._keep_within_bounds()

    def _tidy_up(self, prompt: Sequence[int]) -> None:
        """Put aside all that ended, except what the prompt goes on from if it lies in order."""
        donor, _ = self._donor(prompt)
        for slot in self._ended[:]:
            if slot is not donor or not slot.tidy:
                self._put_aside(slot)

    def _taken(self, prompt: Sequence[int]) -> Slot:
        donor, length = self._donor(prompt)
        slot = self._fetched(prompt, length + _WORTH_FETCHING)
        if slot is not None:
            return slot
        if donor in self._ended:
            donor.used = self._evaluated
            self._ended.remove(donor)
            self._ended.append(donor)
        if donor is not None and self._next() is donor:
            slot = donor
            self._ended.remove(slot)
            if len(slot.tokens) - length >= _WORTH_FETCHING:
                self._copy_aside(slot)
            self._cut(slot, length)
        else:
            slot = Slot(self._empty(), [], 0)
            if donor is not None:
                self._model.copy(donor.sequence, slot.sequence, length)
                slot.tokens, slot.noted = donor.tokens[: length if self._model.shares else None], donor.noted
                self.cut(slot, length)
        return slot

    def _next(self) -> Slot | None:
        """The one that ended whose place the next text takes; None if there is a place that nobody has.

        Where memories are apart, it is the first place that is not in use: llama.cpp evaluates neighbours together.
        Where memory is shared, and nobody uses it, there is one at most that ended, and it must give way.
        """
        if self._model.apart and self._ended:
            first = min(self._ended, key=lambda slot: slot.sequence)
            return first if first.sequence < min(self._free, default=first.sequence + 1) else None
        return None if self._free and (self._used or not self._ended) else self._ended[0]

    def _empty(self) -> int:
        """A sequence that has nothing."""
        if (slot := self._next()) is not None:
            self._put_aside(slot)
        sequence = min(self._free)
        self._free.remove(sequence)
        return sequence

    def _donor(self, prompt: Sequence[int]) -> tuple[Slot | None, int]:
        return self._best([*self._used, *reversed(self._ended)], prompt)

    def _best(self, known: Sequence[_Known], prompt: Sequence[int]) -> tuple[_Known | None, int]:
        """Which has most in common with a prompt, and how much, without its last token; of equals the first."""
        best: _Known | None = None
        length = 0
        for each in known if self._model.shares or self._notes else ():
            shared = min(common(each.tokens, prompt), len(prompt) - 1)
            if not self._model.shares and shared < len(each.tokens):
                shared = noted.length if (noted := _last(each.noted, shared)) else 0
            if self._grain > 1:
                shared = min(shared, each.steady) // self._grain * self._grain
            if shared > length:
                best, length = each, shared
        return best, length

    def _fetched(self, prompt: Sequence[int], least: int) -> Slot | None:
        """A sequence with what was put aside, if that has at least so much of the prompt, and there is room for it."""
        found, length = self._best(self._aside[::-1], prompt)
        if found is None or length < least:
            return None
        self._aside.remove(found)
        self._aside.append(found)
        sequence = self._empty()
        while not self._model.restore(sequence, found.state):
            if not self.evict():
                self._free.append(sequence)
                return None
        slot = Slot(sequence, list(found.tokens), found.steady, noted=found.noted)
        self.cut(slot, length)
        return slot

    def end(self, slot: Slot) -> None:
        """The sequence is not in use any more; what it read is kept for others."""
        self._used.remove(slot)
        if not (self._model.shares or self._notes):
            self._drop(slot)
            return
        if self._model.shares:  # those that it begins like have nothing that it does not have
            for other in self._ended[:]:
                if _begins(other, slot):
                    self._ended.remove(other)
                    self._drop(other)
            self._aside = [other for other in self._aside if not _begins(other, slot)]
        slot.used = self._evaluated
        self._ended.append(slot)

    def evaluated(self, tokens: int) -> None:
        """Tell that there was a pass with so many tokens of several: what nobody used for a while is put aside."""
        self._evaluated += tokens
        while not self._model.apart and self._ended and self._evaluated - self._ended[0].used > _PATIENCE:
            self.evict()

    def cut(self, slot: Slot, length: int) -> None:
        """Keep so many tokens of a sequence; where it has states, only as many as these were noted after."""
        if length < len(slot.tokens):
            self._cut(slot, length)

    def suspend(self, slot: Slot) -> None:
        """The sequence is not in use any more, and its memory is needed."""
        self._used.remove(slot)
        self._drop(slot)

    def evict(self) -> bool:
        """Put aside the sequence that was used least recently of those that ended; False if there is none."""
        if not self._ended:
            return False
        self._put_aside(self._ended[0])
        return True

    def _put_aside(self, slot: Slot) -> None:
        self._ended.remove(slot)
        self._copy_aside(slot)
        self._drop(slot)

    def _copy_aside(self, slot: Slot) -> None:
        self._aside.append(_Aside(list(slot.tokens), slot.steady, self._model.save(slot.sequence), slot.noted))
        self._keep_within_bounds()

    def _keep_within_bounds(self) -> None:
        """Forget what was put aside first, and then what was noted first."""
        while self._aside and (len(self._aside) > _MOST or self._size() > self._model.aside):
            del self._aside[0]
        for slot in chain(self._ended, self._used):
            while slot.noted and self._size() > self._model.aside:
                slot.noted = slot.noted[1:]

    def _size(self) -> int:
        """The bytes of what is outside of the model."""
        noted = {id(each.state): len(each.state) for slot in (*self._ended, *self._used) for each in slot.noted}
        noted |= {id(each.state): len(each.state) for other in self._aside for each in other.noted}
        return sum(noted.values()) + sum(len(other.state) for other in self._aside)

    def restore(self) -> None:
        """After a call that was broken off: let the model forget what the slots do not have."""
        for slot in self._used:
            self._cut(slot, len(slot.tokens))

    def forget(self) -> None:
        """Everything, after a failure of which nobody knows what it left."""
        self._model.clear()
        self._free = list(range(self._model.sequences))
        self._used.clear()
        self._ended.clear()
        self._aside.clear()

    def _cut(self, slot: Slot, length: int) -> None:
        if not self._model.cut(slot.sequence, length):
            length = self._go_back(slot, length)
        del slot.tokens[length:]
        slot.noted = tuple(noted for noted in slot.noted if noted.length <= length)

    def _go_back(self, slot: Slot, length: int) -> int:
        """Let a sequence have the last states that were noted after so many tokens at most; after how many."""
        noted = _last(slot.noted, length)
        if noted is not None and self._model.go_back(slot.sequence, noted.state, noted.length):
            return noted.length
        self._model.cut(slot.sequence, 0)
        return 0

    def _drop(self, slot: Slot) -> None:
        self._model.cut(slot.sequence, 0)
        self._free.append(slot.sequence)


def _last(noted: Sequence[Noted], most: int) -> Noted | None:
    """The last that were noted after so many tokens at most; they are in order."""
    return next((each for each in reversed(noted) if each.length <= most), None)


def _begins(one: Slot | _Aside, other: Slot) -> bool:
    """Whether the other has all that the one has."""
    return common(one.tokens, other.tokens) == len(one.tokens)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common from the start."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return bisect_left(range(size), True, key=lambda at: one[: at + 1] != other[: at + 1])  # noqa: FBT003 - no name
