"""Which style a template speaks: the one that reads the template's own rendering of a call back to the same call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolgram.conversation.events import ContentDelta, Event, ToolCallEnd, Unreadable
from toolgram.conversation.message import Message, ToolCall
from toolgram.styles.asked import asked_for
from toolgram.styles.base import ToolStyle
from toolgram.styles.discovery import discover
from toolgram.styles.probes import CONTENT, ONE, REASONING, TurnProbe, rendered
from toolgram.styles.turn_edges import opening, rendered_turns, stripped
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import MARKER
from toolgram.wire import format as wire
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.writer import write_freely

_PROBE = Message(tool_calls=(ToolCall(ONE.name, ONE.text),))
_MORE = (
    Message(CONTENT),
    Message(CONTENT, REASONING),
    replace(_PROBE, content=CONTENT),
    replace(_PROBE, reasoning=REASONING),
)


@lru_cache(maxsize=4096)
def fit(template: ChatTemplate, style: ToolStyle) -> int:
    """How well the style fits: how many of the template's own renderings it reads back to what was said.

    0 where a call is not one of them; of two that read the same, the one that also writes a call so fits better.
    Where the template writes no calls, what it tells the model must do: how it shows the tools, or the style itself.
    So it is where calls in the history have no mark: the style that the template asks for, if there is one, is better.
    """
    if not template.capabilities.supports_tool_calls:
        announcement = _announcement(template)
        return int(bool(style.announced_by) and style.announced_by in announcement) or asked_for(announcement, style)
    if not _shows_call(template, style):  # reading is dear, and most styles are not the template's
        return _fit_of_what_is_asked(template, style)
    program = compile_format(style.wire.turn)
    opened = opening(style.wire.turn, template.capabilities.generation_prompt)
    beginnings = tuple(dict.fromkeys(("", opened, *_thoughts(style))))

    def reads(said: Message) -> bool:
        texts = rendered_turns(template, said)
        return any(_says(program, each, text, said) for text in texts for each in beginnings)

    if not reads(_PROBE):
        return _fit_of_what_is_asked(template, style)
    written = write_freely(style.wire, replace(_PROBE, tool_calls=(replace(_PROBE.tool_calls[0], id=ONE.id),)))
    texts = rendered_turns(template, _PROBE)
    exact = 0 if written is None else (written in texts) + any(written.strip() in text for text in texts)
    return 3 * sum(map(reads, _MORE)) + 1 + exact


def _shows_call(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether what the style's calls need stands in a call as the template writes it."""
    marks, texts = _marks_of_calls(style), rendered_turns(template, _PROBE)
    return any(
        (not marks or any(mark in text for mark in marks))
        and any(all(part in text for part in parts) for parts in _parts_of_calls(style))
        for text in texts
    )


def _fit_of_what_is_asked(template: ChatTemplate, style: ToolStyle) -> int:
    """How well a style fits that the template asks for, though it writes bare calls into the history; else 0."""
    asked = asked_for(_announcement(template), style) if _writes_bare_calls(template) else 0
    return 3 * len(_MORE) + 3 + asked if asked else 0


def _writes_bare_calls(template: ChatTemplate) -> bool:
    """Whether the template writes calls into the history as JSON, without a mark."""
    turns = rendered_turns(template, _PROBE)
    return bool(turns) and turns[0].lstrip().startswith(("{", "[")) and not MARKER.search(turns[0])


def speaks(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style is that of the template's family: it fits, or it was found from the template."""
    if fit(template, style):
        return True
    found = discover(template).style
    return found is not None and found.wire == style.wire


def _says(program: Program, opened: str, text: str, said: Message) -> bool:
    """Whether a text reads to what was said, and nothing else."""
    reader = Reader(program, opened=opened)
    events = [*reader.feed(text), *reader.finish()]
    # What stands behind the call may be a mark of the template's own, as where it opens the tool's result.
    last = len(events) if not said.tool_calls else _behind_last_call(events)
    behind = "".join(event.text for event in events[last:] if isinstance(event, ContentDelta | Unreadable))
    return not MARKER.sub("", behind).strip() and _parts(Message.from_events(events[:last])) == _parts(said)


def _parts(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, _as_texts(_parsed(call.arguments))) for call in message.tool_calls]
    return (*stripped((message.content or "", message.reasoning or "")), calls)


def _as_texts(arguments: Any) -> Any:
    """The arguments with each value as text: some templates quote all of them."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: str(value) for key, value in arguments.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON


def _behind_last_call(events: list[Event]) -> int:
    return max((i + 1 for i, event in enumerate(events) if isinstance(event, ToolCallEnd)), default=0)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@lru_cache(maxsize=512)
def _marks_of_calls(style: ToolStyle) -> tuple[str, ...]:
    """The marks of the smallest part that a call needs; none where it needs none."""
    parts = [node for node in wire.walk(style.wire.turn, written=True) if isinstance(node, wire.Call | wire.Seq)]
    calls = [node for node in parts if isinstance(node, wire.Call)]
    around = [node for node in parts if isinstance(node, wire.Seq) and wire.holds(node, wire.Call)]
    return next((marks for node in reversed((*around, *calls)) if (marks := _marks(node))), ())


@lru_cache(maxsize=512)
def _parts_of_calls(style: ToolStyle) -> tuple[tuple[str, ...], ...]:
    """For each way to call: the marks up to the arguments, and the key of the name, that no such call does without."""
    return tuple(tuple(_needed(node)) for node in wire.walk(style.wire.turn) if isinstance(node, wire.Call))


def _needed(node: wire.Node) -> Iterator[str]:
    match node:
        case wire.Mark(text, ()):
            yield text
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
    return tuple(spelling for mark in wire.marks_in(node, written=True) for spelling in mark.spellings)


def _thoughts(style: ToolStyle) -> Iterator[str]:
    """What opens the reasoning: some templates leave it out of the history, and write only what closes it."""
    for node in wire.walk(style.wire.turn):
        if isinstance(node, wire.Seq) and any(isinstance(item, wire.Reasoning) for item in node.items):
            at = next(i for i, item in enumerate(node.items) if isinstance(item, wire.Reasoning))
            yield "".join(item.text for item in node.items[:at] if isinstance(item, wire.Lit | wire.Mark))


def _announcement(template: ChatTemplate) -> str:
    """A prompt in which the template shows a tool; "" where it shows none."""
    return (rendered(template, None, prompts=True) or "") if template.capabilities.supports_tools else ""


@lru_cache(maxsize=512)
def reasons(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the template or its family shows that the model reasons.

    It does where reasoning is rendered, where the prompt opens it, and where the template takes it out of what the
    assistant is made to have said: it then knows the tags.
    """
    if style.reasons or template.capabilities.supports_reasoning:
        return True
    if not style.wire.reasoning:
        return False
    thought = write_freely(style.wire, Message(CONTENT, REASONING)) or ""
    shown = rendered(template, TurnProbe((), thought), ending="next") or thought
    opened = opening(style.wire.turn, template.capabilities.generation_prompt)
    return thought not in shown or opens_reasoning(style, opened)


def opens_reasoning(style: ToolStyle, opened: str) -> bool:
    """Whether what a prompt holds of a turn begins with reasoning, which may be over already."""
    return any(opened.startswith(opener.strip()) for opener in _thoughts(style) if opener.strip())


@lru_cache(maxsize=512)
def tail(template: ChatTemplate) -> str:
    """The white space that a template writes between a call and the end of its turn; "" where it writes none."""
    text = next(iter(rendered_turns(template, _PROBE)), "")
    return text[len(text.rstrip()) :] if ONE.name in text else ""
