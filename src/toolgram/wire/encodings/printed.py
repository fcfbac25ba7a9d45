"""Objects and arrays as JSON writes them or as Python prints them: many templates print what they should encode."""

from __future__ import annotations

import re
from collections.abc import Callable

from toolgram.wire.encodings.json import RawValue, Status, StringValue, escape

WORDS = {"True": "true", "False": "false", "None": "null"}
PRINTED = {word: printed for printed, word in WORDS.items()}
_PLAIN = re.compile(r"[^'\"TFN\[\]{}]+")


class PrintedValue:
    """Reads one object or array, and hands it on as JSON: what is JSON as it is, what Python printed in JSON's way.

    The two differ in words and in strings between single quotes, neither of which JSON has.
    """

    __slots__ = ("_depth", "_sink", "_string")

    def __init__(self, sink: Callable[[str], None]) -> None:
        self._sink = sink
        self._depth = 0
        self._string: RawValue | StringValue | None = None

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take text up to the end of the value; it begins with a bracket."""
        i = start
        while i < len(buffer):
            if self._string is not None:
                i, status = self._string.consume(buffer, i)
                if status is Status.MORE:
                    return i, status
                if isinstance(self._string, StringValue):
                    self._sink('"')
                self._string = None
                continue
            if match := _PLAIN.match(buffer, i):
                self._sink(match[0])
                i = match.end()
                continue
            char = buffer[i]
            if char in "\"'":
                self._begin_string(char)
            elif char in "TFN":
                end = self._word(buffer, i)
                if end == i:
                    return i, Status.MORE
                i = end
            else:
                self._depth += 1 if char in "[{" else -1
                self._sink(char)
                i += 1
                if not self._depth:
                    return i, Status.DONE
        return i, Status.MORE

    def _begin_string(self, quote: str) -> None:
        if quote == '"':
            self._string = RawValue(self._sink)
        else:
            self._sink('"')
            self._string = StringValue(lambda text: self._sink(escape(text)), quote)

    def _word(self, buffer: str, i: int) -> int:
        """The place after Python's word at i, or after the letter where it is none; i where more text must tell."""
        for word, json_word in WORDS.items():
            if buffer.startswith(word, i):
                self._sink(json_word)
                return i + len(word)
            if word.startswith(buffer[i:]):
                return i
        self._sink(buffer[i])
        return i + 1


def as_json_text(text: str) -> str:
    """JSON for an object or array that Python printed; any other text as it is."""
    pieces: list[str] = []
    if text[:1] not in ("[", "{"):
        return WORDS.get(text, text)
    end, status = PrintedValue(pieces.append).consume(text, 0)
    return "".join(pieces) if status is Status.DONE and end == len(text) else text
