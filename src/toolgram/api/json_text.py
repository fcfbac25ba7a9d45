"""The JSON of answers: what a model wrote stands in it as it was written, whatever its numbers, depth or escapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from toolgram.wire.encodings.json import RawValue, Status

_LEAST, _MOST = -(2**63), 2**64 - 1  # of the integers that orjson writes
_STRING_OR_CONSTANT = re.compile(r'(?P<string>"(?:\\.|[^"\\])*")|NaN|-?Infinity', re.DOTALL)


def json_bytes(value: Any) -> bytes:
    """The JSON of a value; half a surrogate pair, which UTF-8 cannot write, is an escape in it, as it was.

    An integer may have any size.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_escaped(value))


def kept_bytes(value: Any) -> bytes:
    """The same as `json_bytes`, to be kept: in as much memory as it is long.

    What orjson gives lies in all that it might have needed, for a long string thirteen times its length.
    """
    return bytes(memoryview(json_bytes(value)))


def as_it_is(text: str) -> orjson.Fragment:
    """A JSON text, to stand in an answer as it was written."""
    return orjson.Fragment(text)


def object_text(text: str) -> str | None:
    """The text of a JSON object; None if it is none, as half a one.

    `NaN` and infinities, which Python writes and JSON does not have, are null in it, as JavaScript writes them.
    """
    constants: list[str] = []
    try:
        value: Any = json.loads(text, parse_int=str, parse_float=str, parse_constant=constants.append)
    except ValueError:
        return None
    except RecursionError:  # deeper than Python reads: a grammar held it, and its brackets say whether it is whole
        _, status = RawValue(lambda _: None).consume(text.strip(), 0)
        return text if status is Status.DONE else None
    if constants:
        text = _STRING_OR_CONSTANT.sub(lambda found: found["string"] or "null", text)
    return text if isinstance(value, dict) else None


def _escaped(value: Any) -> Any:
    match value:
        case int() if not _LEAST <= value <= _MOST:
            return as_it_is(str(value))
        case str():
            return value if value.isascii() else orjson.Fragment(json.dumps(value))
        case Mapping():
            return {key: _escaped(one) for key, one in cast("Mapping[str, Any]", value).items()}
        case list() | tuple() if not isinstance(value, orjson.Fragment):
            return [_escaped(one) for one in cast("Sequence[Any]", value)]
        case _:
            return value
