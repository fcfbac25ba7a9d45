r"""Signs and white space that the model writes otherwise than the grammar spells them, as in JSON on several lines.

A model that begins a list on several lines wants ` [` and the line break in one token; without that one the likeliest
may be ` []`. One that ends a text by `"}` and a line break, where another member must follow, would be left with tokens
that go on in the text. Meant is what these tokens begin with. And one that forgets to close a list, and closes what is
around it, would be left with a comma.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.llama_cpp.sampling import begin_with, shared

_SIGNS = re.compile(rb"[^\w\\\x80-\xff]+\Z")
_FOLLOWING = re.compile(rb"[\s\"\[\]{}:,]+\Z")  # what may stand beside a value, in whatever order it should not
_OPENING, _CLOSING, _SPACE = b"[{(", b"]})", b" \t\r\n"
_QUOTES = b"\"'"
_BEHIND_A_VALUE = _SPACE + _CLOSING + b"0123456789.eE,;<|\0"  # if it is a number, too; 0: a token of no text
_LEAST = 8.0  # what is less likely than the likeliest by this much, as a logarithm, is not looked at


@dataclass(frozen=True)
class Spelling:
    """Of a vocabulary: the tokens of signs, each with those that it begins with and signs beside values follow, the
    longest first; those that begin with white space or a closing bracket, and the white space that closes nothing;
    those that close, and say of nothing that it follows; those of a quote and more; and those that may not stand behind
    a value."""

    beginnings: Mapping[int, tuple[int, ...]]
    signs: NDArray[np.intp]
    spaced: NDArray[np.bool_]
    closing: NDArray[np.bool_]
    breaks: NDArray[np.bool_]
    ending: NDArray[np.bool_]
    quoted: NDArray[np.bool_]
    elsewhere: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Mapping[bytes, int], first_bytes: NDArray[np.uint8]) -> Spelling:
        """Of the tokens that are text, and the first byte of each token, 0 for one of no text."""
        beginnings: dict[int, tuple[int, ...]] = {}
        for piece, token in texts.items():
            if not _SIGNS.match(piece):
                continue
            first = len(piece) - len(piece.lstrip())  # white space alone says nothing
            cuts = range(len(piece) - 1, first, -1)
            found = tuple(texts[piece[:cut]] for cut in cuts if piece[:cut] in texts and _FOLLOWING.match(piece, cut))
            if found:
                beginnings[token] = found
        spaced, closing, quoted = (begin_with(first_bytes, any_of) for any_of in (_SPACE, _CLOSING, _QUOTES))
        quoted[[texts[quote] for quote in (b'"', b"'") if quote in texts]] = False
        breaks = spaced.copy()
        begun = (piece for piece in texts if piece[:1].isspace())
        breaks[[texts[piece] for piece in begun if piece.lstrip()[:1] in {b"]", b"}", b")"}]] = False
        ending = closing.copy()
        ending[[token for piece, token in texts.items() if b"," in piece]] = False  # `},` says that another follows
        signs = np.fromiter(beginnings, dtype=np.intp)
        elsewhere = ~begin_with(first_bytes, _BEHIND_A_VALUE)
        return cls(beginnings, signs, spaced, closing, breaks, ending, quoted, elsewhere)

    def meant(self, logits: NDArray[np.float32], allowed: NDArray[np.bool_], *, opened: bool) -> NDArray[np.float32]:
        """The logits, in which what signs begin with is as likely as they are, where they are not allowed.

        `opened` where the text so far ends with an opening bracket: white space that may not follow closes no bracket.
        """
        likely = self.signs[~allowed[self.signs] & (logits[self.signs] > logits.max() - _LEAST)]
        meant = [(token, next((one for one in self.beginnings[token] if allowed[one]), None)) for token in likely]
        if pairs := [pair for pair in meant if pair[1] is not None]:
            wanted, instead = np.array(pairs, dtype=np.intp).T
            added = logits[wanted]
            logits = logits.copy()
            np.logaddexp.at(logits, instead, added)
            logits[wanted] = -np.inf  # it is in what is written instead
        logits = self._closed(logits, allowed)
        return self._filled(logits, allowed) if opened else logits

    def _filled(self, logits: NDArray[np.float32], allowed: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The logits behind an opening bracket, where white space is none of what may follow.

        A quote that follows white space is a token of its own: with more, such as `"".`, it is none that begins a text.
        """
        inside = allowed & ~self.closing
        if not inside.any() or not (allowed & self.closing).any() or (allowed & self.spaced).any():
            return logits
        plain = inside & ~self.quoted
        return shared(logits, self.breaks & ~allowed, plain if plain.any() else inside)

    def _closed(self, logits: NDArray[np.float32], allowed: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The logits behind a value: a bracket that may not close there, as another is open, closes that one."""
        closing = allowed & self.closing
        if not closing.any() or (allowed & self.elsewhere).any():
            return logits
        return shared(logits, self.ending & ~allowed, closing)


def is_opening(piece: bytes) -> bool:
    """Whether a bracket opens at the end of a token."""
    return piece[-1:] != b"" and piece[-1] in _OPENING


def is_closing(byte: int) -> bool:
    """Whether this byte closes a bracket."""
    return byte in _CLOSING
