"""Free text and the literal that ends it, read character by character over literals.

As an automaton of the lexer it would be built over the classes of an alphabet first, which takes longer than it is then
used where the text must not begin with any of many names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from toolgram.grammar.dialects.lark.lexing.alphabet import Alphabet
from toolgram.grammar.ir import Expr, Literal, Sequence, Text
from toolgram.grammar.until import State, automaton

_At = TypeVar("_At")


class CharReader(Protocol[_At]):
    """What reads words character by character: an automaton, or free text."""

    @property
    def alphabet(self) -> Alphabet: ...
    @property
    def start(self) -> _At: ...
    def after(self, place: _At, char: str) -> _At | None: ...
    def accepts(self, place: _At) -> bool: ...
    def next(self, place: _At) -> int: ...


class Place(NamedTuple):
    """How far a word may have got: the state of the text, if it may still go on; and how much of what ends it."""

    text: int | None
    ends: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FreeText:
    """A text, by the states of its automaton, and what ends it: nothing, or a literal."""

    states: tuple[State, ...]
    end: str
    alphabet: Alphabet

    @classmethod
    def of(cls, expr: Expr, alphabet: Alphabet) -> FreeText | None:
        """The expression as such; None where it is none."""
        match expr:
            case Text():
                return cls(automaton(expr.without, expr.seen), "", alphabet)
            case Sequence((Text(without, seen), Literal(end))):
                return cls(automaton(without, seen), end, alphabet)
            case _:
                return None

    @property
    def start(self) -> Place:
        """Before the first character."""
        return Place(0, ())

    def after(self, place: Place, char: str) -> Place | None:
        """The place after a character; None where no word goes on with it."""
        text, ends = place.text, tuple([read + 1 for read in place.ends if self.end[read : read + 1] == char])
        if text is not None:
            state = self.states[text]
            ends = (*ends, 1) if state.ends and self.end.startswith(char) else ends
            text = state.step(char)
        return None if text is None and not ends else Place(text, ends)

    def accepts(self, place: Place) -> bool:
        """Whether a word may end here."""
        return len(self.end) in place.ends if self.end else self._may_end(place)

    def next(self, place: Place) -> int:
        """The characters that a word can go on with."""
        mask = 0
        if place.text is not None:
            for charset, _ in self.states[place.text].edges:
                mask |= self.alphabet.of_set(charset)
        begun = (*place.ends, 0) if self._may_end(place) else place.ends
        return mask | self.alphabet.of_chars("".join([self.end[read : read + 1] for read in begun]))

    def _may_end(self, place: Place) -> bool:
        return place.text is not None and self.states[place.text].ends
