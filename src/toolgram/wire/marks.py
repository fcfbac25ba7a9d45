"""Finding the first of several marks in text that is still arriving."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from toolgram.grammar.ir import Expr, Token, seq
from toolgram.template.markers import TOKEN


@dataclass(frozen=True)
class Marks:
    """Some strings to look for, and what it takes to find them in one pass."""

    texts: tuple[str, ...]
    find: re.Pattern[str] | None
    _first: re.Pattern[str] | None
    _longest: int

    @staticmethod
    @lru_cache(maxsize=512)
    def of(texts: tuple[str, ...], hold: tuple[str, ...] = ()) -> Marks:
        """Marks to find; `hold` are strings that may not be let go before they are whole, besides the marks."""
        held = tuple(dict.fromkeys((*texts, *hold)))
        # A mark that begins another is met first, whatever follows: shortest first, so that no more text is needed.
        find = re.compile("|".join(map(re.escape, sorted(set(texts), key=len)))) if texts else None
        first = re.compile("[" + "".join(re.escape(text[0]) for text in held) + "]") if held else None
        return Marks(held, find, first, max(map(len, held), default=0))

    def begins(self, buffer: str, at: int) -> bool:
        """Whether one of the strings stands at this place."""
        return any(buffer.startswith(text, at) for text in self.texts)

    def held_back(self, buffer: str, start: int) -> int:
        """Where the longest tail of the buffer begins that may be the beginning of one of the strings."""
        if self._first is None:
            return len(buffer)
        i = max(start, len(buffer) - self._longest + 1)
        while (match := self._first.search(buffer, i)) is not None:
            i = match.start()
            tail = buffer[i:]
            if any(text.startswith(tail) for text in self.texts):
                return i
            i += 1
        return len(buffer)


_LONGEST_KNOWN = 100  # of a text that is remembered


def as_tokens(text: str) -> Expr:
    """The text with what may be control tokens in it as tokens, so that a vocabulary can bind them."""
    return _short_as_tokens(text) if len(text) <= _LONGEST_KNOWN else _as_tokens(text)


@lru_cache(maxsize=1024)  # those of a format are in every call
def _short_as_tokens(text: str) -> Expr:
    return _as_tokens(text)


def _as_tokens(text: str) -> Expr:
    return seq(*(Token(piece) if TOKEN.fullmatch(piece) else piece for piece in TOKEN.split(text)))
