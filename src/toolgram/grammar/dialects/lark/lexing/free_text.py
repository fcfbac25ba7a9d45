"""Free text and the literal that ends it, read character by character over literals.

As an automaton of the lexer it would be built over the classes of an alphabet first, which takes longer than reading
a few literals, above all where the text must not begin with any of many names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from toolgram.grammar.dialects.lark.lexing.alphabet import Alphabet
from toolgram.grammar.ir import END, Expr, Literal, Sequence, Text, not_chars
from toolgram.grammar.until import Steps, is_no_character, steps_of
from toolgram.work import spend

_At = TypeVar("_At")


class CharReader(Protocol[_At]):
    """What reads words character by character: an automaton, or free text."""

    @property
    def start(self) -> _At: ...
    def after(self, place: _At, char: str) -> _At | None: ...
    def accepts(self, place: _At) -> bool: ...
    def next(self, place: _At) -> int: ...


class Place(NamedTuple):
    """How far a word may have got: the state of the text, if it may still go on; and how much of what ends it."""

    text: str | None
    ends: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FreeText:
    """A text, by the steps of its states, and what ends it: nothing, or a literal."""

    steps: Steps
    end: str
    alphabet: Alphabet

    @classmethod
    def of(cls, expr: Expr, alphabet: Alphabet) -> FreeText | None:
        """The expression as such; None where it is none."""
        match expr:
            case Text(without, seen):
                return cls(steps_of(without, seen), "", alphabet)
            case Sequence((Text(without, seen), Literal(end))):
                return cls(steps_of(without, seen), end, alphabet)
            case _:
                return None

    @property
    def start(self) -> Place:
        """Before the first character."""
        return Place(next(iter(self.steps)), ())

    def after(self, place: Place, char: str) -> Place | None:
        """The place after a character; None where no word goes on with it."""
        spend(len(place.ends))
        ends = [read + 1 for read in place.ends if self.end[read : read + 1] == char]
        if self._may_end(place) and self.end.startswith(char):
            ends.append(1)
        text = None
        if place.text is not None and not is_no_character(char):
            text = self.steps[place.text].get(char, "")
        return None if text is None and not ends else Place(text, tuple(ends))

    def accepts(self, place: Place) -> bool:
        """Whether a word may end here."""
        return len(self.end) in place.ends if self.end else self._may_end(place)

    def next(self, place: Place) -> int:
        """The characters that a word can go on with."""
        begun = (*place.ends, 0) if self._may_end(place) else place.ends
        mask = self.alphabet.of_chars("".join([self.end[read : read + 1] for read in begun]))
        if place.text is None:
            return mask
        refused = [char for char, to in self.steps[place.text].items() if to is None]
        return mask | self.alphabet.of_set(not_chars(*refused))

    def _may_end(self, place: Place) -> bool:
        return place.text is not None and END not in self.steps[place.text]
