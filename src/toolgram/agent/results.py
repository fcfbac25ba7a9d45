"""What a tool returns, as the text that a model is shown, and the images for one that sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from inspect import isawaitable
from typing import Any, Self, cast

from pydantic_core import PydanticSerializationError, to_json

from toolgram.planning.images import data_url, kind_of

MOST_IMAGES = 8  # that tools gave, in a conversation
_MOST_PIXELS = 1 << 24  # of each: a screen of 4K has half as many, and so many times so many pixels may be in a request

Parts = tuple[dict[str, Any], ...]
"""The content of a message, in the shape of the chat-completions API."""


class Illustrated(str):
    """A result with images: as text, for a model that does not see, and for one that does as `parts`."""

    __slots__ = ("parts",)
    parts: Parts

    def __new__(cls, text: str, parts: Parts) -> Self:
        """A text with what stands in its place."""
        made = super().__new__(cls, text)
        made.parts = parts
        return made

    def shortened(self, most: int) -> Self:
        """The same, each of its texts of about `most` characters."""
        seen, *images = self.parts
        return type(self)(shortened(str(self), most), ({**seen, "text": shortened(seen["text"], most)}, *images))


def image_kind(data: bytes) -> str | None:
    """What an image is that a model can be shown, `image/png` say; None for what is none, or too large."""
    return kind_of(data, _MOST_PIXELS)


def illustrated(text: str, seen: str, images: Sequence[str]) -> str:
    """The text; with `seen` in its place beside images, URLs that hold them, where there are some."""
    shown = ({"type": "image_url", "image_url": {"url": url}} for url in images[:MOST_IMAGES])
    return Illustrated(text, ({"type": "text", "text": seen}, *shown)) if images else text


def text_of(value: Any, most: int) -> str:
    """A result as text of about `most` characters: text as it is, all else as JSON, what it has no form in as `str`.

    Bytes are an image (`Illustrated`), or text where they are UTF-8, as those are that programs and servers give.
    An iterator is read, piece by piece, as far as is shown. Of a long text the beginning and the end are left.
    """
    match value:
        case Illustrated():
            return value.shortened(most)
        case str():
            return shortened(value, most)
        case None:
            return "null"
        case bytes() | bytearray() | memoryview():
            return text_of(_of_bytes(bytes(cast("bytes", value))), most)
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


def _of_bytes(data: bytes) -> str:
    if (kind := image_kind(data)) is None:
        return _decoded(data)
    about = f"{kind}, {len(data)} bytes"
    return illustrated(f"({about}, which is not shown)", f"({about})", [data_url(data, kind)])


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
