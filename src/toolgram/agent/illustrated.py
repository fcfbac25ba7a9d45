"""What a model that sees is shown of a result: images, beside the text that any other is told."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, cast

from toolgram.agent.results import shortened, text_of, text_of_async
from toolgram.planning.images import data_url, kind_of

MOST_IMAGES = 8  # that tools give: in one result, and in the results of a run
_MOST_PIXELS = 1 << 23  # of each: a screen of 4K, so that half of what a request may have is left
_MOST_BYTES = 1 << 24  # of all that a result has, in base64


@dataclass(frozen=True, slots=True)
class Illustrated:
    """A result with images: the `text` for a model that does not see, and for one that does what is `seen` of it: the
    images, URLs that hold them, and a text."""

    text: str
    seen: str
    images: tuple[str, ...]

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What is seen, as the content of a message: the text is last, since no prompt may end with an image."""
        shown = ({"type": "image_url", "image_url": {"url": url}} for url in self.images)
        return [*shown, {"type": "text", "text": self.seen}]


def with_images(texts: Sequence[str], given: Mapping[int, str]) -> str | Illustrated:
    """The texts, a line each, of which some tell of an image that is `given` in base64; those that can be shown are
    seen."""
    images: dict[int, str] = {}
    left = _MOST_BYTES
    for number, data in given.items():
        if len(images) < MOST_IMAGES and len(data) <= left and (url := _url(data)):
            images[number] = url
            left -= len(data)
    unseen = [f"{text[:-1]}, which is not shown)" if at in given else text for at, text in enumerate(texts)]
    seen = [text if at in images else unseen[at] for at, text in enumerate(texts)]
    text = "\n".join(unseen)
    return Illustrated(text, "\n".join(seen), tuple(images.values())) if images else text


def about_image(kind: str, size: int) -> str:
    """What tells of an image of so many bytes, or of what is given as one."""
    return f"({kind}, {size} bytes)"


def _url(given: str) -> str | None:
    """The URL that holds an image; None for what is none, or too large."""
    try:
        data = b64decode("".join(given.split()), validate=True)
    except ValueError:
        return None
    kind = kind_of(data, _MOST_PIXELS)
    return data_url(data, kind) if kind else None


def shown_of(value: Any, most: int) -> str | Illustrated:
    """As `text_of`, of what may be an image as well: its bytes, or what was made of it before."""
    match value:
        case Illustrated(text, seen):
            return replace(value, text=shortened(text, most), seen=shortened(seen, most))
        case bytes() | bytearray() | memoryview() if kind := kind_of(data := bytes(cast("bytes", value)), _MOST_PIXELS):
            return with_images([about_image(kind, len(data))], {0: b64encode(data).decode("ascii")})
        case _:
            return text_of(value, most)


async def shown_of_async(value: Any, most: int) -> str | Illustrated:
    """As `shown_of`, of what may be awaited, or be an iterator whose pieces are."""
    while isawaitable(value):
        value = await value
    return await text_of_async(value, most) if isinstance(value, AsyncIterator) else shown_of(value, most)
