"""Bodies of requests: their bytes, and how much is in them before anything is made of it."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from toolgram.api.errors import ApiError
from toolgram.server.middleware import too_large
from toolgram.server.request_log import record_of
from toolgram.server.settings import Settings
from toolgram.server.sse import ClientGone

MAX_VALUES = 1 << 19
"""Nothing else runs while JSON is read, and that takes as long as there are values in it, not bytes."""
MAX_PARTS = 1 << 17
"""Objects, lists, and members of objects: each takes ten times as long as a number."""
_EXACT = 1 << 16  # values of a body that Python reads once more: it takes ten times as long, and nothing else runs
_DIGITS = bytes(ord("0") if code in b"0123456789" else 0 for code in range(256))
_BEYOND_64_BITS = b"0" * 19  # digits at least
_SURROGATES = re.compile(
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F]))++"  # all else, as much at once as there is
    rb"|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"
    rb"|(?P<half>\\u[dD][89a-fA-F][\da-fA-F]{2})"
)
_PIECE = 1 << 16  # bytes that are looked through in a millisecond at most


async def received(request: Request, settings: Settings) -> bytearray:
    """The bytes of a body. Raises ApiError: 413 if there are too many, 408 if they do not arrive; and ClientGone."""
    if (encoding := request.headers.get("content-encoding", "identity")) != "identity":
        raise ApiError(
            400, "unsupported_encoding", f"bodies encoded as {encoding[:40]!r} are not supported: send plain JSON"
        )
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_timeout):
            async for piece in request.stream():
                body += piece
                if len(body) > settings.max_body:
                    raise too_large(settings)
    except TimeoutError as error:
        record_of(request.scope).headers["connection"] = "close"  # what comes yet is no request
        reason = f"the body did not arrive within {settings.body_timeout:g} seconds"
        raise ApiError(408, "timeout", reason) from error
    except ClientDisconnect as error:
        raise ClientGone from error
    return body


def parsed(body: bytearray) -> Any:
    """The JSON of a body. Raises ApiError: 413 if too much is in it, 400 if it is none."""
    commas = parts = 0
    if len(body) > MAX_PARTS:
        commas, parts = _counted(body)
        if commas > MAX_VALUES:
            raise ApiError(413, "body_too_large", f"a body may hold at most {MAX_VALUES} values")
        if parts > MAX_PARTS:
            reason = f"a body may hold at most {MAX_PARTS} objects, lists and members of objects"
            raise ApiError(413, "body_too_large", reason)
    value, text = _loaded(body)
    if commas + parts > _EXACT or _BEYOND_64_BITS not in text.translate(_DIGITS):
        return value
    try:
        return json.loads(text)  # of an integer beyond 64 bits orjson makes a float, which is another number
    except RecursionError:
        return value


def _loaded(body: bytearray) -> tuple[Any, bytes | bytearray]:
    """The JSON of a body, and its text; half a character, which is left where a text was cut, becomes U+FFFD."""
    try:
        return orjson.loads(body), body
    except orjson.JSONDecodeError as error:
        whole = _SURROGATES.sub(lambda found: rb"\ufffd" if found["half"] else found[0], body)
        try:
            return orjson.loads(whole), whole
        except orjson.JSONDecodeError:
            raise ApiError(400, "invalid_json", f"the body is not JSON: {error}", "") from error


def _counted(body: bytearray) -> tuple[int, int]:
    """How many commas are outside of strings, and how many parts; other threads run in between."""
    commas = parts = inside = 0
    escape = b""  # that of the next character
    for at in range(0, len(body), _PIECE):
        plain = (escape + body[at : at + _PIECE]).replace(rb"\\", b"").replace(rb"\"", b"")
        escape = b"\\" if plain.endswith(b"\\") else b""
        strings = plain.split(b'"')
        outside = b"".join(strings[inside::2])
        commas += outside.count(b",")
        parts += sum(map(outside.count, (b"{", b"[", b":")))
        inside = (inside + len(strings) - 1) % 2
    return commas, parts
