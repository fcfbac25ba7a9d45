"""Which style a template speaks: the one that reads the template's own rendering of a call back to the same call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolgram.conversation.events import ContentDelta, Event, ToolCallEnd, Unreadable
from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.base import ToolStyle
from toolgram.styles.discovery import discover
from toolgram.styles.probes import CONTENT, ONE, REASONING, TurnProbe, rendered
from toolgram.styles.turn_edges import opening, rendered_turns, stripped
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import MARKER
from toolgram.wire import format as wire
from toolgram.wire.program import Program
from toolgram.wire.reader import Reader
from toolgram.wire.writer import write_freely

_PROBE = Message(tool_calls=(ToolCall(ONE.name, ONE.text),))
_MORE = (
    Message(CONTENT),
    Message(CONTENT, REASONING),
    replace(_PROBE, content=CONTENT),
    replace(_PROBE, reasoning=REASONING),
)
_ENDINGS = ("next", "later")
MOST_READ = 3 * len(_MORE) + 3
"""The fit of a style that reads every turn back and writes a call exactly as the template does."""


@lru_cache(maxsize=4096)
def fit(template: ChatTemplate, style: ToolStyle) -> int:
    """How well the style fits: how many of the template's own renderings it reads back to what was said.

    0 if a call is not among them. Of two styles that read the same turns, the one that also writes a call as the
    template does fits better. A template that writes no calls is judged by its prompt: by how it shows the tools, or by
    the call syntax that it asks the model for. The same goes for a template that writes bare calls, without a marker,
    into the history: a style that it explicitly asks for fits better.
    """
    if not template.capabilities.supports_tool_calls:
        shown = announcement(template)
        return int(bool(style.announced_by) and style.announced_by in shown) or asked_for(shown, style)
    if missing(template, style):  # reading is costly, and most styles are not the template's
        return _fit_of_what_is_asked(template, style)
    if not _reads(template, style, _PROBE):
        return _fit_of_what_is_asked(template, style)
    written, texts = _both_calls(template, style)
    exact = 0 if written is None else _is_one_of(written, texts) + any(written.strip() in text for text in texts)
    return 3 * sum(_reads(template, style, probe) for probe in _MORE) + 1 + exact


def _reads(template: ChatTemplate, style: ToolStyle, probe: Message) -> bool:
    """Whether the style reads the template's rendering of a turn back."""
    program, opened, said = style.program(ONE.name), beginnings(template, style), _with_id(probe, style)
    return any(says(program, each, text, said) for text in rendered_turns(template, said) for each in opened)


def reads_more(template: ChatTemplate, other: ToolStyle, style: ToolStyle) -> bool:
    """Whether another style reads more of the template's turns back than one that reads its calls."""
    return _turns_read(fit(template, other)) > _turns_read(fit(template, style))


def _turns_read(found: int) -> int:
    """How many turns a fit says that a style reads, besides those that are calls alone."""
    return (found - 1) // 3


@lru_cache(maxsize=512)
def misreads(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the template writes all that is said in a turn, and the style does not read that back: one that has the
    calls of a family, but tags of its own around answers, or between thoughts and calls."""
    return any(_is_written(template, style, probe) and not _reads(template, style, probe) for probe in _MORE)


def _is_written(template: ChatTemplate, style: ToolStyle, probe: Message) -> bool:
    said = _with_id(probe, style)
    parts = [part for part in (said.content, said.reasoning, *(call.name for call in said.tool_calls)) if part]
    return any(all(part in text for part in parts) for text in rendered_turns(template, said))


@lru_cache(maxsize=4096)
def writes_alike(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style writes a call as the template does, but for white space."""
    written, texts = _both_calls(template, style)
    bare = None if written is None else "".join(written.split())
    return bare is not None and any(bare in "".join(text.split()) for text in texts)


@lru_cache(maxsize=4096)
def reads_as_written(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style reads the template's call even without what only a reader takes: that may be another's form."""
    plain = _as_written(style)
    program, opened, said = plain.program(ONE.name), beginnings(template, plain), _with_id(_PROBE, style)
    return any(says(program, each, text, said) for text in rendered_turns(template, said) for each in opened)


def _as_written(style: ToolStyle) -> ToolStyle:
    """The style without what only a reader takes."""
    return replace(style, wire=replace(style.wire, turn=wire.as_written(style.wire.turn)))


@lru_cache(maxsize=512)
def writes_other_json(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the calls of the template are other JSON objects than those of the style, which reads them."""
    is_json = any(isinstance(node, wire.Object) for node in wire.walk(style.wire.turn, written=True))
    if not is_json or write_freely(style.wire, _with_id(_PROBE, style, ONE.id)) is None or missing(template, style):
        return False
    return not writes_alike(template, style)


def _is_one_of(written: str, texts: tuple[str, ...]) -> bool:
    """Whether a turn is one of these texts, which have what the template writes before the end of a turn as well."""
    return written.rstrip() in (text.rstrip() for text in texts)


def _both_calls(template: ChatTemplate, style: ToolStyle) -> tuple[str | None, tuple[str, ...]]:
    """A call as the style writes it, if it can, and as the template does, cut at each place where it may begin."""
    written = write_freely(style.wire, _with_id(_PROBE, style, ONE.id))
    return written, rendered_turns(template, _with_id(_PROBE, style))


def _with_id(probe: Message, style: ToolStyle, other: str | None = None) -> Message:
    """The probe with an id that has the tool's name in it, where the style's have, else with this one.

    Some templates show no more of the name than that.
    """
    form = style.wire.call_id
    id_ = form.fitted(ONE.name, "", 0) if form is not None and form.has_name else other
    return replace(probe, tool_calls=tuple(replace(call, id=id_) for call in probe.tool_calls))


def beginnings(template: ChatTemplate, style: ToolStyle) -> tuple[str, ...]:
    """The beginnings of a turn that a prompt may already hold, which the template may then leave out of the turn."""
    opened = opening(style.wire.turn, template.capabilities.generation_prompt)
    return tuple(dict.fromkeys(("", opened, *_openers(style))))


def missing(template: ChatTemplate, style: ToolStyle) -> tuple[str, ...]:
    """What the style's calls need and the template's calls lack: alternatives, any of which would do; () for nothing.

    What is needed are the marks around a call, the marks in it up to its arguments, and the key of its name.
    """
    texts = rendered_turns(template, _with_id(_PROBE, style))
    marks = _marks_of_calls(style)
    with_mark = [text for text in texts if not marks or any(mark in text for mark in marks)]
    if not with_mark:
        return marks or (ONE.name,)
    lacking = [
        next((part for part in parts if part not in text), "") for text in with_mark for parts in _parts_of_calls(style)
    ]
    return () if "" in lacking else tuple(dict.fromkeys(lacking)) or (ONE.name,)


def comes_near(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the template's calls have the marks of the style's, and yet the style does not read them."""
    near = bool(_marks_of_calls(style)) and not style.is_generic and not missing(template, _as_written(style))
    return near and not fit(template, style)


def _fit_of_what_is_asked(template: ChatTemplate, style: ToolStyle) -> int:
    """The fit of a style that the template asks for, although it writes bare calls into the history; else 0."""
    asked = asked_for(announcement(template), style) if _writes_bare_calls(template) else 0
    return MOST_READ + asked if asked else 0


def _writes_bare_calls(template: ChatTemplate) -> bool:
    """Whether the template writes calls into the history as JSON without a marker."""
    turns = rendered_turns(template, _PROBE)
    return bool(turns) and turns[0].lstrip().startswith(("{", "[")) and not MARKER.search(turns[0])


def speaks(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style is that of the template's family: it fits, or it was found from the template."""
    if fit(template, style):
        return True
    found = discover(template).style
    return found is not None and found.wire == style.wire


def writes_as_read(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the template's calls in the history are of the style that is its own.

    Where it asks for other calls than the bare ones that it writes, the history would lead the model away from them.
    """
    return speaks(template, style) and fit(template, style) <= MOST_READ


def says(program: Program, opened: str, text: str, said: Message) -> bool:
    """Whether a text is read as exactly what was said."""
    reader = Reader(program, opened=opened)
    events = [*reader.feed(text), *reader.finish()]
    # What follows the call may be a marker of the template, such as one that opens the tool's result.
    last = len(events) if not said.tool_calls else _after_last_call(events)
    after = "".join(event.text for event in events[last:] if isinstance(event, ContentDelta | Unreadable))
    return not MARKER.sub("", after).strip() and _parts(Message.from_events(events[:last])) == _parts(said)


def same_arguments(one: str, other: str) -> bool:
    """Whether two JSON texts are the same arguments, given that some templates quote all values."""
    return _as_texts(_parsed(one)) == _as_texts(_parsed(other))


def _parts(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, _as_texts(_parsed(call.arguments))) for call in message.tool_calls]
    return (*stripped((message.content or "", message.reasoning or "")), calls)


def _as_texts(arguments: Any) -> Any:
    """The arguments with each value as text: some templates quote all of them."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: str(value) for key, value in arguments.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON


def _after_last_call(events: list[Event]) -> int:
    return max((i + 1 for i, event in enumerate(events) if isinstance(event, ToolCallEnd)), default=0)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@lru_cache(maxsize=512)
def _marks_of_calls(style: ToolStyle) -> tuple[str, ...]:
    """The marks of the smallest part of the format that holds a call and has marks; none if there is no such part."""
    parts = [node for node in wire.walk(style.wire.turn, written=True) if isinstance(node, wire.Call | wire.Seq)]
    calls = [node for node in parts if isinstance(node, wire.Call)]
    around = [node for node in parts if isinstance(node, wire.Seq) and wire.holds(node, wire.Call)]
    return next((marks for node in reversed((*around, *calls)) if (marks := _marks(node))), ())


@lru_cache(maxsize=512)
def _parts_of_calls(style: ToolStyle) -> tuple[tuple[str, ...], ...]:
    """For each way to write a call: the marks up to the arguments and the key of the name, which no call lacks."""
    return tuple(tuple(_needed(node)) for node in wire.walk(style.wire.turn) if isinstance(node, wire.Call))


def _needed(node: wire.Node) -> Iterator[str]:
    match node:
        case wire.Mark(text, ()):
            yield text
        case wire.NamedMark():
            yield node.text(ONE.name)
        case wire.Arguments(encoding):
            yield encoding.opener
        case wire.Object(members):
            for key, member in members:
                if isinstance(member, wire.Name):  # arguments are read under other keys too
                    yield f'"{key}"'
        case wire.Call(item):
            yield from _needed(item)
        case wire.Seq(items):
            for item in items:
                yield from _needed(item)
                if any(isinstance(part, wire.Arguments) for part in wire.walk(item)):
                    return
        case _:
            pass


def _marks(node: wire.Node) -> tuple[str, ...]:
    named = (part.text(ONE.name) for part in wire.walk(node, written=True) if isinstance(part, wire.NamedMark))
    return (*(spelling for mark in wire.marks_in(node, written=True) for spelling in mark.spellings), *named)


@lru_cache(maxsize=512)
def _openers(style: ToolStyle) -> tuple[str, ...]:
    """What opens the reasoning: some templates leave this out of the history and write only what closes it."""
    return tuple(_openers_in(style.wire.turn))


def _openers_in(turn: wire.Node) -> Iterator[str]:
    for node in wire.walk(turn):
        if isinstance(node, wire.Seq) and any(isinstance(item, wire.Reasoning) for item in node.items):
            at = next(i for i, item in enumerate(node.items) if isinstance(item, wire.Reasoning))
            yield "".join(item.text for item in node.items[:at] if isinstance(item, wire.Lit | wire.Mark))


def announcement(template: ChatTemplate) -> str:
    """A prompt in which the template shows a tool; "" where it shows none."""
    return (rendered(template, None, prompts=True) or "") if template.capabilities.supports_tools else ""


@lru_cache(maxsize=512)
def reasons(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the template or its family shows that the model reasons.

    It does if it renders reasoning, if the prompt opens it, or if the template strips it from an assistant's content,
    be it only where another answer follows, since it then knows the tags.
    """
    if style.reasons or template.capabilities.supports_reasoning:
        return True
    if not style.wire.reasoning:
        return False
    written = write_freely(style.wire, Message(CONTENT, REASONING)) or ""
    shown = (rendered(template, TurnProbe((), written), ending=ending) for ending in _ENDINGS)
    opened = opening(style.wire.turn, template.capabilities.generation_prompt)
    return any(text is not None and written not in text for text in shown) or opens_reasoning(style, opened)


def opens_reasoning(style: ToolStyle, opened: str) -> bool:
    """Whether the part of a turn that the prompt holds begins with reasoning, which may have ended already."""
    return any(opened.startswith(opener.strip()) for opener in _openers(style) if opener.strip())


def rules_out_reasoning(template: ChatTemplate, style: ToolStyle, opened: str, end: str) -> bool:
    """Whether a prompt whose end is this closes reasoning that it never opened, as some do where thinking is off.

    Where a template has no generation prompt, the end of a prompt is that of the turn before.
    """
    if opened or not template.capabilities.generation_prompt:
        return False
    return end.rstrip().endswith(_closers(style))


@lru_cache(maxsize=512)
def _closers(style: ToolStyle) -> tuple[str, ...]:
    """What closes the reasoning, where a tag does."""
    turns = (node.items for node in wire.walk(style.wire.turn, written=True) if isinstance(node, wire.Seq))
    after = (items[items.index(wire.Reasoning()) + 1 :] for items in turns if wire.Reasoning() in items)
    return tuple(item.text for items in after for item in items if isinstance(item, wire.Mark))


@lru_cache(maxsize=512)
def tail(template: ChatTemplate) -> str:
    """The white space that a template writes between a call and the end of its turn; "" where it writes none."""
    text = next(iter(rendered_turns(template, _PROBE)), "")
    return text[len(text.rstrip()) :] if ONE.name in text else ""


def asked_for(text: str, style: ToolStyle) -> int:
    """How many marks and tags the style's calls have, if a text contains all of them and all the keys; else 0.

    The more there are, the less likely it is chance: of two styles that a text asks for, the one with more is meant.
    """
    marks, _ = _prescribed(style)
    return 0 if style.is_generic or not_asked_for(text, style) else len(marks)


def not_asked_for(text: str, style: ToolStyle) -> tuple[tuple[str, ...], ...]:
    """What the style prescribes for a call and the text lacks, each with all its spellings.

    Keys may have Python's quotes: some templates ask for {'name': <function-name>, 'arguments': <args-dict>}.
    """
    marks, keys = _prescribed(style)
    lacking = [spellings for spellings in marks if not any(each in text for each in spellings)]
    return (*lacking, *((key,) for key in keys if key not in text and f"'{key[1:-1]}'" not in text))


@lru_cache(maxsize=512)
def _prescribed(style: ToolStyle) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The marks of the smallest part that a call needs, each with all its spellings, and the keys of its JSON."""
    part: wire.Node = wire.NOTHING_WRITTEN
    for node in wire.walk(style.wire.turn, written=True):
        has_mark = bool(_marks(node))
        if has_mark and isinstance(node, wire.Call | wire.Seq) and wire.holds(node, wire.Call):
            part = node
    inside = tuple(wire.walk(part, written=True))
    marks = [mark.spellings for mark in wire.marks_in(part, written=True)]
    tags = [(tag,) for node in inside if isinstance(node, wire.Arguments) for tag in node.encoding.tags]
    keys = [json.dumps(key) for node in inside if isinstance(node, wire.Object) for key, _ in node.members]
    return tuple(dict.fromkeys((*marks, *tags))), tuple(dict.fromkeys(keys))
