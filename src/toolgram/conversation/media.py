"""What a model is shown beside text, an image say; in a prompt a mark stands in its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Self

_MARK = re.compile(r"(media[0-9a-f]{32}n[0-9]+)")
"""Of letters and digits alone, so that it stays what it is where a template writes it as JSON."""


class Media(str):
    """The piece of a prompt in whose place an image is shown: its mark as text, and its `data` in base64.

    `pointer` tells where it stands in the body.
    """

    __slots__ = ("data", "pointer")
    data: str
    pointer: str

    def __new__(cls, mark: str, data: str, pointer: str = "") -> Self:
        """A piece with this mark."""
        made = super().__new__(cls, mark)
        made.data = data
        made.pointer = pointer
        return made


def with_media(parts: Iterable[tuple[str, bool]], media: Mapping[str, Media]) -> tuple[tuple[str, bool], ...]:
    """The parts of a prompt with each mark a piece of its own, by what it stands for."""
    return tuple(
        (media[piece], True) if piece in media else (piece, trusted)
        for text, trusted in parts
        for piece in filter(None, _MARK.split(text))
    )


def media_in(parts: Iterable[tuple[str, bool]]) -> list[Media]:
    """What is shown in a prompt, in its order."""
    return [text for text, _ in parts if isinstance(text, Media)]
