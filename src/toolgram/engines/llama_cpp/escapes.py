r"""Backslashes that begin no escape, where the grammar takes escapes alone: in the strings of JSON, for one.

A small model writes a regular expression in JSON as it would elsewhere: `"\d+"`. After its backslash the grammar leaves
it the escapes, and the likeliest of them may be `\b`: another text, valid and wrong. Meant is the backslash itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.llama_cpp.sampling import begin_with, shared

_FIRST = b"\"'\\/bfnrtuxU"  # of what follows the backslash of an escape, in any notation
_ESCAPE = re.compile(rb"[\"\\/bfnrt]|u(?:[0-9a-fA-F]{4}|[0-9a-fA-F]{0,3}\Z)")
_STRAY = re.compile(rb"((?:[^\\]|\\(?:%b))*)\\(?!%b|\Z)" % (_ESCAPE.pattern, _ESCAPE.pattern), re.DOTALL)


@dataclass(frozen=True)
class Escapes:
    """Of a vocabulary: the token of a `backslash`, and what no escape begins with or is made of.

    `first` are the tokens that an escape may go on with after its backslash, `others` those of a text with which none
    does. Each of `stray` has a backslash that begins no escape; `doubled` are the tokens of the same text up to there,
    with two backslashes.
    """

    backslash: int | None
    first: NDArray[np.bool_]
    others: NDArray[np.bool_]
    stray: NDArray[np.intp]
    doubled: NDArray[np.intp]

    @classmethod
    def of(cls, texts: Mapping[bytes, int], first_bytes: NDArray[np.uint8]) -> Escapes:
        """Of the tokens that are text, and the first byte of each token, 0 for one of no text."""
        first = begin_with(first_bytes, _FIRST)
        others = first_bytes != 0
        others[[token for piece, token in texts.items() if _ESCAPE.match(piece)]] = False
        pairs: list[tuple[int, int]] = []
        for piece, token in texts.items():
            found = _STRAY.match(piece) if b"\\" in piece else None
            if found and (doubled := texts.get(found[1] + rb"\\")) is not None:
                pairs.append((token, doubled))
        stray, doubled = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return cls(texts.get(b"\\"), first, others, stray, doubled)

    def meant(self, logits: NDArray[np.float32], allowed: NDArray[np.bool_], *, opened: bool) -> NDArray[np.float32]:
        """The logits, in which two backslashes are as likely as one before what is no escape, if only they are allowed.

        `opened` where the text so far ends with a backslash.
        """
        if opened and self.backslash is not None and self._is_escape(allowed, self.backslash):
            return shared(logits, self.others & ~allowed, [self.backslash])
        ruled_out = allowed[self.doubled] & ~allowed[self.stray]
        if ruled_out.any():
            stray = logits[self.stray[ruled_out]]
            logits = logits.copy()
            np.logaddexp.at(logits, self.doubled[ruled_out], stray)
        return logits

    def _is_escape(self, allowed: NDArray[np.bool_], backslash: int) -> bool:
        """Whether what may follow a backslash makes an escape of it, which may be that of a backslash."""
        return bool(allowed[backslash]) and not (allowed & ~self.first).any()
