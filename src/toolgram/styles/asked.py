"""Whether a text tells a model to write in a style: all that the style prescribes for a call stands in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

from toolgram.styles.base import ToolStyle
from toolgram.wire import format as wire
from toolgram.wire.encodings import AnyEncoding, Elements, Tagged


def asked_for(text: str, style: ToolStyle) -> int:
    """How many marks and tags a call of the style has, if they and its keys all stand in the text; else 0.

    The more there are the less it can be chance: of two styles that a text asks for, that with more of them is meant.
    """
    marks, _ = _prescribed(style)
    return 0 if style.is_generic or not_asked_for(text, style) else len(marks)


def not_asked_for(text: str, style: ToolStyle) -> tuple[tuple[str, ...], ...]:
    """What the style prescribes for a call and the text lacks, each in all its spellings."""
    marks, keys = _prescribed(style)
    prescribed = (*marks, *((key,) for key in keys))
    return tuple(spellings for spellings in prescribed if not any(each in text for each in spellings))


@lru_cache(maxsize=512)
def _prescribed(style: ToolStyle) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The marks of the smallest part that a call needs, each in all its spellings, and the keys of its JSON."""
    part: wire.Node = wire.NOTHING_WRITTEN
    for node in wire.walk(style.wire.turn, written=True):
        has_mark = any(isinstance(each, wire.Mark) for each in wire.walk(node, written=True))
        if has_mark and isinstance(node, wire.Call | wire.Seq) and wire.holds(node, wire.Call):
            part = node
    inside = tuple(wire.walk(part, written=True))
    marks = [node.spellings for node in inside if isinstance(node, wire.Mark)]
    tags = [(tag,) for node in inside if isinstance(node, wire.Arguments) for tag in _tags(node.encoding)]
    keys = [json.dumps(key) for node in inside if isinstance(node, wire.Object) for key, _ in node.members]
    return tuple(dict.fromkeys((*marks, *tags))), tuple(dict.fromkeys(keys))


def _tags(encoding: AnyEncoding) -> Iterator[str]:
    """What arguments are written with, where it is not JSON or Python."""
    if isinstance(encoding, Tagged):
        for text in (encoding.open, *(text for _, text in encoding.after_key), encoding.close):
            yield from text.split()
    elif isinstance(encoding, Elements):
        yield encoding.lead
    elif not encoding.escapes:
        yield encoding.quote
