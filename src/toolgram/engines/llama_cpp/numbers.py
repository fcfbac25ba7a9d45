"""Numbers that the model would go on with, or end, otherwise than the grammar spells them.

A small model that copies `200,000` wants a comma behind `200`; without it the likeliest may be a point: `200.0`. One
that is done with `20`, and wants a comma before a member that there is not, or a unit, is left with digits: `200`.
Where the prompt has that number with a comma and its thousands, the model goes on with digits; otherwise the number
ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.llama_cpp.sampling import Logits, begin_with, shared

_DIGITS, _NUMERALS = b"0123456789", b"0123456789.eE"
_AFTER = b" \t\r\n]}),;<|\0"  # what a number may be followed by; 0: a token of no text
_COMMA = re.compile(rb",\d*\Z")
_AT_THE_END = re.compile(rb"(?<![\d.])\d+\Z")
_LEAST = 3.0  # a comma that is less likely than the likeliest by more, as a logarithm, is not looked up


@dataclass(frozen=True)
class Numbers:
    """Of a vocabulary: the tokens that begin with a digit, that a number in JSON may go on with, that may follow one,
    and those of a comma that may be one of thousands."""

    digits: NDArray[np.bool_]
    numerals: NDArray[np.bool_]
    after: NDArray[np.bool_]
    commas: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Mapping[bytes, int], first_bytes: NDArray[np.uint8]) -> Numbers:
        """Of the tokens that are text, and the first byte of each token, 0 for one of no text."""
        digits, numerals, after = (begin_with(first_bytes, any_of) for any_of in (_DIGITS, _NUMERALS, _AFTER))
        commas = np.zeros(len(first_bytes), dtype=np.bool_)
        commas[[token for piece, token in texts.items() if _COMMA.match(piece)]] = True
        return cls(digits, numerals, after, commas)

    def meant(self, logits: Logits, allowed: NDArray[np.bool_], is_thousands: Callable[[], bool]) -> Logits:
        """The logits behind a digit, in which what may not follow is the end of the number, or its next digits.

        They are as they were where the grammar takes no number there, or one of its ends alone. `is_thousands` tells
        whether a comma that follows may be one of thousands.
        """
        ends, digits = allowed & ~self.numerals, allowed & self.digits
        if not ends.any() or not digits.any() or (ends & ~self.after).any():
            return logits
        unmeant = ~(allowed | self.digits)
        commas = unmeant & self.commas
        if logits[commas].max(initial=-np.inf) > logits.max() - _LEAST and is_thousands():
            logits = shared(logits, commas, digits)
        return shared(logits, unmeant, ends)


def has_thousands(prompt: bytes, written: bytes) -> bool:
    """Whether the number at the end of what was written goes on in the prompt with a comma and three digits."""
    number = _AT_THE_END.search(written)
    if number is None:
        return False
    figures = b",?".join(bytes((digit,)) for digit in number[0])
    return re.search(rb"(?<![\d.,])%b,\d{3}(?!\d)" % figures, prompt) is not None
