"""Characters in classes, so that an automaton need not distinguish what no pattern does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from toolgram.grammar.ir import CharSet, chars, not_chars

ANY_CHAR = not_chars()


class Alphabet:
    """The code points in classes ("letters", by number) that some character sets do not distinguish."""

    def __init__(self, charsets: Iterable[CharSet]) -> None:
        toggles: dict[int, int] = defaultdict(int)
        distinct = list(dict.fromkeys(charsets))
        for index, charset in enumerate((ANY_CHAR, *distinct)):
            for low, high in charset.ranges:
                toggles[low] ^= 1 << index
                toggles[high + 1] ^= 1 << index
        ranges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        inside = 0
        for low, end in pairwise(sorted(toggles)):
            inside ^= toggles[low]
            if inside:
                ranges[inside].append((low, end - 1))
        self._ranges = list(ranges.values())
        self.every = tuple(range(len(ranges)))
        self._letters: dict[CharSet, tuple[int, ...]] = {ANY_CHAR: self.every}
        for index, charset in enumerate(distinct, 1):
            self._letters[charset] = tuple(letter for letter, key in enumerate(ranges) if key >> index & 1)
        self._charsets: dict[tuple[int, ...], CharSet] = {}

    def letters(self, charset: CharSet) -> tuple[int, ...]:
        """The classes that make up one of the character sets."""
        return self._letters[charset]

    def charset(self, letters: tuple[int, ...]) -> CharSet:
        """The characters of some classes."""
        if letters not in self._charsets:
            self._charsets[letters] = chars(*(pair for letter in letters for pair in self._ranges[letter]))
        return self._charsets[letters]


def size(charset: CharSet) -> int:
    """The number of characters in a set."""
    return sum(high - low + 1 for low, high in charset.ranges)


def members(charset: CharSet) -> Iterable[str]:
    """The characters of a set, in order."""
    return (chr(code) for low, high in charset.ranges for code in range(low, high + 1))
