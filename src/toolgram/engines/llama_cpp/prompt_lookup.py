"""Guesses of what comes next: values in tool calls are often copied from the conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

_KEY = 2  # bytes of a value that must have been written before the prompt is searched for the rest
_LONGEST_KEY = 12
_VALUE = re.compile(rb"[^\"'<>{}\[\]=:\n]*\Z")  # what was written of a value, in JSON and between tags
LONGEST_DRAFT = 8  # tokens
# To evaluate a token beside others takes about half a pass, so that one that is right pays for one that is wrong.
_CREDIT, _MOST_CREDIT = 2, 6  # tokens that may be wrong before the drafts end


class Drafter:
    """Proposes tokens of the prompt that follow there what was written last, for one generation.

    A draft is twice as long after one that was right, and begins anew with one token after another one. Where more
    tokens are wrong than right, there are no more drafts.
    """

    def __init__(self, prompt: Sequence[int], pieces: Sequence[bytes]) -> None:
        self._prompt = prompt
        texts = [pieces[token] for token in prompt]
        self.text = b"".join(texts)
        self._next = {end: at + 1 for at, end in enumerate(accumulate(map(len, texts)))}  # the token that begins there
        self._size = 1
        self._credit = _CREDIT

    def propose(self, written: bytes) -> Sequence[int]:
        """What may follow `written`, the end of the text: perhaps nothing."""
        if self._credit <= 0:
            return ()
        found = _VALUE.search(written[-_LONGEST_KEY:])
        value = found[0] if found else b""
        for size in range(len(value), _KEY - 1, -1):
            at = self.text.rfind(value[-size:])
            if at >= 0 and (first := self._next.get(at + size)) is not None:
                return self._prompt[first : first + self._size]
        return ()

    def learn(self, drafted: int, taken: int) -> None:
        """Tell how many tokens of the last draft were evaluated, and how many of them the model would have written."""
        self._credit = min(self._credit + taken - (drafted - taken), _MOST_CREDIT)
        self._size = min(2 * self._size, LONGEST_DRAFT) if drafted == taken else 1
