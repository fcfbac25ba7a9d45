"""Whether a format writes calls as the template does: the reader is lenient, so reading alone proves too little."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from toolgram.conversation.message import Message, ToolCall
from toolgram.schema.writing.json_style import Spelling
from toolgram.schema.writing.values import spell
from toolgram.styles.probes import REASONING, CallProbe
from toolgram.wire import format as wire
from toolgram.wire.element_values import written_elements
from toolgram.wire.encodings import JSON, AnyEncoding, Elements, Encoding
from toolgram.wire.tagged_values import written
from toolgram.wire.writer import write


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
    marks = [node.text for node in wire.walk(format_.turn, written=True) if isinstance(node, wire.Mark)]
    if not any(mark in opened for mark in marks):
        return True
    turns = [Message(None, reasoning, said) for said in _said(format_, calls) for reasoning in (None, REASONING)]
    texts = [_without_space(write(format_, turn, partial(_arguments, format_)) or "") for turn in turns]
    begun = _without_space(opened)
    return any(text.startswith(begun) or text.replace(REASONING, "").startswith(begun) for text in texts)


def ways_to_quote(format_: wire.WireFormat, calls: tuple[CallProbe, ...]) -> tuple[tuple[CallProbe, ...], ...]:
    """The calls as they are, and as a template shows them that quotes all values, whatever their types.

    Between tags nothing is quoted: the tool's schema gives the type of a value.
    """
    encodings = (node.encoding for node in wire.walk(format_.turn) if isinstance(node, wire.Arguments))
    if not all(isinstance(encoding, Encoding) for encoding in encodings):
        return (calls,)
    return (calls, *(tuple(_quoted(each, printed) for each in calls) for printed in (str, json.dumps)))


def _quoted(probe: CallProbe, printed: Callable[[Any], str]) -> CallProbe:
    values = {key: value if isinstance(value, str) else printed(value) for key, value in probe.arguments.items()}
    return replace(probe, text=json.dumps(values, ensure_ascii=False))


def _written(format_: wire.WireFormat, calls: tuple[CallProbe, ...]) -> list[str | None]:
    """The calls as the format writes them."""
    spell_as = partial(_arguments, format_)
    return [write(format_, Message(tool_calls=said), spell_as) for said in _said(format_, calls)]


def _said(format_: wire.WireFormat, calls: tuple[CallProbe, ...]) -> list[tuple[ToolCall, ...]]:
    """The calls with ids as the format writes them; ids that count up may begin with 0 or 1."""
    ids = [node for node in wire.walk(format_.turn) if isinstance(node, wire.CallId)]
    counted = any(node.alphabet == "0-9" for node in ids)
    return [
        tuple(
            ToolCall(each.name, each.text, None if not ids else str(at) if counted else each.id)
            for at, each in enumerate(calls, begin)
        )
        for begin in ((0, 1) if counted else (0,))
    ]


def _arguments(format_: wire.WireFormat, call: ToolCall, encoding: AnyEncoding) -> str:
    value = json.loads(call.arguments)
    plain = encoding if isinstance(encoding, Encoding) else JSON
    spelling = Spelling(
        item_separator=format_.item_separator if plain.item_separator is None else plain.item_separator,
        key_separator=format_.key_separator if plain.key_separator is None else plain.key_separator,
        encoding=plain,
    )
    if isinstance(encoding, Encoding):
        return spell(value, spelling)
    if isinstance(encoding, Elements):
        return written_elements(encoding, value, spelling)
    return "".join(written(encoding, key, each, spell(each, spelling)) or "" for key, each in value.items())


def _without_space(text: str) -> str:
    return "".join(text.split()).replace("'", '"')
