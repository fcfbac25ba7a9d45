"""Which sequence of the model holds what, so that a prompt is not read again where it is known."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from toolgram.engines.model import Model


@dataclass(slots=True, eq=False)
class Slot:
    """A sequence of the model, and the tokens that it has read."""

    sequence: int
    tokens: list[int]


class Slots:
    """The sequences of a model: those in use, and those that ended, which stay until their place is needed.

    What a new prompt has in common with any of them is shared. Of those that ended the least recently used goes first.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._free = list(range(model.sequences))
        self._used: list[Slot] = []
        self._ended: list[Slot] = []  # the least recently used first

    def take(self, prompt: Sequence[int]) -> Slot:
        """A sequence that has as much of the prompt as any has, but never all: the last token gives the logits.

        There must be one that is not in use.
        """
        donor, length = self._donor(prompt)
        if donor in self._ended:
            self._ended.remove(donor)
            self._ended.append(donor)
        if not self._free and self._ended[0] is donor:
            slot = self._ended.pop()
            self._cut(slot, length)
        else:
            if not self._free:
                self.evict()
            slot = Slot(self._free.pop(), [])
            if donor is not None:
                self._model.copy(donor.sequence, slot.sequence, length)
                slot.tokens = donor.tokens[:length]
        self._used.append(slot)
        return slot

    def _donor(self, prompt: Sequence[int]) -> tuple[Slot | None, int]:
        best, length = None, 0
        if self._model.shares:
            for slot in (*self._used, *reversed(self._ended)):
                shared = min(common(slot.tokens, prompt), len(prompt) - 1)
                if shared > length:
                    best, length = slot, shared
        return best, length

    def end(self, slot: Slot) -> None:
        """The sequence is not in use any more; what it read is kept for others."""
        self._used.remove(slot)
        if not self._model.shares:
            self._drop(slot)
            return
        for other in self._ended[:]:
            if common(other.tokens, slot.tokens) == len(other.tokens):  # nothing that the new one does not have
                self._ended.remove(other)
                self._drop(other)
        self._ended.append(slot)

    def cut(self, slot: Slot, length: int) -> None:
        """Keep so many tokens of a sequence; a model that shares nothing may keep none."""
        if length < len(slot.tokens):
            self._cut(slot, length)

    def suspend(self, slot: Slot) -> None:
        """The sequence is not in use any more, and its memory is needed."""
        self._used.remove(slot)
        self._drop(slot)

    def evict(self) -> bool:
        """Forget the sequence that was used least recently of those that ended; False if there is none."""
        if not self._ended:
            return False
        self._drop(self._ended.pop(0))
        return True

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

    def _cut(self, slot: Slot, length: int) -> None:
        if not self._model.cut(slot.sequence, length):  # a recurrent model: it must begin again
            self._model.cut(slot.sequence, 0)
            length = 0
        del slot.tokens[length:]

    def _drop(self, slot: Slot) -> None:
        self._model.cut(slot.sequence, 0)
        self._free.append(slot.sequence)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common from the start."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return bisect_left(range(size), True, key=lambda at: one[: at + 1] != other[: at + 1])  # noqa: FBT003 - no name
