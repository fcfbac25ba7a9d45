"""What a model is shown beside text, an image say; in a prompt a mark stands in its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Self

_MARK = re.compile(r"(media[0-9a-f]{32}n[0-9]+)")
"""Of letters and digits alone, so that it stays what it is where a template writes it as JSON."""


class Media(str):
    """The piece of a prompt in whose place an image is shown: its mark as text, its `data` in base64, and what it is,
    `image/png` say.

    `pointer` tells where it stands in the body, and `placeholder` what the template writes there; "" where that shows
    none.
    """

    __slots__ = ("data", "kind", "placeholder", "pointer")
    data: str
    kind: str
    pointer: str
    placeholder: str

    def __new__(cls, mark: str, data: str, kind: str, pointer: str = "", placeholder: str = "") -> Self:
        """A piece with this mark."""
        made = super().__new__(cls, mark)
        made.data = data
        made.kind = kind
        made.pointer = pointer
        made.placeholder = placeholder
        return made

    @property
    def url(self) -> str:
        """A URL that holds the image."""
        return f"data:{self.kind};base64,{self.data}"


def with_media(parts: Iterable[tuple[str, bool]], media: Mapping[str, Media]) -> tuple[tuple[str, bool], ...]:
    """The parts of a prompt with each mark a piece of its own, by what it stands for."""
    return tuple(
        (media[piece], True) if piece in media else (piece, trusted)
        for text, trusted in parts
        for piece in filter(None, _MARK.split(text))
    )


def lasting(parts: Iterable[tuple[str, bool]]) -> str:
    """The text of a prompt as it is each time that it is made: an image is known by its data, not by its mark."""
    return "".join(text.data if isinstance(text, Media) else text for text, _ in parts)


def described(parts: Iterable[tuple[str, bool]]) -> tuple[tuple[str, bool], ...]:
    """The parts as a person is shown them: in the place of an image its kind, `[image/png]` say."""
    return tuple((f"[{text.kind}]" if isinstance(text, Media) else text, trusted) for text, trusted in parts)


def media_in(parts: Iterable[tuple[str, bool]]) -> list[Media]:
    """What is shown in a prompt, in its order."""
    return [text for text, _ in parts if isinstance(text, Media)]
