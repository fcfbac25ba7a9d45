"""Bounds of strings that the grammar enforced roughly, looked at again in what was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from toolgram.conversation.message import Message
from toolgram.errors import json_pointer
from toolgram.planning.plan import Plan
from toolgram.schema.types import String, Text
from toolgram.wire.encodings.expected import Expected, options_of

_KEYWORDS = frozenset({"minLength", "maxLength", "pattern"})


@dataclass(frozen=True, slots=True)
class BrokenBound:
    """A string that breaks a bound of its schema, which the grammar enforced roughly.

    `pointer` leads to it in the arguments of the call of this number; `keyword` is the bound, "pattern" also for a
    `format`.
    """

    call: int
    pointer: str
    keyword: str


def broken_bounds(plan: Plan, message: Message) -> tuple[BrokenBound, ...]:
    """The bounds that the message breaks, in the calls of tools with such bounds; none in a call that was cut off."""
    rough = tuple(each.pointer for each in plan.relaxations if each.keyword in _KEYWORDS)
    tools = {
        tool.name
        for tool in plan.request.callable_tools
        if any(pointer.startswith(f"{tool.schema_pointer}/") for pointer in rough)
    }
    return tuple(
        BrokenBound(number, json_pointer(*steps), keyword)
        for number, call in enumerate(message.tool_calls)
        if call.name in tools and not call.incomplete
        for steps, keyword in _broken(_value(call.arguments), plan.expected[call.name], ())
    )


def _value(arguments: str) -> object:
    """The arguments; None for what nothing constrained and is no JSON, which `Reply.valid` tells."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _broken(
    value: object, expected: Expected, steps: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The strings in a value that break a bound, by the steps that lead to each, and which."""
    match value:
        case str():
            if keyword := _broken_by(value, expected):
                yield steps, keyword
        case dict():
            for key, member in cast("dict[str, object]", value).items():
                yield from _broken(member, expected.member(key), (*steps, key))
        case list():
            for at, item in enumerate(cast("list[object]", value)):
                yield from _broken(item, expected.item(at), (*steps, at))
        case _:
            pass


def _broken_by(text: str, expected: Expected) -> str | None:
    """The bound that a string breaks where only bounded strings may stand."""
    options = list(options_of(expected.canonical, expected.kind))
    strings = [option for option in options if isinstance(option, String)]
    if not strings or Text(text) in options or any(option.admits(text) for option in strings):
        return None
    first = strings[0]
    if len(text) < first.min:
        return "minLength"
    return "maxLength" if first.max is not None and len(text) > first.max else "pattern"
