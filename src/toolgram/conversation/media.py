"""What a model is shown beside text, an image or a sound; in a prompt a mark stands in its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Self


class Media(str):
    """The piece of a prompt in whose place an image or a sound is shown: its mark as text, and its `data` in base64."""

    __slots__ = ("data",)
    data: str

    def __new__(cls, mark: str, data: str) -> Self:
        """A piece with this mark."""
        made = super().__new__(cls, mark)
        made.data = data
        return made


def with_media(parts: Iterable[tuple[str, bool]], media: Mapping[str, Media]) -> tuple[tuple[str, bool], ...]:
    """The parts of a prompt with each mark a piece of its own, by what it stands for."""
    return tuple(_cut(parts, media)) if media else tuple(parts)


def _cut(parts: Iterable[tuple[str, bool]], media: Mapping[str, Media]) -> Iterator[tuple[str, bool]]:
    marks = re.compile(f"({'|'.join(map(re.escape, media))})")
    for text, trusted in parts:
        for piece in filter(None, marks.split(text)):
            yield (media[piece], True) if piece in media else (piece, trusted)
