"""What a tool returns, as the text that a model is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from inspect import isawaitable
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json


def text_of(value: Any, most: int) -> str:
    """A result as text of about `most` characters: text as it is, all else as JSON, what it has no form in as `str`.

    Bytes are text where they are UTF-8, as those are that programs and servers give.
    An iterator is read, piece by piece, as far as is shown. Of a long text the beginning and the end are left.
    """
    match value:
        case str():
            return shortened(value, most)
        case None:
            return "null"
        case bytes() | bytearray() | memoryview():
            return shortened(_decoded(bytes(cast("bytes", value))), most)
        case Iterator():
            return _read(cast("Iterator[Any]", value), most)
        case _:
            return shortened(_json(value), most)


def is_awaited(value: Any) -> bool:
    """Whether it takes `text_of_async` to read it."""
    return isinstance(value, Awaitable | AsyncIterator)


async def text_of_async(value: Any, most: int) -> str:
    """As `text_of`, of what may be awaited, or be an iterator whose pieces are."""
    while isawaitable(value):
        value = await value
    if not isinstance(value, AsyncIterator):
        return text_of(value, most)
    pieces = _Pieces(most)
    async for piece in cast("AsyncIterator[Any]", value):
        if pieces.are_enough(piece):
            break
    return pieces.text()


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text that is longer than `most` characters, and a word on what is left out."""
    if len(text) <= most:
        return text
    head = most - most // 4
    left_out = f"\n[… {len(text) - most} characters left out …]\n"
    return text[:head] + left_out + (text[-(most // 4) :] if most // 4 else "")


class _Pieces:
    """The texts of what an iterator gives, as far as they are shown."""

    def __init__(self, most: int) -> None:
        self._most, self._left = most, most
        self._texts: list[str] = []

    def are_enough(self, piece: Any) -> bool:
        """Whether there is no room for more after this one."""
        self._texts.append(text_of(piece, self._most))
        self._left -= len(self._texts[-1]) + 1
        return self._left < 0

    def text(self) -> str:
        """All of them, a line each."""
        text = "\n".join(self._texts)
        return text if self._left >= 0 else text[: self._most] + "\n[… more was not read …]"


def _read(given: Iterator[Any], most: int) -> str:
    pieces = _Pieces(most)
    for piece in given:
        if pieces.are_enough(piece):
            break
    return pieces.text()


def _decoded(data: bytes) -> str:
    binary = f"({len(data)} bytes of binary data)"
    try:
        return binary if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return binary


def _json(value: Any) -> str:
    for bytes_mode in ("utf8", "base64"):
        try:
            return to_json(value, fallback=str, bytes_mode=bytes_mode).decode()
        except (PydanticSerializationError, ValueError, RecursionError):  # bytes that are no text, or a circle
            continue
    return str(value)
