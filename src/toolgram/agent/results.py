"""What a tool returns, as the text that a model is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json


def text_of(value: Any, most: int) -> str:
    """A result as text of about `most` characters: text as it is, all else as JSON, what it has no form in as `str`.

    An iterator is read, piece by piece, as far as is shown. Of a long text the beginning and the end are left.
    """
    match value:
        case str():
            return shortened(value, most)
        case None:
            return "null"
        case bytes() | bytearray() | memoryview():
            return f"({len(cast('bytes', value))} bytes of binary data)"
        case Iterator():
            return _read(cast("Iterator[Any]", value), most)
        case _:
            return shortened(_json(value), most)


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text that is longer than `most` characters, and a word on what is left out."""
    if len(text) <= most:
        return text
    head = most - most // 4
    left_out = f"\n[… {len(text) - most} characters left out …]\n"
    return text[:head] + left_out + (text[-(most // 4) :] if most // 4 else "")


def _read(pieces: Iterator[Any], most: int) -> str:
    texts: list[str] = []
    held = 0
    for piece in pieces:
        texts.append(text_of(piece, most))
        held += len(texts[-1]) + 1
        if held > most:
            return "\n".join(texts)[:most] + "\n[… more was not read …]"
    return "\n".join(texts)


def _json(value: Any) -> str:
    try:
        return to_json(value, fallback=str, bytes_mode="base64").decode()
    except (PydanticSerializationError, ValueError, RecursionError):  # a circle, as one that holds itself
        return str(value)
