"""Reading the fields of a request body: each has a type and a range, and what is wrong is told with its place."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from toolgram.errors import InvalidRequest

Body = Mapping[str, Any]

MAX_INTEGER = 2**53 - 1
"""The largest whole number on which all readers of JSON agree (RFC 8259, 6)."""


def mapping(value: Any, pointer: str) -> Body:
    """The value, an object. Raises InvalidRequest, as all of these do."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(pointer, f"must be an object, not {kind(value)}")
    return cast("Body", value)


def listed(value: Any, pointer: str) -> Sequence[Any]:
    """The value, a list."""
    if not isinstance(value, list | tuple):
        raise InvalidRequest(pointer, f"must be a list, not {kind(value)}")
    return cast("Sequence[Any]", value)


def inner(body: Body, key: str, at: str = "") -> Body:
    """A field that is an object; an empty one where it is absent or null."""
    value = body.get(key)
    return {} if value is None else mapping(value, f"{at}/{key}")


def items(body: Body, key: str, at: str = "") -> Sequence[Any]:
    """A field that is a list; an empty one where it is absent or null."""
    value = body.get(key)
    return () if value is None else listed(value, f"{at}/{key}")


def text(value: Any, pointer: str) -> str:
    """The value, a string."""
    if not isinstance(value, str):
        raise InvalidRequest(pointer, f"must be a string, not {kind(value)}")
    return value


def string(body: Body, key: str, at: str = "") -> str | None:
    """A field that is a string; None where it is absent or null, as in the functions below."""
    value = body.get(key)
    return None if value is None else text(value, f"{at}/{key}")


def boolean(body: Body, key: str, at: str = "") -> bool | None:
    """A field that is true or false."""
    value = body.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise InvalidRequest(f"{at}/{key}", f"must be true or false, not {kind(value)}")


def number(body: Body, key: str, low: float, high: float = math.inf, at: str = "") -> float | None:
    """A field that is a number from `low` to `high`, both included."""
    value = body.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(f"{at}/{key}", f"must be a number, not {kind(value)}")
    if not low <= value <= high:
        raise InvalidRequest(f"{at}/{key}", f"must be {_range(low, high)}, not {value}")
    return value


def integer(body: Body, key: str, low: int, high: int = MAX_INTEGER, at: str = "") -> int | None:
    """A field that is a whole number from `low` to `high`, both included."""
    value = number(body, key, low, high, at)
    if value is None:
        return None
    # A number that is too large for an integer of 64 bits comes as the nearest one that is not.
    if value != int(value) or (isinstance(value, float) and abs(value) > MAX_INTEGER):
        raise InvalidRequest(f"{at}/{key}", f"must be a whole number, not {value}")
    return int(value)


def one_of(body: Body, key: str, choices: Sequence[str], at: str = "") -> str | None:
    """A field that is one of some strings."""
    value = body.get(key)
    if value is None or value in choices:
        return value
    raise InvalidRequest(f"{at}/{key}", f"must be one of {', '.join(choices)}")


def strings(body: Body, key: str, most: int, at: str = "") -> tuple[str, ...]:
    """A field that is a string or a list of at most so many; none of them empty."""
    value = body.get(key)
    if value is None:
        return ()
    items = (value,) if isinstance(value, str) else listed(value, f"{at}/{key}")
    if len(items) > most:
        raise InvalidRequest(f"{at}/{key}", f"must hold at most {most} strings, not {len(items)}")
    for i, item in enumerate(items):
        if not text(item, f"{at}/{key}/{i}"):
            raise InvalidRequest(f"{at}/{key}/{i}", "must not be empty")
    return tuple(items)


def unknown(body: Body, known: Collection[str]) -> tuple[str, ...]:
    """The names of the fields that are not known and say something."""
    return tuple(key for key, value in body.items() if key not in known and value is not None)


def kind(value: Any) -> str:
    """What a value is, in JSON's words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"


def _range(low: float, high: float) -> str:
    return f"at least {low:g}" if high in (math.inf, MAX_INTEGER) else f"between {low:g} and {high:g}"
