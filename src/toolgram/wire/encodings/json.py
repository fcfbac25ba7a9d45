"""JSON as it arrives: where a value ends, and what a string says, without waiting for the whole.

A scanner's `consume(buffer, start)` takes as much as it understands, and returns where it stopped and how it stands.
What it leaves in the buffer comes again with more text after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Literal

from toolgram.grammar.ir import MAX_CODE_POINT

_IN_STRING = re.compile(r'[^"\\]*')
_OUTSIDE = re.compile(r'[^"\[\]{}]*')
_SCALAR = re.compile(r"[-+.0-9A-Za-z]*")
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}
_SHORT = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DIGITS = {"u": 4, "x": 2, "U": 8}
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT_OUT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

Sink = Callable[[str], None]
"""What takes the text that a scanner hands on."""

VALUE_STARTS = frozenset('{["-0123456789tfn')


class Status(Enum):
    """Where a scanner stands after the text that it was given."""

    MORE = "more"
    DONE = "done"
    FAILED = "failed"


def skip_space(buffer: str, start: int) -> int:
    """Where the white space at `start` ends."""
    match = _SPACE.match(buffer, start)
    return match.end() if match else start


def escape(text: str) -> str:
    """The inside of the JSON string for this text: short escapes, \\u00xx for other controls, all else as it is."""
    return _ESCAPED.sub(lambda m: _SHORT_OUT.get(m[0]) or f"\\u{ord(m[0]):04x}", text)


class ClosedByItself:
    """What its own syntax closes: where the text ends before, it is not over."""

    __slots__ = ()

    def close_at_end(self, rest: str) -> bool:
        """It cannot be closed so."""
        del rest
        return False


class RawValue(ClosedByItself):
    """Passes one JSON value on as it is, and finds its end by its strings and brackets.

    With `mends`, line breaks and other controls in its strings, which are none of JSON, come out as escapes: models
    that nothing constrains write them so, most of all in the text of files.
    """

    __slots__ = ("_depth", "_escaped", "_in_string", "_kind", "_mends", "_sink")

    def __init__(self, sink: Sink, *, mends: bool = False) -> None:
        self._sink = sink
        self._mends = mends
        self._kind: Literal["", "container", "string", "scalar"] = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take text up to the end of the value; it begins at the first character."""
        if start == len(buffer):
            return start, Status.MORE
        i = start
        if not self._kind:
            char = buffer[i]
            self._kind = "container" if char in "{[" else "string" if char == '"' else "scalar"
            if self._kind == "string":
                self._in_string = True
                i += 1
        if self._kind == "scalar":
            match = _SCALAR.match(buffer, i)
            end = match.end() if match else i
            status = Status.DONE if end < len(buffer) else Status.MORE
        else:
            start, end, status = self._nested(buffer, start, i)
        self._sink(buffer[start:end])
        return end, status

    def cut(self, rest: str) -> None:
        """All was handed on as it came."""

    def _nested(self, buffer: str, start: int, i: int) -> tuple[int, int, Status]:
        """From where on nothing was passed on yet, where what was read ends, and how it stands."""
        size = len(buffer)
        while i < size:
            if self._escaped:
                self._escaped = False
                i += 1
                continue
            match = (_IN_STRING if self._in_string else _OUTSIDE).match(buffer, i)
            end = match.end() if match else i
            if self._mends and self._in_string and _CONTROL.search(buffer, i, end):
                self._sink(buffer[start:i] + escape(buffer[i:end]))
                start = end
            i = end
            if i == size:
                break
            char = buffer[i]
            i += 1
            if char == "\\":
                self._escaped = True
            elif char == '"':
                self._in_string = not self._in_string
            else:
                self._depth += 1 if char in "{[" else -1
            if self._depth == 0 and not self._in_string:
                return start, i, Status.DONE
        return start, i, Status.MORE

    @property
    def may_end(self) -> bool:
        """Whether the value is whole if the text ends here: only a number or a word is."""
        return self._kind == "scalar"


class StringValue:
    """Decodes one string, JSON's or Python's, and hands its text on in pieces."""

    __slots__ = ("_opened", "_plain", "_quote", "_sink")

    def __init__(self, sink: Sink, quote: str = '"') -> None:
        self._sink = sink
        self._quote = quote
        self._plain = _PLAIN[quote]
        self._opened = False

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take text up to the closing quote; an escape that is not whole yet stays in the buffer."""
        i = start
        size = len(buffer)
        if not self._opened and i < size:
            self._opened = True
            i += 1
        while i < size:
            if match := self._plain.match(buffer, i):
                self._sink(match[0])
                i = match.end()
            elif buffer[i] == self._quote:
                return i + 1, Status.DONE
            else:
                end = self._escape(buffer, i)
                if end == i:
                    break
                i = end
        return i, Status.MORE

    def _escape(self, buffer: str, i: int) -> int:
        """Decode the escape at i; give the place after it, i itself where more text is needed."""
        if i + 1 >= len(buffer):
            return i
        kind = buffer[i + 1]
        digits = _DIGITS.get(kind)
        if digits is None:
            self._sink(_SHORT.get(kind, "\\" + kind))
            return i + 2
        end = i + 2 + digits
        code = _hex(buffer[i + 2 : end], digits)
        if code is None or code > MAX_CODE_POINT:
            if end > len(buffer) and _hex_so_far(buffer[i + 2 :]):
                return i
            self._sink("\\" + kind)
            return i + 2
        if 0xD800 <= code < 0xDC00:
            return self._pair(buffer, end, code, i)
        self._sink("\ufffd" if 0xDC00 <= code < 0xE000 else chr(code))
        return end

    def _pair(self, buffer: str, i: int, high: int, start: int) -> int:
        """Decode the second half of a surrogate pair; a half alone becomes U+FFFD, which text can carry."""
        tail = buffer[i : i + 6]
        if len(tail) < 6 and "\\u".startswith(tail[:2]) and _hex_so_far(tail[2:]):
            return start
        low = _hex(tail[2:], 4) if tail.startswith("\\u") else None
        if low is None or not 0xDC00 <= low < 0xE000:
            self._sink("\ufffd")
            return i
        self._sink(chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)))
        return i + 6


def _hex(text: str, digits: int) -> int | None:
    return int(text, 16) if len(text) == digits and _hex_so_far(text) else None


def _hex_so_far(text: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in text)
