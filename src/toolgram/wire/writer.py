"""A wire format as a writer: a message as the text that the model would have written.

It writes the one spelling that the grammar admits. A message that the format has no place for is not written: None.
Turns of the history have no request: there values are written as they are, whatever their schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from toolgram.conversation.message import Message, ToolCall
from toolgram.schema.writing.json_style import Spelling, quoted
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.wire import format as wire
from toolgram.wire.encodings import AnyEncoding
from toolgram.wire.instructions import FREE_FIELDS, FreeField
from toolgram.wire.program import Program, compile_format

WriteArguments = Callable[[ToolCall, AnyEncoding], str | None]
WriteAnswer = Callable[[str, AnyEncoding], str | None]

INTEGER_DIGITS, FRACTION_DIGITS = 19, 17


def write(
    format_: wire.WireFormat,
    message: Message,
    write_arguments: WriteArguments,
    write_answer: WriteAnswer | None = None,
    stops: tuple[str, ...] = (),
    names: Collection[str] = (),
) -> str | None:
    """The message as text of the format; None where the format cannot say all of it.

    `write_arguments` spells the arguments of a call in an encoding, `write_answer` the content as the value of a
    response schema in one; each gives None for what is not valid. Free text with a mark that would end it, or one of
    `stops`, cannot be written, nor such that begins as a call of a tool with one of the `names`, or of any if there are
    none.
    """
    program = compile_format(format_.turn)
    marks, last = _spoilers(program)
    never: dict[FreeField, tuple[str, ...]] = {field: (*marks[field], *stops) for field in FREE_FIELDS}
    writing = _Writing(format_, write_arguments, write_answer, never, program.first_of_text(names), last)
    done = writing.node(format_.turn, _State(message), in_json=False)
    if done is None or done.left != _NOTHING_LEFT:
        return None
    return done.text


@lru_cache(maxsize=512)
def _spoilers(program: Program) -> tuple[Mapping[FreeField, tuple[str, ...]], Mapping[FreeField, tuple[str, ...]]]:
    """For each field of free text what must not stand in it, and what it must not end with."""
    marks: dict[FreeField, tuple[str, ...]] = {field: program.markers(field) for field in FREE_FIELDS}
    last: dict[FreeField, tuple[str, ...]] = {field: tuple(program.last_characters(field)) for field in FREE_FIELDS}
    return marks, last


@dataclass(frozen=True, slots=True)
class _State:
    """What has been written, whether an answer is in it, and what of the message is still to be."""

    message: Message
    text: str = ""
    call: ToolCall | None = None
    answered: bool = False

    @property
    def left(self) -> Message:
        message = self.message
        return replace(message, content=message.content or None, reasoning=message.reasoning or None)

    def plus(self, text: str) -> _State:
        return replace(self, text=self.text + text)


_NOTHING_LEFT = Message()


@dataclass(frozen=True, slots=True)
class _Writing:
    format_: wire.WireFormat
    write_arguments: WriteArguments
    write_answer: WriteAnswer | None
    never: Mapping[FreeField, tuple[str, ...]]
    never_first: tuple[str, ...]
    never_last: Mapping[FreeField, tuple[str, ...]]

    def node(self, node: wire.Node, state: _State, *, in_json: bool) -> _State | None:
        """The state after the node is written; None where it cannot be."""
        match node:
            case wire.Lit(text) | wire.Mark(text):
                return state.plus(text)
            case wire.Break(text):
                return state.plus(text) if state.answered else state
            case wire.NamedMark():
                return None if state.call is None else state.plus(node.text(state.call.name))
            case wire.CallAhead():
                return None  # reasoning is always closed
            case wire.Const(text):
                return state.plus(_string(text))
            case wire.Content(encoding):
                return self.content(state, encoding, in_json=in_json)
            case wire.Reasoning():
                text = self.free("reasoning", state.message.reasoning, in_json=in_json)
                state = replace(state, message=replace(state.message, reasoning=None))
                return None if text is None else state.plus(text)
            case wire.Name() | wire.CallId():
                text = None if state.call is None else _name_or_id(node, state.call)
                return None if text is None else state.plus(_string(text) if in_json else text)
            case wire.Arguments(encoding):
                text = None if state.call is None else self.write_arguments(state.call, encoding)
                return None if text is None else state.plus(text)
            case wire.Call(item):
                return self.call(item, state, in_json=in_json)
            case wire.Object():
                return self.object(node, state)
            case wire.Array(item):
                layout = self.format_.layout(node)
                begun, end = state.plus("[" + layout.first.text), layout.last.text + "]"
                return self.several(item, begun, layout.item.text, in_json=True, end=end)
            case _:
                return self.composite(node, state, in_json=in_json)

    def composite(self, node: wire.Node, state: _State, *, in_json: bool) -> _State | None:
        match node:
            case wire.Seq(items):
                for item in items:
                    after = self.node(item, state, in_json=in_json)
                    if after is None:
                        return None
                    state = after
                return state
            case wire.Alt(options):
                written = (self.node(option, state, in_json=in_json) for option in _best(options, state))
                return next((after for after in written if after is not None), None)
            case wire.Opt(item):
                return self.node(item, state, in_json=in_json) if _wanted(item, state) else state
            case wire.Lenient(item):
                return self.node(item, state, in_json=in_json)
            case wire.Many(item):
                if not _wanted(item, state):
                    return state if not node.min else None
                return self.several(item, state, self.literal(node.separator), in_json=in_json)
            case wire.Chain():
                return self.chain(node, state)
            case _:
                raise TypeError(f"{type(node).__name__} is not a composite")

    def chain(self, node: wire.Chain, state: _State) -> _State | None:
        join = self.literal(node.join)
        begun = False
        for item in node.items:
            inner = _inner(item)
            if inner is not item and not _wanted(inner, state):
                continue
            after = self.several(inner, state.plus(join if begun else ""), join, in_json=False)
            if after is None:
                return None
            state, begun = after, True
        if begun:
            return state
        # A chain is never empty: a turn that says nothing is an empty answer.
        answer = next((item for item in node.items if wire.holds(item, wire.Content, written=True)), None)
        return None if answer is None else self.several(_inner(answer), state, join, in_json=False)

    def several(self, item: wire.Node, state: _State, separator: str, *, in_json: bool, end: str = "") -> _State | None:
        """The item once, and again for what it has a place for and that is left; None where that finds no place."""
        first = True
        while first or _wanted(item, state):
            after = self.node(item, state if first else state.plus(separator), in_json=in_json)
            if after is None or (not first and after.left == state.left):
                return None
            state, first = after, False
        return state.plus(end)

    def literal(self, node: wire.Node) -> str:
        """A separator's text."""
        written = self.node(node, _State(_NOTHING_LEFT), in_json=False)
        return "" if written is None else written.text

    def content(self, state: _State, encoding: AnyEncoding, *, in_json: bool) -> _State | None:
        if self.write_answer is not None:
            text = self.write_answer(state.message.content or "", encoding)
        else:
            text = self.free("content", state.message.content, in_json=in_json)
        if text is None:
            return None
        return replace(state, message=replace(state.message, content=None), answered=bool(text)).plus(text)

    def free(self, field: FreeField, text: str | None, *, in_json: bool) -> str | None:
        text = text or ""
        if in_json:
            return _string(text)
        spoilt = any(mark in text for mark in self.never[field]) or text.endswith(self.never_last[field])
        spoilt |= field == "content" and text.startswith(self.never_first)
        return None if spoilt else text

    def call(self, item: wire.Node, state: _State, *, in_json: bool) -> _State | None:
        if not _calls(state):
            return None
        call, *rest = state.message.tool_calls
        state = replace(state, message=replace(state.message, tool_calls=tuple(rest)), call=call)
        if call.id is not None and not wire.holds(item, wire.CallId, written=True):
            return None
        after = self.node(item, state, in_json=in_json)
        return None if after is None else replace(after, call=None)

    def object(self, node: wire.Object, state: _State) -> _State | None:
        layout = self.format_.layout(node)
        state = state.plus("{" + layout.first.text)
        for i, (key, member) in enumerate(node.members):
            lead = layout.item.text if i else ""
            after = self.node(member, state.plus(lead + _string(key) + layout.key.text), in_json=True)
            if after is None:
                return None
            state = after
        return state.plus(layout.last.text + "}")


def _best(options: Iterable[wire.Node], state: _State) -> list[wire.Node]:
    """The options, first those that have a place for just the calls that are left, for the reasoning, for content."""

    def unfit(option: wire.Node) -> tuple[bool, bool, bool]:
        return (
            wire.holds(option, wire.Call, written=True) != bool(_calls(state)),
            wire.holds(option, wire.Reasoning, written=True) != bool(state.message.reasoning),
            bool(state.message.content) and not wire.holds(option, wire.Content, written=True),
        )

    return sorted(options, key=unfit)


def _inner(node: wire.Node) -> wire.Node:
    return node.item if isinstance(node, wire.Opt | wire.Many) else node


def _name_or_id(node: wire.Name | wire.CallId, call: ToolCall) -> str | None:
    """The name, or what the wire shows of the id; None for an id that is not of the form."""
    if isinstance(node, wire.Name):
        return call.name
    before, _, after = node.form.replace("{name}", call.name).partition("{id}")
    if call.id is None or not (call.id.startswith(before) and call.id.endswith(after)):
        return None
    return call.id[len(before) : len(call.id) - len(after)]


def _string(text: str) -> str:
    return quoted(text, Spelling())


def _calls(state: _State) -> tuple[ToolCall, ...]:
    return state.message.tool_calls


def _wanted(node: wire.Node, state: _State) -> bool:
    """Whether an optional part is needed to write what is left of the message."""
    return bool(
        (_calls(state) and wire.holds(node, wire.Call, written=True))
        or (state.message.content and wire.holds(node, wire.Content, written=True))
        or (state.message.reasoning and wire.holds(node, wire.Reasoning, written=True))
    )


# Without a request


def write_freely(format_: wire.WireFormat, message: Message) -> str | None:
    """A turn of the history in a format, whether or not its tools are still there: values are spelled as they are."""

    def arguments(call: ToolCall, encoding: AnyEncoding) -> str:
        try:
            return write_arguments(format_, call, encoding)
        except (ValueError, RecursionError):
            return call.arguments

    calls = tuple(replace(call, id=_shown_id(call, at, format_.call_id)) for at, call in enumerate(message.tool_calls))
    return write(format_, replace(message, tool_calls=calls), arguments)


def _shown_id(call: ToolCall, at: int, form: wire.CallId | None) -> str | None:
    """The id of a call in a format: its own, but a number where ids count and it is none, or where it has none."""
    if form is None:
        return None
    own = call.id and (form.admits(call.name, call.id) or (form.form == "{id}" and form.alphabet != "0-9"))
    return call.id if own else form.form.format(name=call.name, id=str(at).zfill(form.length))


def write_arguments(format_: wire.WireFormat, call: ToolCall, encoding: AnyEncoding) -> str:
    """The arguments of a call, whatever their schema. Raises ValueError where they are no JSON."""
    return encoding.write(json.loads(call.arguments), spelling_of(format_, encoding))


def spelling_of(format_: wire.WireFormat, encoding: AnyEncoding) -> Spelling:
    """How values of an encoding are spelled in a format."""
    return _spelling(format_.item_separator, format_.key_separator, encoding.notation)


@lru_cache(maxsize=256)
def _spelling(item_separator: str, key_separator: str, notation: Notation) -> Spelling:
    return Spelling(
        item_separator=item_separator if notation.item_separator is None else notation.item_separator,
        key_separator=key_separator if notation.key_separator is None else notation.key_separator,
        integer_digits=INTEGER_DIGITS,
        fraction_digits=FRACTION_DIGITS,
        free=True,
        encoding=notation,
    )
