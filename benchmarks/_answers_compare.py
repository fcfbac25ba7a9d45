"""Whether calls are those that BFCL expects, in the sense of its checker for Python.

Calls may come in any order. Texts are compared without case, spaces and some punctuation, at the top and one level into
lists and objects. An integer counts as a number only at the top. A value of another type than the schema's is
right if the possible answers have that type: then it must be exactly one of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from _answers_bfcl import Expected

_PYTHON = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_IGNORED = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True)
class Call:
    """A call as a side made it; None for arguments that are no JSON object."""

    name: str
    arguments: Mapping[str, Any] | None


def fault(expected: Sequence[Expected], calls: Sequence[Call], schemas: Mapping[str, Any]) -> str:
    """What is wrong with these calls; "" if nothing is."""
    if len(calls) != len(expected):
        return f"{len(calls)} calls, not {len(expected)}"
    left = list(calls)
    for one in expected:  # each takes the first call that does, as in BFCL
        faults = [_fault(one, call, schemas[one.name]) for call in left]
        if "" not in faults:
            return "; ".join(faults)
        del left[faults.index("")]
    return ""


def _fault(expected: Expected, call: Call, schema: Mapping[str, Any]) -> str:
    given, possible, known = call.arguments, expected.arguments, schema["properties"]
    if call.name != expected.name:
        return f"{call.name} is called, not {expected.name}"
    if given is None:
        return "the arguments are no JSON object"
    if missing := [name for name in schema.get("required", ()) if name not in given]:
        return f"{missing[0]} is missing"
    for name, value in given.items():
        if name not in known or name not in possible:
            return f"{name} is not expected"
        if not _is_right(value, possible[name], known[name]):
            return f"{name} is {value!r}, not one of {possible[name]!r}"
    if missing := [name for name, values in possible.items() if name not in given and "" not in values]:
        return f"{missing[0]} is missing, which has no default"
    return ""


def _is_right(value: Any, possible: Sequence[Any], schema: Mapping[str, Any]) -> bool:
    kind, told = _PYTHON[schema["type"]], _type_of(possible)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        return type(value) is told and value in possible
    items = _PYTHON[schema["items"]["type"]] if "items" in schema else None
    if items and not any(_items_fit(value, one, items) for one in possible):
        return False
    if told not in (None, kind):
        return value in possible
    if kind is dict:
        return any(_is_right_object(value, one) for one in possible)
    if items is dict:
        return any(_are_right_objects(value, one) for one in possible)
    if kind is list:
        return _plain_items(value) in [_plain_items(one) for one in possible]
    return _plain(value) in _plain_items(possible)


def _type_of(possible: Sequence[Any]) -> type | None:
    """The type of the first value that is one."""
    return next((type(one) for one in possible if one != ""), None)


def _items_fit(value: Sequence[Any], possible: Any, kind: type) -> bool:
    """Whether all items have a type that they may have; they do beside a "", where BFCL does not look."""
    return not isinstance(possible, list) or all(type(item) in (kind, _type_of(possible)) for item in value)


def _are_right_objects(value: Sequence[Any], possible: Any) -> bool:
    return len(value) == len(possible) and all(map(_is_right_object, value, possible))


def _is_right_object(value: Mapping[str, Any], possible: Any) -> bool:
    if not isinstance(possible, dict):  # "", since it may be left out
        return False
    right = all(key in possible and _plain(one) in _plain_items(possible[key]) for key, one in value.items())
    return right and all(key in value or "" in values for key, values in possible.items())


def _plain_items(values: Sequence[Any]) -> list[Any]:
    """Of a list; "", which may stand for one that is left out, has none: then an empty list is right too."""
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value
