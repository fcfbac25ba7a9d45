"""Whether what came is right: texts by their words, numbers by their value, calls in any order."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, cast

from toolgram.bench.questions import Expected, Question
from toolgram.conversation.message import Message, ToolCall

_MOST_ORDERS = 6  # calls; of more, the order must be the expected one
_BETWEEN_WORDS = re.compile(r"[\s_]+")


def fault(question: Question, message: Message) -> str:
    """What is wrong with the answer to a question; "" if it is right."""
    if question.schema is not None:
        try:
            return _value_fault("the answer", question.answer, json.loads(message.content or ""))
        except ValueError:
            return "the answer is no JSON"
    calls, expected = message.tool_calls, question.calls
    if len(calls) != len(expected):
        return f"{len(calls)} calls, not {len(expected)}"
    names = sorted(call.name for call in calls)
    if names != sorted(call.name for call in expected):
        return f"calls of {', '.join(names)}"
    orders = permutations(calls) if len(calls) <= _MOST_ORDERS else [calls]
    faults = (_first_fault(expected, order) for order in orders)
    first = next(faults, "")
    return "" if not first or not all(faults) else first


def right_tools(question: Question, message: Message) -> bool:
    """Whether the tools that were called are those expected, each as often as it should be."""
    return sorted(call.name for call in message.tool_calls) == sorted(call.name for call in question.calls)


def _first_fault(expected: Sequence[Expected], calls: Sequence[ToolCall]) -> str:
    faults = (_call_fault(*each) for each in zip(expected, calls, strict=True))
    return next(filter(None, faults), "")


def _call_fault(expected: Expected, call: ToolCall) -> str:
    if call.name != expected.name:
        return f"a call of {call.name}"
    try:
        return _value_fault(call.name, expected.arguments, json.loads(call.arguments))
    except ValueError:
        return f"the arguments of {call.name} are no JSON"


def _value_fault(where: str, expected: Any, value: Any) -> str:
    """What is wrong with a value; "" if it is right."""
    match expected:
        case {"any": list()}:
            options = cast("list[Any]", expected["any"])
            faults = [_value_fault(where, option, value) for option in options]
            return "" if "" in faults else faults[0]
        case Mapping():
            return _object_fault(where, cast("Mapping[str, Any]", expected), value)
        case list():
            items = cast("list[Any]", expected)
            if not isinstance(value, list) or len(cast("list[Any]", value)) != len(items):
                return f"{where} is {_told(value)}"
            found = cast("list[Any]", value)
            return next(filter(None, (_value_fault(where, *each) for each in zip(items, found, strict=True))), "")
        case _:
            return "" if _same(expected, value) else f"{where} is {_told(value)}, not {_told(expected)}"


def _object_fault(where: str, expected: Mapping[str, Any], value: Any) -> str:
    if not isinstance(value, dict):
        return f"{where} is {_told(value)}"
    given = cast("dict[str, Any]", value)
    known = {name.removesuffix("?"): each for name, each in expected.items()}
    if unknown := next((name for name in given if name not in known), None):
        return f"{where}.{unknown} is there"
    if missing := next((name for name in expected if not name.endswith("?") and name not in given), None):
        return f"{where}.{missing} is missing"
    return next(filter(None, (_value_fault(f"{where}.{name}", known[name], each) for name, each in given.items())), "")


def _same(expected: Any, value: Any) -> bool:
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if isinstance(expected, int | float) and isinstance(value, int | float):
        return math.isclose(expected, value, rel_tol=1e-9)
    if isinstance(expected, str) and isinstance(value, str):
        return _words(expected) == _words(value)
    return False


def _words(text: str) -> str:
    return _BETWEEN_WORDS.sub(" ", text).strip(" .!?'\"").casefold()


def _told(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
