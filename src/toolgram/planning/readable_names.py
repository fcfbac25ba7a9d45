"""Whether a call of a tool of some name reads back to it: a format may not be able to tell a name from its marks."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from sys import getsizeof

from toolgram.caching import weighed
from toolgram.conversation.message import Message, ToolCall
from toolgram.schema.writing.json_style import writable
from toolgram.wire import format as wire
from toolgram.wire.encodings.expected import UNKNOWN
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.reader.gap import MAX_NAME
from toolgram.wire.writer import write_freely

_OF_A_NAME = 512  # bytes that are kept beside it
_WORD = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")
_SOME_WORD = "zq_0-Zq"  # which no format has in its own texts


def is_readable(name: str, format_: wire.WireFormat) -> bool:
    """Whether a call of a tool of this name reads back to it. Most formats read all words alike."""
    if any(node.text(name) in format_.marks for node in _tags_of_names(format_)):
        return False
    return (_WORD.fullmatch(name) is not None and _reads_words(format_)) or _reads_back(name, format_)


@lru_cache(maxsize=512)
def _tags_of_names(format_: wire.WireFormat) -> tuple[wire.NamedMark, ...]:
    """The tags that a tool's name makes: <think> is none where it opens the reasoning."""
    return tuple(node for node in wire.walk(format_.turn) if isinstance(node, wire.NamedMark))


@lru_cache(maxsize=512)
def _reads_words(format_: wire.WireFormat) -> bool:
    """Whether any word in the place of a name is read as that name: none is told from another before it is over."""
    return _reads_some_word(replace(format_, turn=_of_any_tools(format_.turn)))


def _of_any_tools(node: wire.Node) -> wire.Node:
    """A turn whose thoughts and words end with calls of these tools or those: that is the same for each set of tools,
    since the calls of which it is asked here come after neither."""
    match node:
        case wire.CallAhead(_, _, _, told):
            return replace(node, rests=(_SOME_WORD,), told=told and (_SOME_WORD,))
        case _:
            return wire.rebuild(node, _of_any_tools)


@lru_cache(maxsize=512)
def _reads_some_word(format_: wire.WireFormat) -> bool:
    written = _call(_SOME_WORD, format_)
    if written is None or written.count(_SOME_WORD) != 1:
        return False
    reader = Reader(compile_format(format_.turn))
    reader.feed(written[: written.index(_SOME_WORD)])
    return reader.awaits_a_name and _reads_back(_SOME_WORD, format_)


def _name_weight(name: str, _format: wire.WireFormat) -> int:
    return _OF_A_NAME + getsizeof(name)


@weighed(_name_weight)
def _reads_back(name: str, format_: wire.WireFormat) -> bool:
    """Each is asked by itself, known as that of a tool: beside other calls a name may be read that is none alone."""
    if not writable(name):
        return False
    text = _call(name, format_)
    if text is None:
        return False
    reader = Reader(compile_format(format_.turn), expected={name: UNKNOWN})
    message = Message.from_events([*reader.feed(text), *reader.finish()])
    return message.content is None and [(call.name, call.incomplete) for call in message.tool_calls] == [(name, False)]


def _call(name: str, format_: wire.WireFormat) -> str | None:
    """A turn with a call of this tool without arguments."""
    return write_freely(format_, Message(tool_calls=(ToolCall(name, "{}", some_id(name, format_)),)))


def some_id(name: str, format_: wire.WireFormat) -> str | None:
    """An id as a call of this tool may have; None where the wire carries none."""
    form = format_.call_id
    return None if form is None else form.form.format(name=name, id="0" * form.length)
