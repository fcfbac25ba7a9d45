"""Tagged parameters: each argument between tags of its own, strings raw, everything else as JSON.

A call of Qwen3-Coder (its chat template)::

    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    <parameter=days>
    3
    </parameter>
    </function>

Which values are raw is a matter of the tool's schema, so that the reader has to know it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from toolgram.wire.json_text import RawValue, Status, escape, skip_space
from toolgram.wire.marks import Marks

MAX_KEY = 512
JsonType = Literal["string", "number", "boolean", "null", "object", "array"]
Kinds = Mapping[str, frozenset[str]]
"""For each parameter of a tool the JSON types that it may have."""

_WORDS = {"True": "true", "False": "false", "None": "null"}


@dataclass(frozen=True)
class Tagged:
    """The tags: `open` key `after_key` value `close`, for each parameter.

    `after_key` may differ by the JSON type of the value: {"string": …, "number": …}; the entry "" is for the others.
    `close` ends raw text: its part without white space must not stand in a string.
    """

    name: str
    open: str
    after_key: tuple[tuple[str, str], ...]
    close: str

    def after(self, kind: str) -> str:
        """What stands between a key and a value of this JSON type."""
        known = dict(self.after_key)
        return known.get(kind, known.get("", ""))

    @property
    def closer(self) -> str:
        """The mark that ends a raw value."""
        return self.close.strip()

    @cached_property
    def key_end(self) -> re.Pattern[str]:
        """A key up to the value, and which of the ways to end it was taken; white space is lenient."""
        ways = "|".join(f"(?P<way{n}>{_lenient(text)})" for n, (_, text) in enumerate(self.after_key))
        return re.compile(rf"(?P<key>[\s\S]{{0,{MAX_KEY}}}?)(?:{ways})")


def _lenient(text: str) -> str:
    return r"\s*".join(map(re.escape, text.split())) + (r"\n?" if text.endswith("\n") else "")


class TaggedReader:
    """Reads the parameters of one call and hands their JSON text on in pieces; ends where no parameter begins."""

    __slots__ = ("_count", "_kinds", "_sink", "_tags", "_value")

    def __init__(self, tags: Tagged, kinds: Kinds, sink: Callable[[str], None]) -> None:
        self._tags = tags
        self._kinds = kinds
        self._sink = sink
        self._value: _Raw | _Collected | _Nested | None = None
        self._count = 0

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read; FAILED where a key has no end."""
        i = start
        while True:
            if self._value is not None:
                i, status = self._value.consume(buffer, i)
                if status is not Status.DONE:
                    return i, status
                self._value = None
                continue
            i, status = self._begin(buffer, i)
            if self._value is None:
                return i, status

    def _begin(self, buffer: str, i: int) -> tuple[int, Status]:
        """Enter the next parameter, or end."""
        at = skip_space(buffer, i)
        mark = self._tags.open
        if not buffer.startswith(mark, at):
            if mark.startswith(buffer[at:]):
                return i, Status.MORE
            self._sink("}" if self._count else "{}")
            return i, Status.DONE
        match = self._tags.key_end.match(buffer, at + len(mark))
        # A way to end the key is whole only when what follows shows that its white space is.
        if match is None or match.end() == len(buffer):
            too_long = match is None and len(buffer) - at > 2 * MAX_KEY
            return i, Status.FAILED if too_long else Status.MORE
        key = match["key"].strip()
        way = next(n for n in range(len(self._tags.after_key)) if match[f"way{n}"] is not None)
        self._sink(f'{", " if self._count else "{"}"{escape(key)}": ')
        self._count += 1
        self._value = self._reader(key, self._tags.after_key[way][0])
        return match.end(), Status.MORE

    def _reader(self, key: str, told: str) -> _Raw | _Collected | _Nested:
        """What reads a value: the tags may tell its type, else the schema does."""
        kinds = frozenset((told,)) if told else self._kinds.get(key, frozenset())
        if kinds == frozenset(("string",)):
            return _Raw(self._tags, self._sink)
        if kinds and kinds <= {"object", "array"}:
            return _Nested(self._tags, self._sink)
        return _Collected(self._tags, kinds, self._sink)


class _Raw:
    """A string as it is, up to the mark that closes it; handed on as it comes."""

    __slots__ = ("_before", "_closer", "_marks", "_sink")

    def __init__(self, tags: Tagged, sink: Callable[[str], None]) -> None:
        self._closer = tags.closer
        self._before = tags.close[: tags.close.index(tags.closer)]
        self._marks = Marks.of((self._closer,), (self._before + self._closer,))
        self._sink = sink
        self._begin()

    def _begin(self) -> None:
        self._sink('"')

    def _more(self, text: str) -> None:
        self._sink(escape(text))

    def _end(self) -> None:
        self._sink('"')

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        end = buffer.find(self._closer, start)
        if end < 0:
            keep = self._marks.held_back(buffer, start)
            self._more(buffer[start:keep])
            return keep, Status.MORE
        self._more(buffer[start:end].removesuffix(self._before))
        self._end()
        return end + len(self._closer), Status.DONE


class _Collected(_Raw):
    """A value that only its whole tells: JSON of one of its types if it can be, else a string."""

    __slots__ = ("_kinds", "_pieces")

    def __init__(self, tags: Tagged, kinds: frozenset[str], sink: Callable[[str], None]) -> None:
        self._kinds = kinds
        self._pieces: list[str] = []
        super().__init__(tags, sink)

    def _begin(self) -> None:
        pass

    def _more(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self) -> None:
        self._sink(as_json("".join(self._pieces), self._kinds))


class _Nested:
    """An object or array in JSON, passed on as it comes; what stands behind it, up to the closing mark, is dropped."""

    __slots__ = ("_begun", "_done", "_marks", "_value")

    def __init__(self, tags: Tagged, sink: Callable[[str], None]) -> None:
        self._marks = Marks.of((tags.closer,))
        self._value = RawValue(sink)
        self._begun = False
        self._done = False

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        i = start if self._begun else skip_space(buffer, start)
        if not self._done:
            i, status = self._value.consume(buffer, i)
            self._begun = self._begun or i > start
            if status is not Status.DONE:
                return i, status
            self._done = True
        match = self._marks.find.search(buffer, i) if self._marks.find else None
        if match is None:
            return self._marks.held_back(buffer, i), Status.MORE
        return match.end(), Status.DONE


def as_json(text: str, kinds: frozenset[str]) -> str:
    """The JSON that a raw value stands for: itself where it is JSON of one of these types (of any, with none)."""
    word = _WORDS.get(text.strip(), text.strip())
    kind = json_type(word)
    if kind is not None and (not kinds or kind in kinds):
        return word
    return f'"{escape(text)}"'


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
