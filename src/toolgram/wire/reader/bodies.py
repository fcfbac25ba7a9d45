"""Bodies: text whose end its own syntax tells, arguments and JSON of a known shape."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import Status
from toolgram.wire.instructions import ArgumentsAt, JsonAt
from toolgram.wire.reader.emitter import Emitter
from toolgram.wire.reader.json_object import ShapeReader


class Body(Protocol):
    """Reads text as it arrives, up to where its own syntax ends it."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read."""
        ...

    def close_at_end(self, rest: str) -> bool:
        """The text is over, `rest` was not taken: hand on the body's end if nothing more of it is due, and say so."""
        ...

    def cut(self, rest: str) -> None:
        """The text is over, `rest` was not taken: what is there of a key or value is handed on, but no half marks."""
        ...


def body_of(
    at: ArgumentsAt | JsonAt,
    emit: Emitter,
    expected: Expected,
    *,
    raw_content: bool,
    tools: Collection[str] | None = None,
) -> Body:
    """What reads the body at this place into an emitter.

    `expected` is what the tool takes; `raw_content` says that content is JSON, not a JSON string; `tools` are given
    where what looks like a call may be the answer.
    """
    if isinstance(at, JsonAt):
        return ShapeReader(at.shape, emit, raw_content=raw_content, tools=tools)
    return at.encoding.reader(expected, emit.arguments)
