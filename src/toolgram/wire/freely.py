"""Turns written in a format without a request: values are spelled as they are, whatever their schemas."""

from __future__ import annotations

import json
from dataclasses import replace

from toolgram.conversation.message import Message, ToolCall
from toolgram.schema.writing.json_style import Spelling
from toolgram.schema.writing.values import spell
from toolgram.wire import format as wire
from toolgram.wire.element_values import written_elements
from toolgram.wire.encodings import JSON, AnyEncoding, Elements, Encoding, Tagged
from toolgram.wire.tagged_values import written
from toolgram.wire.writer import write

INTEGER_DIGITS, FRACTION_DIGITS = 19, 17


def write_freely(format_: wire.WireFormat, message: Message) -> str | None:
    """A turn of the history in a format, whether or not its tools are still there: values are spelled as they are."""

    def arguments(call: ToolCall, encoding: AnyEncoding) -> str:
        try:
            value = json.loads(call.arguments)
            if isinstance(encoding, Elements):
                return written_elements(encoding, value, spelling_of(format_, JSON))
            if isinstance(encoding, Tagged):
                spelling = spelling_of(format_, JSON)
                return "".join(written(encoding, key, each, spell(each, spelling)) or "" for key, each in value.items())
            return spell(value, spelling_of(format_, encoding))
        except (ValueError, RecursionError):
            return call.arguments

    form = next((node for node in wire.walk(format_.turn) if isinstance(node, wire.CallId)), None)
    calls = tuple(replace(call, id=_shown_id(call, at, form)) for at, call in enumerate(message.tool_calls))
    return write(format_, replace(message, tool_calls=calls), arguments)


def _shown_id(call: ToolCall, at: int, form: wire.CallId | None) -> str | None:
    """The id of a call in a format: its own, but a number where ids count and it is none, or where it has none."""
    if form is None:
        return None
    own = call.id and (form.admits(call.name, call.id) or (form.form == "{id}" and form.alphabet != "0-9"))
    return call.id if own else form.form.format(name=call.name, id=str(at).zfill(form.length))


def spelling_of(format_: wire.WireFormat, encoding: Encoding) -> Spelling:
    """How values of an encoding are spelled in a format."""
    return Spelling(
        item_separator=format_.item_separator if encoding.item_separator is None else encoding.item_separator,
        key_separator=format_.key_separator if encoding.key_separator is None else encoding.key_separator,
        integer_digits=INTEGER_DIGITS,
        fraction_digits=FRACTION_DIGITS,
        encoding=encoding,
    )
