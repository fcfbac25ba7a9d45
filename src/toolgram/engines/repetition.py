"""Whether a text only repeats itself at its end, by its tokens."""

from __future__ import annotations

from collections.abc import Sequence

PERIODS = 16
TOKENS = 128
"""A repetition has at least so many periods and so many tokens."""
_LONGEST = 128  # tokens of a period that is looked for
_EVERY = 32  # tokens after which is looked again


class Repetition:
    """Watches the tokens of a text; looking at the last ones again and again takes time linear in the text."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._looked = 0
        self.period: int | None = None
        """How many tokens are repeated at the end of the text, as far as was looked; None if it goes on."""

    def feed(self, tokens: Sequence[int]) -> None:
        """More of the text."""
        self._tokens += tokens
        if self.period is not None and tokens:
            last = self._tokens[-len(tokens) - self.period :]
            self.period = self.period if last[self.period :] == last[: -self.period] else None
        if self.period is None and len(self._tokens) - self._looked >= _EVERY:
            self._looked = len(self._tokens)
            self.period = period(self._tokens[-PERIODS * _LONGEST :])


def period(tokens: Sequence[int]) -> int | None:
    """The fewest tokens that are repeated at the end, 16 times at least and over at least 128 tokens; None if none are.

    It takes time linear in their number.
    """
    backwards = tokens[::-1]
    borders = [0]  # how much of each beginning is its end too
    border = 0
    for at in range(1, len(backwards)):
        while border and backwards[border] != backwards[at]:
            border = borders[border - 1]
        border += backwards[border] == backwards[at]
        borders.append(border)
    for length in range(TOKENS, len(backwards) + 1, PERIODS):
        if PERIODS * (found := length - borders[length - 1]) <= length:
            return found
    return None
