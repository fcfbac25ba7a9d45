"""Characters as the lexer distinguishes them, and what can be said of a lexeme without running it.

The lexer reads bytes: it is already gone too far with the first byte of a character, even where it cannot take the
others. Sets of characters are bit masks over the classes of an `Alphabet`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from toolgram.caching import counted
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import (
    MAX_CODE_POINT,
    CharSet,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    chars,
    children,
)
from toolgram.grammar.until import first_of
from toolgram.grammar.walk import is_plain

_LEADS = (
    *range(0x80, 0x800, 0x40),
    *(0x800, *range(0x1000, 0x10000, 0x1000)),
    *(0x10000, *range(0x40000, 0x110000, 0x40000)),
    MAX_CODE_POINT + 1,
)
"""The first code point that UTF-8 begins with each byte from C2 to F4 (of two, three and four bytes), and the end;
before them every character is a byte of its own."""


END = 1
"""The class of no character: in a set of what may come, that there may be nothing more."""


class Alphabet:
    """The code points in classes that no expression of a grammar distinguishes and that begin with the same byte."""

    def __init__(self, exprs: Iterable[Expr], words: Rules, others: Iterable[str] = '"') -> None:
        """`others`: characters that are told apart, too."""
        cuts: set[int] = set()
        characters = set(others)
        waiting = list(exprs)
        seen: set[str] = set()
        while waiting:
            expr = waiting.pop()
            if isinstance(expr, Literal):
                characters.update(expr.text)
            elif isinstance(expr, Ref):
                waiting += [] if expr.name in seen else [words[expr.name]]
                seen.add(expr.name)
            elif is_plain(expr):
                cuts.update(_cuts_inside(expr))
            else:
                waiting += children(expr)
        cuts.update(_around(characters))
        inside = {bisect_right(_LEADS, cut) for cut in cuts if _LEADS[0] < cut < _LEADS[-1] and cut not in _LEADS}
        blocks = [(_LEADS[number - 1], _LEADS[number]) for number in sorted(inside)]
        self._cuts = sorted(cuts.union(*blocks))
        self._chars: dict[str, int] = {}
        self._sets: dict[CharSet, int] = {}
        self._blocks = [(2 << self._class(end - 1)) - (1 << self._class(begin)) for begin, end in blocks]

    def is_like(self, other: Alphabet) -> bool:
        """Whether both have the same classes."""
        return self._cuts == other._cuts

    @property
    def everything(self) -> int:
        """All classes."""
        return (2 << self._class(MAX_CODE_POINT)) - 1

    @property
    def characters(self) -> int:
        """All classes of characters."""
        return self.everything ^ END

    def alike(self, mask: int) -> int:
        """The classes of all characters that begin with the same byte as one of these."""
        for block in self._blocks:
            if mask & block:
                mask |= block
        return mask

    def of_set(self, charset: CharSet) -> int:
        """The classes of a character set."""
        if charset not in self._sets:
            mask = 0
            for low, high in charset.ranges:
                mask |= (2 << self._class(high)) - (1 << self._class(low))
            self._sets[charset] = mask
        return self._sets[charset]

    def set_of(self, mask: int) -> CharSet | None:
        """The characters of these classes; None for all that there are, and what is no character."""
        if mask == self.everything:
            return None
        bounds = [0, *self._cuts, MAX_CODE_POINT + 1]
        return chars(*((bounds[at - 1], bounds[at] - 1) for at in range(1, len(bounds)) if mask >> at & 1))

    def of_char(self, char: str) -> int:
        """The class of a character."""
        if char in self._chars:
            return self._chars[char]
        mask = 1 << self._class(ord(char))
        if char.isascii():  # few characters, as an alphabet may be there for long
            self._chars[char] = mask
        return mask

    def of_chars(self, text: str) -> int:
        """The classes of all characters of a text."""
        return _union(map(self.of_char, set(text)))

    def _class(self, code: int) -> int:
        """Its class; class 0 is that of END."""
        return 1 + bisect_right(self._cuts, code)


@found_once
def _cuts_inside(expr: Expr) -> frozenset[int]:
    """Where the sets of characters begin and end that an expression is made of."""
    cuts: set[int] = set()
    characters: set[str] = set()
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, CharSet):
            cuts.update(code for low, high in part.ranges for code in (low, high + 1))
        elif isinstance(part, Literal | Text):
            characters.update(part.text if isinstance(part, Literal) else "".join(part.without))
        else:
            waiting += children(part)
    return frozenset(cuts.union(_around(characters)))


def _around(characters: Iterable[str]) -> Iterator[int]:
    """Where each of these characters begins and ends."""
    for code in map(ord, characters):
        yield code
        yield code + 1


class Letters(NamedTuple):
    """Whether the empty string is a word; the characters that words begin with, go on with, and have at all."""

    nullable: bool
    first: int
    later: int
    every: int


def letters(expr: Expr, alphabet: Alphabet, words: Callable[[str], Letters]) -> Letters:
    """What an expression is made of: never too few characters, but maybe too many in `later`."""
    if isinstance(expr, Ref):
        return words(expr.name)
    if isinstance(expr, Sequence | Choice | Repeat) and is_plain(expr):
        nullable, *sets = _own_letters(expr)
        return Letters(nullable, *(alphabet.everything if each is None else alphabet.of_set(each) for each in sets))
    return _letters(expr, alphabet, lambda part: letters(part, alphabet, words))


@counted(128)  # which of a text with several markers takes as long as a tool
def _own_letters(expr: Expr) -> tuple[bool, CharSet | None, CharSet | None, CharSet | None]:
    """The same in sets of characters, of an expression without words."""
    own = Alphabet((expr,), {})

    def of_part(part: Expr) -> Letters:
        return _letters(part, own, of_part)

    nullable, first, later, every = of_part(expr)
    return nullable, own.set_of(first), own.set_of(later), own.set_of(every)


def _letters(expr: Expr, alphabet: Alphabet, of_part: Callable[[Expr], Letters]) -> Letters:
    if isinstance(expr, Literal):
        first, later = alphabet.of_chars(expr.text[:1]), alphabet.of_chars(expr.text[1:])
        return Letters(not expr.text, first, later, first | later)
    if isinstance(expr, CharSet):
        mask = alphabet.of_set(expr)
        return Letters(nullable=False, first=mask, later=0, every=mask)
    if isinstance(expr, Text):
        everything = alphabet.everything
        return Letters(nullable=True, first=alphabet.of_set(first_of(expr)), later=everything, every=everything)
    if isinstance(expr, Sequence):
        return _in_sequence(list(map(of_part, expr.items)))
    if isinstance(expr, Choice):
        parts = list(map(of_part, expr.options))
        nullable = any(part.nullable for part in parts)
        return Letters(nullable, *[_union([part[place] for part in parts]) for place in (1, 2, 3)])
    if isinstance(expr, Repeat):
        part = of_part(expr.item)
        later = part.later if expr.max == 1 else part.every
        return Letters(part.nullable or not expr.min, part.first, later, part.every)
    raise TypeError(f"not a regular expression: {expr!r}")


def _in_sequence(parts: list[Letters]) -> Letters:
    first = 0
    for part in parts:
        first |= part.first
        if not part.nullable:
            break
    later = _union((*(part.later for part in parts[:1]), *(part.every for part in parts[1:])))
    return Letters(all(part.nullable for part in parts), first, later, _union(part.every for part in parts))


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
