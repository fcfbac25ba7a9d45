"""Values between tags: strings as they are, everything else as JSON, up to the mark that closes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Literal, Protocol

from toolgram.wire.json_text import RawValue, Status, escape, skip_space
from toolgram.wire.marks import Marks

JsonType = Literal["string", "number", "boolean", "null", "object", "array"]
Sink = Callable[[str], None]

_TOO_MANY = re.compile(r"[\s}\]]*")
_NUMBER_BEGINS = re.compile(r"-?[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]*)?")
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}


class ValueReader(Protocol):
    """Reads one value and the mark that closes it."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read."""
        ...

    def cut(self) -> None:
        """The text is over: hand on what was taken of the value."""
        ...


def value_reader(close: str, kinds: frozenset[str], sink: Sink) -> ValueReader:
    """What reads a value of these JSON types. `close` ends it: its mark, and white space that belongs to neither."""
    if kinds == frozenset(("string",)):
        return RawString(close, sink)
    if kinds <= {"object", "array"}:
        return NestedJson(close, sink)
    return Collected(close, kinds, sink)


class RawString:
    """A string as it is, up to the mark that closes it; handed on as it comes."""

    __slots__ = ("_before", "_closer", "_marks", "_sink")

    def __init__(self, close: str, sink: Sink) -> None:
        self._closer = close.strip()
        self._before = close[: close.index(self._closer)]
        self._marks = Marks.of((self._closer,), (self._before + self._closer,))
        self._sink = sink
        self._begin()

    def _begin(self) -> None:
        self._sink('"')

    def _more(self, text: str) -> None:
        self._sink(escape(text))

    def _end(self) -> None:
        self._sink('"')

    def cut(self) -> None:
        """All was handed on as it came."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        end = buffer.find(self._closer, start)
        if end < 0:
            keep = self._marks.held_back(buffer, start)
            self._more(buffer[start:keep])
            return keep, Status.MORE
        self._more(buffer[start:end].removesuffix(self._before))
        self._end()
        return end + len(self._closer), Status.DONE


class Collected(RawString):
    """A value that only its whole tells: JSON of one of its types if it can be, else a string."""

    __slots__ = ("_kinds", "_pieces")

    def __init__(self, close: str, kinds: frozenset[str], sink: Sink) -> None:
        self._kinds = kinds
        self._pieces: list[str] = []
        super().__init__(close, sink)

    def _begin(self) -> None:
        pass

    def _more(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self) -> None:
        self._sink(as_json("".join(self._pieces), self._kinds))

    def cut(self) -> None:
        """Hand on the beginning of a value, unless what it is would only have shown later: a number or a string."""
        text = "".join(self._pieces).strip()
        if begins_container(text) or (begins_number(text) and "string" not in self._kinds):
            self._sink(text)
        elif text and not begins_number(text) and not any(word.startswith(text) for word in _WORDS):
            self._sink(f'"{escape(text)}')


class NestedJson:
    """An object or array in JSON, passed on as it comes; brackets too many behind it are dropped."""

    __slots__ = ("_begun", "_closer", "_done", "_marks", "_value")

    def __init__(self, close: str, sink: Sink) -> None:
        self._closer = close.strip()
        self._marks = Marks.of((self._closer,))
        self._value = RawValue(sink)
        self._begun = False
        self._done = False

    def cut(self) -> None:
        """All was handed on as it came."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        i = start if self._begun else skip_space(buffer, start)
        if not self._done:
            i, status = self._value.consume(buffer, i)
            self._begun = self._begun or i > start
            if status is not Status.DONE:
                return i, status
            self._done = True
        end = buffer.find(self._closer, i)
        until = end if end >= 0 else self._marks.held_back(buffer, i)
        too_many = _TOO_MANY.match(buffer, i, until)
        if too_many is None or too_many.end() < until:
            return too_many.end() if too_many else i, Status.FAILED
        return (end + len(self._closer), Status.DONE) if end >= 0 else (until, Status.MORE)


def begins_container(text: str) -> bool:
    """Whether an object or array may begin so."""
    return text.startswith(("{", "["))


def begins_number(text: str) -> bool:
    """Whether this is a number, or the beginning of one."""
    return bool(text) and _NUMBER_BEGINS.fullmatch(text) is not None


def as_json(text: str, kinds: frozenset[str]) -> str:
    """The JSON that a raw value stands for: itself where it is JSON of one of these types, else a string."""
    word = _WORDS.get(text.strip(), text.strip())
    return word if json_type(word) in kinds else f'"{escape(text)}"'


def json_type(text: str) -> JsonType | None:
    """The type of the JSON value that this text is, None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"
