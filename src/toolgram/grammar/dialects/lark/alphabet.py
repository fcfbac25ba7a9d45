"""Characters as the lexer tells them apart, and what can be said of a lexeme without running it.

The lexer reads bytes: it is already gone too far with the first byte of a character, even where it cannot take the
others. Sets of characters are bit masks over the classes of an `Alphabet`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

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
    children,
)
from toolgram.grammar.until import automaton

_LEADS = (
    *range(0x80, 0x800, 0x40),
    *(0x800, *range(0x1000, 0x10000, 0x1000)),
    *(0x10000, *range(0x40000, 0x110000, 0x40000)),
    MAX_CODE_POINT + 1,
)
"""The first code point that UTF-8 begins with each byte from C2 to F4 (of two, three and four bytes), and the end;
before them every character is a byte of its own."""


class Alphabet:
    """The code points in classes that no expression of a grammar tells apart and that begin with the same byte."""

    def __init__(self, exprs: Iterable[Expr], words: Rules) -> None:
        cuts = {ord('"'), ord('"') + 1}
        waiting = list(exprs)
        seen: set[str] = set()
        while waiting:
            expr = waiting.pop()
            if isinstance(expr, Ref):
                waiting += [] if expr.name in seen else [words[expr.name]]
                seen.add(expr.name)
            else:
                waiting += children(expr)
                cuts.update(_cuts(expr))
        inside = {bisect_right(_LEADS, cut) for cut in cuts if _LEADS[0] < cut < _LEADS[-1] and cut not in _LEADS}
        blocks = [(_LEADS[number - 1], _LEADS[number]) for number in sorted(inside)]
        self._cuts = sorted(cuts.union(*blocks))
        self._blocks = [(2 << self._class(end - 1)) - (1 << self._class(begin)) for begin, end in blocks]

    @property
    def everything(self) -> int:
        """All classes."""
        return (2 << self._class(MAX_CODE_POINT)) - 1

    def alike(self, mask: int) -> int:
        """The classes of all characters that begin with the same byte as one of these."""
        for block in self._blocks:
            if mask & block:
                mask |= block
        return mask

    def of_set(self, charset: CharSet) -> int:
        """The classes of a character set."""
        mask = 0
        for low, high in charset.ranges:
            mask |= (2 << self._class(high)) - (1 << self._class(low))
        return mask

    def of_char(self, char: str) -> int:
        """The class of a character."""
        return 1 << self._class(ord(char))

    def _class(self, code: int) -> int:
        """Its class; class 0 is left free for what is no character."""
        return 1 + bisect_right(self._cuts, code)


def _cuts(expr: Expr) -> Iterator[int]:
    """Where sets of characters begin and end in the expression itself."""
    match expr:
        case Literal(text):
            yield from (code + more for code in map(ord, set(text)) for more in (0, 1))
        case CharSet(ranges):
            yield from (code for low, high in ranges for code in (low, high + 1))
        case Text(without):
            yield from (code + more for code in map(ord, set("".join(without))) for more in (0, 1))
        case _:
            pass


class Letters(NamedTuple):
    """Whether the empty string is a word; the characters that words begin with, go on with, and have at all."""

    nullable: bool
    first: int
    later: int
    every: int


def letters(expr: Expr, alphabet: Alphabet, words: Callable[[str], Letters]) -> Letters:
    """What an expression is made of: never too few characters, but maybe too many in `later`."""
    match expr:
        case Literal(text):
            masks = [alphabet.of_char(char) for char in text]
            later = _union(masks[1:])
            return Letters(not text, masks[0] if text else 0, later, later | _union(masks[:1]))
        case CharSet():
            mask = alphabet.of_set(expr)
            return Letters(nullable=False, first=mask, later=0, every=mask)
        case Text(without, seen):
            begun = _union(alphabet.of_set(charset) for charset, _ in automaton(without, seen)[0].edges)
            everything = alphabet.everything
            return Letters(nullable=True, first=begun, later=everything, every=everything)
        case Ref(name):
            return words(name)
        case Sequence(items):
            return _in_sequence([letters(item, alphabet, words) for item in items])
        case Choice(options):
            parts = [letters(option, alphabet, words) for option in options]
            nullable = any(part.nullable for part in parts)
            return Letters(nullable, *(_union(part[place] for part in parts) for place in (1, 2, 3)))
        case Repeat(item, least, most):
            part = letters(item, alphabet, words)
            return Letters(part.nullable or not least, part.first, part.later if most == 1 else part.every, part.every)
        case _:
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
