"""Images and sounds that a body brings, for an engine that shows them to its model."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import struct
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from toolgram.conversation.fields import Json
from toolgram.conversation.media import Media
from toolgram.conversation.request import Request, placed
from toolgram.errors import InvalidRequest
from toolgram.template.adapt import parts_beside_text

_SECRET = secrets.token_bytes(32)  # so that no text of a conversation can be a mark
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
# What llama.cpp reads (stb_image, miniaudio); whatever else it is given, it tries as a video, with another program.
_IMAGES = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|BM")
_SOUNDS = re.compile(rb"RIFF....WAVE|ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]|fLaC", re.DOTALL)


_MOST_PIXELS = 1 << 26  # 200 MB where they are read; what a phone takes has 50 million
# Of JPEG (ITU T.81): frames, but for the tables and extensions of these numbers; what stands before a segment.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_FILL = 0xFF
_MOST_SEGMENTS = 10_000


def marked(request: Request, kinds: Collection[str]) -> tuple[Request, dict[str, Media]]:
    """The request with a mark in the place of each part of these kinds, as a text, and what the marks stand for.

    `kinds` are types of parts, of `image_url` and `input_audio`. Raises InvalidRequest for what is not in the body
    itself, since nothing is fetched from an address, and for what no engine reads.
    """
    found: dict[tuple[int, int], Media] = {}
    for part in parts_beside_text(request.messages):
        if part.kind in kinds:
            place = int(part.pointer.rsplit("/", 1)[1])
            given = cast("Json", request.messages[part.message]["content"][place])
            found[part.message, place] = _media(given, part.kind, placed(request.places, part.pointer))
    if not found:
        return request, {}
    messages = tuple(_with_marks(i, message, found) for i, message in enumerate(request.messages))
    return replace(request, messages=messages), {str(each): each for each in found.values()}


def _with_marks(i: int, message: Json, found: Mapping[tuple[int, int], Media]) -> Json:
    if not isinstance(content := message.get("content"), list):
        return message
    parts = cast("list[Any]", content)
    marks = (found.get((i, n)) for n in range(len(parts)))
    texts = [
        part if mark is None else {"type": "text", "text": str(mark)} for part, mark in zip(parts, marks, strict=True)
    ]
    return {**message, "content": texts}


def _media(part: Json, kind: str, pointer: str) -> Media:
    """What a part holds, by a mark that is the same each time. Raises InvalidRequest."""
    given = part.get(kind)
    if kind == "image_url":
        url = cast("Json", given).get("url") if isinstance(given, dict) else given
        head = _DATA_URL.match(url) if isinstance(url, str) else None
        if not isinstance(url, str) or head is None:
            reason = "an image is not fetched from an address: send it itself, as data:image/png;base64,…"
            raise InvalidRequest(pointer, reason)
        data = _read(url[head.end() :], _IMAGES, "an image: PNG, JPEG, GIF and BMP are read", pointer)
        _check_size(data, pointer)
        return _marked(data)
    sound = cast("Json", given).get("data") if isinstance(given, dict) else None
    if not isinstance(sound, str):
        raise InvalidRequest(pointer, "a sound must have its 'data', in base64")
    return _marked(_read(sound, _SOUNDS, "a sound: WAV, MP3 and FLAC are read", pointer))


def _marked(data: bytes) -> Media:
    mark = hmac.new(_SECRET, data, hashlib.sha256).hexdigest()[:32]
    return Media(f"media{mark}", base64.b64encode(data).decode("ascii"))


def _read(text: str, begins: re.Pattern[bytes], what: str, pointer: str) -> bytes:
    try:
        data = base64.b64decode(_SPACE.sub("", text), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(pointer, f"this is no base64: {error}") from error
    if begins.match(data) is None:
        raise InvalidRequest(pointer, f"this is not {what}")
    return data


def _check_size(data: bytes, pointer: str) -> None:
    """Raises InvalidRequest for an image of which a few bytes say that it has more pixels than memory holds."""
    try:
        width, height = _size(data)
    except struct.error as error:
        raise InvalidRequest(pointer, "this image is damaged: it does not tell its size") from error
    if width * height > _MOST_PIXELS:
        reason = f"this image has {width} × {height} pixels: make it smaller, an image may have {_MOST_PIXELS} at most"
        raise InvalidRequest(pointer, reason)


def _size(data: bytes) -> tuple[int, int]:
    """Width and height, as the head says. Raises struct.error where it does not."""
    if data.startswith(b"\x89PNG"):
        return struct.unpack_from(">II", data, 16)
    if data.startswith(b"GIF"):
        return struct.unpack_from("<HH", data, 6)
    if data.startswith(b"BM"):
        width, height = struct.unpack_from("<ii", data, 18)  # negative where rows stand from the top down
        return abs(width), abs(height)
    return _size_of_jpeg(data)


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    """As the first frame says; segments are a byte of ones, their kind, and their length, and then what they hold."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        at = data.find(b"\xff", at)
        kind, length, height, width = struct.unpack_from(">xBHxHH", data, at if at >= 0 else len(data))
        if kind in _FRAMES:
            return width, height
        at += 1 if kind == _FILL else 2 + length
    raise struct.error("more segments than any image has")
