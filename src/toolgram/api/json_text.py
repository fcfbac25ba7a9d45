"""The JSON of answers: what a model wrote stands in it as it was written, whatever its numbers, depth or escapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import orjson

from toolgram.wire.encodings.json import RawValue, Status


def json_bytes(value: Any) -> bytes:
    """The JSON of a value; half a surrogate pair, which UTF-8 cannot write, is an escape in it, as it was."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_escaped(value))


def object_text(text: str) -> orjson.Fragment | None:
    """The text of a JSON object, to stand in an answer as it is; None if it is none, as half a one, or one with NaN."""
    try:
        value: Any = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_json)
    except ValueError:
        return None
    except RecursionError:  # deeper than Python reads: a grammar held it, and its brackets say whether it is whole
        _, status = RawValue(lambda _: None).consume(text.strip(), 0)
        return orjson.Fragment(text) if status is Status.DONE else None
    return orjson.Fragment(text) if isinstance(value, dict) else None


def _no_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return value if value.isascii() else orjson.Fragment(json.dumps(value))
        case Mapping():
            return {key: _escaped(one) for key, one in cast("Mapping[str, Any]", value).items()}
        case list() | tuple() if not isinstance(value, orjson.Fragment):
            return [_escaped(one) for one in cast("Sequence[Any]", value)]
        case _:
            return value
