"""Images that a body brings, for an engine that shows them to its model."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from toolgram.conversation.fields import Json
from toolgram.conversation.media import Media, media_in
from toolgram.conversation.request import Request, placed
from toolgram.errors import InvalidRequest, TooManyPixels
from toolgram.styles.placeholders import placeholder_of
from toolgram.template.adapt import parts_beside_text
from toolgram.template.chat_template import ChatTemplate

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_NO_SPACE = str.maketrans("", "", " \t\r\n\f\v")
# What llama.cpp reads (stb_image); whatever else it is given, it tries as a video, with another program.
_BEGINS = re.compile(rb"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR|\xff\xd8\xff|GIF8[79]a|BM")
_KINDS = {b"\x89": "image/png", b"\xff": "image/jpeg", b"G": "image/gif", b"B": "image/bmp"}
_MOST = 1_024  # images in a request
_MOST_PIXELS = 1 << 26  # 200 MB where they are unpacked; what a phone takes has 50 million
_MOST_TOGETHER = 1 << 27
_OLD_HEAD = 12  # bytes of a BMP's second head that has its size in two
# Of JPEG (ITU T.81): frames, but for the tables and extensions of these numbers; what stands before a segment.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_FILL = 0xFF
_MOST_SEGMENTS = 10_000


def marked(request: Request, template: ChatTemplate) -> tuple[Request, dict[str, Media]]:
    """The request with a mark in the place of each image, as a text, and what the marks stand for in the template.

    Marks are new ones each time, so that no text of a conversation is one. Raises InvalidRequest for an image that is
    not in the body itself, since nothing is fetched from an address, that no engine reads, or that is larger than
    memory should hold, and TooManyPixels where all of them are.
    """
    key = secrets.token_hex(16)
    found: dict[tuple[int, int], Media] = {}
    together = 0
    for part in parts_beside_text(request.messages):
        if part.kind == "image_url":
            pointer = placed(request.places, part.pointer)
            if request.continue_final_message and part.message == len(request.messages) - 1:
                raise InvalidRequest(pointer, "a message with an image cannot be continued")
            place = int(part.pointer.rsplit("/", 1)[1])
            given, data = _given(cast("Json", request.messages[part.message]["content"][place]), pointer)
            together += _pixels(data, pointer)
            if together > _MOST_TOGETHER or len(found) == _MOST:
                reason = f"the images of a request may have {_MOST_TOGETHER} pixels together, and be {_MOST}"
                raise TooManyPixels(pointer, reason)
            mark = f"media{key}n{len(found)}"
            found[part.message, place] = Media(mark, given, _KINDS[data[:1]], pointer, placeholder_of(template))
    if not found:
        return request, {}
    messages = tuple(_with_marks(i, message, found) for i, message in enumerate(request.messages))
    return replace(request, messages=messages), {str(each): each for each in found.values()}


def kind_of(data: bytes, most_pixels: int = _MOST_PIXELS) -> str | None:
    """What an image is by its head, `image/png` say; None for what is none that can be shown, or has more pixels."""
    if _BEGINS.match(data) is None:
        return None
    try:
        return _KINDS[data[:1]] if _pixels(data, "") <= most_pixels else None
    except InvalidRequest:
        return None


def data_url(data: bytes, kind: str) -> str:
    """Data as a URL that holds it."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def unseen(media: Mapping[str, Media], parts: Iterable[tuple[str, bool]]) -> list[str]:
    """Pointers to the images that a prompt does not show: the template left their marks out, or changed them."""
    shown = frozenset(map(str, media_in(parts)))
    return [each.pointer for mark, each in media.items() if mark not in shown]


def refuse_end(parts: Sequence[tuple[str, bool]]) -> None:
    """Raises InvalidRequest for a prompt that ends with an image, from which no engine goes on."""
    for last, _ in parts[-1:]:
        if isinstance(last, Media):
            raise InvalidRequest(last.pointer, "the prompt ends with this image: a text must follow it")


def _with_marks(i: int, message: Json, found: Mapping[tuple[int, int], Media]) -> Json:
    if not isinstance(content := message.get("content"), list):
        return message
    parts = cast("list[Any]", content)
    marks = (found.get((i, n)) for n in range(len(parts)))
    texts = [
        part if mark is None else {"type": "text", "text": str(mark)} for part, mark in zip(parts, marks, strict=True)
    ]
    return {**message, "content": texts}


def _given(part: Json, pointer: str) -> tuple[str, bytes]:
    """The image of a part, in base64 and as it is. Raises InvalidRequest."""
    given = part.get("image_url")
    url = cast("Json", given).get("url") if isinstance(given, dict) else given
    head = _DATA_URL.match(url) if isinstance(url, str) else None
    if not isinstance(url, str) or head is None:
        reason = "an image is not fetched from an address: send it itself, as data:image/png;base64,…"
        raise InvalidRequest(pointer, reason)
    text = url[head.end() :].translate(_NO_SPACE)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(pointer, f"this is no base64: {error}") from error
    if _BEGINS.match(data) is None:
        raise InvalidRequest(pointer, "this is not an image: PNG, JPEG, GIF and BMP are read")
    return text, data


def _pixels(data: bytes, pointer: str) -> int:
    """How many pixels an image has. Raises InvalidRequest where a few bytes say that it has more than memory holds."""
    try:
        width, height = _size(data)
    except struct.error as error:
        raise InvalidRequest(pointer, "this image is damaged: it does not tell its size") from error
    if not 0 < width * height <= _MOST_PIXELS:
        reason = f"this image has {width} × {height} pixels: it must have one, and may have {_MOST_PIXELS}"
        raise InvalidRequest(pointer, reason)
    return width * height


def _size(data: bytes) -> tuple[int, int]:
    """Width and height, as the head says. Raises struct.error where it does not."""
    if data.startswith(b"\x89PNG"):
        return struct.unpack_from(">II", data, 16)
    if data.startswith(b"GIF"):
        return struct.unpack_from("<HH", data, 6)
    if not data.startswith(b"BM"):
        return _size_of_jpeg(data)
    (head,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<HH" if head == _OLD_HEAD else "<ii", data, 18)
    return abs(width), abs(height)  # negative where rows stand from the top down


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
