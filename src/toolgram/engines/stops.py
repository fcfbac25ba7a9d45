"""From bytes of tokens to text that may be shown: whole characters, and nothing of a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokenizer:
    """Joins the bytes of tokens to text and never shows half a character.

    Bytes that cannot be UTF-8 become U+FFFD; a last character that was cut off is dropped, not guessed.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, piece: bytes) -> str:
        """The text that is certain now."""
        return self._decoder.decode(piece)


class StopScanner:
    """Ends a text before the first stop string in it, however the text is cut up.

    Of several stop strings that which is complete first wins, and of those the longest.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held: str = ""
        self.found: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self.found is not None

    def feed(self, text: str) -> str:
        """The text that cannot belong to a stop string; `found` is the one that ended it."""
        if self.stopped:
            return ""
        text = self._held + text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            _, at, self.found = min(found)
            self._held = ""
            return text[:at]
        shown = len(text) - self._beginning(text)
        self._held = text[shown:]
        return text[:shown]

    def finish(self) -> str:
        """What was held back, now that no more text comes."""
        held, self._held = self._held, ""
        return held

    def _beginning(self, text: str) -> int:
        """The length of the longest end of `text` that begins a stop string."""
        lengths = (
            size
            for stop in self._stops
            for size in range(min(len(stop) - 1, len(text)), 0, -1)
            if text.endswith(stop[:size])
        )
        return max(lengths, default=0)
