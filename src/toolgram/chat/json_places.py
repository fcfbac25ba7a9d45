"""Where in a JSON value a text stands: which containers are open, and which string, number or word there is where."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from toolgram.errors import json_pointer

_IN_STRING = re.compile(r'[^"\\]*')
_WORD = re.compile(r"[-+.0-9A-Za-z]*")
_NO_VALUE = re.compile(r"[^\[\]{}\",:0-9A-Za-z+.-]*")


@dataclass(slots=True)
class Scalar:
    """A value that is no container: its JSON pointer, and where its characters stand, without the quotes of a string.

    `end` is as far as it is known. `member`: it is one of an object.
    """

    pointer: str
    kind: Literal["string", "number", "word"]
    start: int
    end: int
    member: bool


@dataclass(slots=True)
class Container:
    """An object or array that begins at `start`; what comes next in it is the member `key`, or the item `count`.

    `spans` are where its items, or members with their keys, stand, those that are over.
    """

    pointer: str
    is_object: bool
    start: int
    count: int = 0
    key: str = ""
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    begun: int | None = None

    @property
    def closer(self) -> str:
        """The bracket that closes it."""
        return "}" if self.is_object else "]"

    @property
    def next(self) -> str:
        """The pointer of the member or item that comes next."""
        return self.pointer + json_pointer(self.key if self.is_object else self.count)


class JsonPlaces:
    """Follows a JSON value as it is fed, in one pass; text that is not JSON is passed over.

    `scalars` are those that have begun, in their order, `open` the containers, the innermost last, and `closed` the one
    that ended last; `size` is the length of all that was fed, and `lowest` how many containers were open at least since
    it was last set.
    """

    def __init__(self) -> None:
        self.scalars: list[Scalar] = []
        self.open: list[Container] = []
        self.closed: Container | None = None
        self.size = self.lowest = 0
        self._mode: Literal["between", "string", "key", "word"] = "between"
        self._key: list[str] = []
        self._expects_key = False
        self._escaped = False

    @property
    def in_string(self) -> bool:
        """Whether the last of the scalars is a string that goes on."""
        return self._mode == "string"

    def feed(self, text: str) -> None:
        """More of the value."""
        at = 0
        while at < len(text):
            if self._mode == "between":
                end = self._between(text, at)
            elif self._mode == "word":
                end = self._word(text, at)
            else:
                end = self._string(text, at)
            self.size += end - at
            at = end

    def _between(self, text: str, at: int) -> int:
        found = _NO_VALUE.match(text, at)
        if found and found.end() > at:
            return found.end()
        match text[at]:
            case '"':
                self._mode = "key" if self._expects_key else "string"
                if self._mode == "string":
                    self._begin("string", self.size + 1)
                else:
                    self.open[-1].begun = self.size
            case "{" | "[":
                self._value_begins(self.size)
                self.open.append(Container(self._pointer, text[at] == "{", self.size))
                self._expects_key = text[at] == "{"
            case "}" | "]":
                self._close()
            case ",":
                if self.open:
                    self.open[-1].count += 1
                self._expects_key = bool(self.open) and self.open[-1].is_object
            case ":":
                self._expects_key = False
            case char:
                self._mode = "word"
                self._begin("number" if char in "-0123456789" else "word", self.size)
                return at
        return at + 1

    def _close(self) -> None:
        self._value_ends(self.size)
        if self.open:
            self.closed = self.open.pop()
            self.lowest = min(self.lowest, len(self.open))
            self._value_ends(self.size + 1)
        self._expects_key = False

    def _value_begins(self, at: int) -> None:
        if self.open and not self.open[-1].is_object:
            self.open[-1].begun = at

    def _value_ends(self, at: int) -> None:
        if self.open and (begun := self.open[-1].begun) is not None:
            self.open[-1].spans.append((begun, at))
            self.open[-1].begun = None

    @property
    def _pointer(self) -> str:
        return self.open[-1].next if self.open else ""

    def _begin(self, kind: Literal["string", "number", "word"], start: int) -> None:
        self._value_begins(self.size)
        member = bool(self.open) and self.open[-1].is_object
        self.scalars.append(Scalar(self._pointer, kind, start, start, member))

    def _word(self, text: str, at: int) -> int:
        found = _WORD.match(text, at)
        end = found.end() if found else at
        self.scalars[-1].end += end - at
        if end < len(text):
            self._mode = "between"
            self._value_ends(self.size + end - at)
        return end

    def _string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return self._inside(text, at, at + 1)
        found = _IN_STRING.match(text, at)
        if found and found.end() > at:
            return self._inside(text, at, found.end())
        if text[at] == "\\":
            self._escaped = True
            return self._inside(text, at, at + 1)
        if self._mode == "string":
            self._value_ends(self.size + 1)
        elif self.open:
            self.open[-1].key = _decoded("".join(self._key))
            self._key.clear()
            self._expects_key = False
        self._mode = "between"
        return at + 1

    def _inside(self, text: str, start: int, end: int) -> int:
        if self._mode == "key":
            self._key.append(text[start:end])
        else:
            self.scalars[-1].end += end - start
        return end


def _decoded(key: str) -> str:
    """What the inside of a JSON string says; itself where it is none."""
    try:
        return json.loads(f'"{key}"', strict=False)
    except ValueError:
        return key
