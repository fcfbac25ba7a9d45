"""Whether a format writes calls as the template does: the reader is lenient, so reading alone proves too little."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.probes import REASONING, CallProbe
from toolgram.wire import format as wire
from toolgram.wire.writer import write, write_arguments


def differs(format_: wire.WireFormat, calls: tuple[CallProbe, ...], rendered: str) -> str:
    """What the format writes for these calls if the template writes something else, white space aside; else "".

    The template may write more: reasoning tags before the calls, and what comes next after them. It may also leave out
    what closes them.
    """
    ways = (text for each in ways_to_quote(format_, calls) for text in _written(format_, each))
    texts = [_without_space(text) for text in ways if text is not None]
    shown = _without_space(rendered)
    if any(text in shown for text in texts):
        return ""
    first = shown.find(_without_space(calls[0].name))
    if any(text.startswith(shown[at:]) for text in texts for at in range(first)):
        return ""
    return texts[0] if texts else "nothing"


def goes_on(format_: wire.WireFormat, calls: tuple[CallProbe, ...], opened: str) -> bool:
    """Whether calls may follow what a prompt opened: nothing of the format, or the beginning of a turn with them.

    Reasoning may come first, and the prompt may say that there is none; white space does not count.
    """
    marks = wire.marks_in(format_.turn, written=True)  # a header that may stand there again is only read
    if not any(text in opened for mark in marks for text in mark.spellings):
        return True
    turns = [Message(None, thought, said) for said in _said(format_, calls) for thought in (None, REASONING)]
    texts = [_without_space(write(format_, turn, partial(write_arguments, format_)) or "") for turn in turns]
    begun = _without_space(opened)
    return any(text.startswith(begun) or text.replace(REASONING, "").startswith(begun) for text in texts)


def ways_to_quote(format_: wire.WireFormat, calls: tuple[CallProbe, ...]) -> tuple[tuple[CallProbe, ...], ...]:
    """The calls as they are, and as a template shows them that quotes all values, whatever their types.

    Between tags nothing is quoted: the tool's schema gives the type of a value.
    """
    if not all(encoding.shows_types for encoding in format_.encodings):
        return (calls,)
    return (calls, *(tuple(_quoted(each, printed) for each in calls) for printed in (str, json.dumps)))


def _quoted(probe: CallProbe, printed: Callable[[Any], str]) -> CallProbe:
    values = {key: value if isinstance(value, str) else printed(value) for key, value in probe.arguments.items()}
    return replace(probe, text=json.dumps(values, ensure_ascii=False))


def _written(format_: wire.WireFormat, calls: tuple[CallProbe, ...]) -> list[str | None]:
    """The calls as the format writes them."""
    spell_as = partial(write_arguments, format_)
    return [write(format_, Message(tool_calls=said), spell_as) for said in _said(format_, calls)]


def _said(format_: wire.WireFormat, calls: tuple[CallProbe, ...]) -> list[tuple[ToolCall, ...]]:
    """The calls with ids as the format writes them; ids that count up may begin with 0 or 1."""
    form = format_.call_id
    counts = form is not None and form.alphabet == "0-9"

    def id_of(probe: CallProbe, at: int) -> str | None:
        if form is None:
            return None
        return form.form.format(name=probe.name, id=at) if counts else probe.id

    return [
        tuple(ToolCall(each.name, each.text, id_of(each, at)) for at, each in enumerate(calls, begin))
        for begin in ((0, 1) if counts else (0,))
    ]


def _without_space(text: str) -> str:
    return "".join(text.split()).replace("'", '"')
