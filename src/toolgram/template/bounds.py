"""How large what a template makes may be."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, cast

import jinja2

MAX_TEXT = 1 << 24  # characters in one value, and in the whole prompt
MAX_ITEMS = 1 << 20  # items in one value, nested ones included; also the most copies of something


class TooMuch(jinja2.TemplateError):
    """A template that exceeds the limits."""


def weighed(value: Any) -> Any:
    """The value itself, if its text is bounded: nested lists that repeat one list have exponentially long text."""
    if type(value) is str or not isinstance(value, (dict, list, tuple)):
        return value
    items = characters = 0
    pending: list[Any] = [cast("object", value)]
    while pending:
        holder = pending.pop()
        items += len(holder)
        held: Iterable[Any] = holder
        if isinstance(holder, dict):
            held = chain(held, cast("dict[Any, Any]", holder).values())
        for item in held:
            if type(item) is str:
                characters += len(item)
            elif isinstance(item, (dict, list, tuple)):
                pending.append(item)
        if items + len(pending) > MAX_ITEMS or characters > MAX_TEXT:
            raise TooMuch("writes a value without bound")
    return cast("object", value)
