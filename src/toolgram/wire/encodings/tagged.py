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

import re
from dataclasses import dataclass
from functools import cached_property

from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import Status, escape, skip_space
from toolgram.wire.encodings.raw import Sink, ValueReader, value_reader
from toolgram.wire.marks import Marks

MAX_KEY = 512


@dataclass(frozen=True)
class Tagged:
    """The tags: `open` key `after_key` value `close`, for each parameter.

    `after_key` may differ by the JSON type of the value: {"string": …, "number": …}; the entry "" is for the others.
    `close` ends raw text: its part without white space must not stand in a string. `fence` is what a model may put
    around a string that has tags in it: ("<![CDATA[", "]]>").
    """

    name: str
    open: str
    after_key: tuple[tuple[str, str], ...]
    close: str
    fence: tuple[str, str] = ("", "")

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

    @cached_property
    def key_marks(self) -> Marks:
        """What ends a key, to find the half of it."""
        return Marks.of(tuple(text for _, text in self.after_key))


def _lenient(text: str) -> str:
    return r"\s*".join(map(re.escape, text.split())) + (r"\n?" if text.endswith("\n") else "")


class TaggedReader:
    """Reads the parameters of one call and hands their JSON text on in pieces; ends where no parameter begins."""

    __slots__ = ("_count", "_expected", "_sink", "_tags", "_value")

    def __init__(self, tags: Tagged, expected: Expected, sink: Sink) -> None:
        self._tags = tags
        self._expected = expected
        self._sink = sink
        self._value: ValueReader | None = None
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

    def cut(self, rest: str) -> None:
        """The text is over: hand on the part that is there of a key or value."""
        if self._value is not None:
            self._value.cut()
            return
        held = rest.lstrip()
        if held.startswith(self._tags.open):
            key = held[len(self._tags.open) :]
            key = key[: self._tags.key_marks.held_back(key, 0)].rstrip()
            if key:
                self._sink(f'{", " if self._count else "{"}"{escape(key)}')

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
        # The tags may tell the type of a value, else the schema does.
        told = self._tags.after_key[way][0]
        kinds = frozenset((told,)) if told else self._expected.member(key).kinds
        self._value = value_reader(self._tags.close, kinds, self._sink, self._tags.fence)
        return match.end(), Status.MORE
