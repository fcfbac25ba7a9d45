"""Whether a text tells a model to write in a style: all that the style prescribes for a call stands in it."""

from __future__ import annotations

import json
from functools import lru_cache

from toolgram.styles.base import ToolStyle
from toolgram.wire import format as wire


def asked_for(text: str, style: ToolStyle) -> int:
    """How many marks and tags a call of the style has, if they and its keys all stand in the text; else 0.

    The more there are the less it can be chance: of two styles that a text asks for, that with more of them is meant.
    """
    marks, keys = _prescribed(style)
    asked = bool(marks) and not style.is_generic
    asked = asked and all(any(mark in text for mark in spellings) for spellings in marks)
    return len(marks) if asked and all(key in text for key in keys) else 0


@lru_cache(maxsize=512)
def _prescribed(style: ToolStyle) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The marks of the smallest part that a call needs, each in all its spellings, and the keys of its JSON."""
    part: wire.Node = wire.NOTHING_WRITTEN
    for node in wire.walk(style.wire.turn, written=True):
        has_mark = bool(wire.marks_in(node, written=True))
        if has_mark and isinstance(node, wire.Call | wire.Seq) and wire.holds(node, wire.Call):
            part = node
    inside = tuple(wire.walk(part, written=True))
    marks = [mark.spellings for mark in wire.marks_in(part, written=True)]
    tags = [(tag,) for node in inside if isinstance(node, wire.Arguments) for tag in node.encoding.tags]
    keys = [json.dumps(key) for node in inside if isinstance(node, wire.Object) for key, _ in node.members]
    return tuple(dict.fromkeys((*marks, *tags))), tuple(dict.fromkeys(keys))
