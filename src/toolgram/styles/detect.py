"""Which style a template speaks: the one that reads the template's own rendering of a call back to the same call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from toolgram.errors import TemplateError
from toolgram.events import ContentDelta, Event, ToolCallEnd, ToolCallStart, Unreadable
from toolgram.messages import Message, ToolCall
from toolgram.styles.base import ToolStyle
from toolgram.template.capabilities import MARKER
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire import format as wire
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import Reader

_NAME, _ID = "zqprobe", "zqcall001"
_PROBE = Message(tool_calls=(ToolCall(_NAME, '{"text": "zq one", "count": 3}'),))
_MORE = (
    Message(content="zqanswer"),
    Message(content="zqanswer", reasoning="zqthought"),
    replace(_PROBE, content="zqanswer"),
    replace(_PROBE, reasoning="zqthought"),
)
_NOW = datetime(2024, 1, 2)
_QUESTION = {"role": "user", "content": "zqquestion"}
_PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
}
_TOOL = {"type": "function", "function": {"name": _NAME, "description": "zqdoes", "parameters": _PARAMETERS}}
_MARK = re.compile(r"[<\[\]>]")


@lru_cache(maxsize=4096)
def fit(template: ChatTemplate, style: ToolStyle) -> int:
    """How many of the template's own renderings the style reads back to what was said; 0 where a call is not one.

    Where the template writes no calls, the way in which it shows the tools must do.
    """
    if not template.capabilities.supports_tool_calls:
        return int(bool(style.announced_by) and style.announced_by in _announcement(template))
    program = compile_format(style.wire.turn)
    beginnings = tuple(
        dict.fromkeys(("", opened_by(program, template.capabilities.generation_prompt), *_thoughts(style)))
    )

    def reads(said: Message) -> bool:
        texts = rendered_turns(template, said)
        return any(_says(program, opened, text, said) for text in texts for opened in beginnings)

    return sum(map(reads, _MORE)) + 1 if reads(_PROBE) else 0


def speaks(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style is that of the template's family."""
    return fit(template, style) > 0


@lru_cache(maxsize=512)
def opening(program: Program, prompt: str) -> str:
    """The end of a prompt that is the fixed beginning of a turn; it is the same at every request."""
    return opened_by(program, prompt)


def opened_by(program: Program, prompt: str, content: str = "", reasoning: str = "") -> str:
    """The longest end of a prompt that is the beginning of a turn which says just this so far; "" if there is none."""
    places = [match.start() for match in _MARK.finditer(prompt)]
    if content and (at := prompt.rfind(content.strip())) >= 0:
        places.append(at)
    for place in places:
        reader = Reader(program)
        events = reader.feed(prompt[place:])
        message, held = Message.from_events(events), reader.held
        said = ((message.content or "") + (held.content or ""), (message.reasoning or "") + (held.reasoning or ""))
        readable = not any(isinstance(event, Unreadable | ToolCallStart) for event in events)
        if readable and _stripped(said) == _stripped((content, reasoning)):
            return prompt[place:]
    return ""


def _stripped(texts: tuple[str, str]) -> tuple[str, ...]:
    return tuple(text.strip() for text in texts)


def _says(program: Program, opened: str, text: str, said: Message) -> bool:
    """Whether a text reads to what was said, and nothing else."""
    reader = Reader(program, opened=opened)
    events = [*reader.feed(text), *reader.finish()]
    # What stands behind the call may be a mark of the template's own, as where it opens the tool's result.
    last = len(events) if not said.tool_calls else _behind_last_call(events)
    behind = "".join(event.text for event in events[last:] if isinstance(event, ContentDelta | Unreadable))
    return not MARKER.sub("", behind).strip() and _parts(Message.from_events(events[:last])) == _parts(said)


def _parts(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, _parsed(call.arguments)) for call in message.tool_calls]
    return (*_stripped((message.content or "", message.reasoning or "")), calls)


def _behind_last_call(events: list[Event]) -> int:
    return max((i + 1 for i, event in enumerate(events) if isinstance(event, ToolCallEnd)), default=0)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _thoughts(style: ToolStyle) -> Iterator[str]:
    """What opens the reasoning: some templates leave it out of the history, and write only what closes it."""
    for node in wire.walk(style.wire.turn):
        if isinstance(node, wire.Seq) and any(isinstance(item, wire.Reasoning) for item in node.items):
            at = next(i for i, item in enumerate(node.items) if isinstance(item, wire.Reasoning))
            yield "".join(item.text for item in node.items[:at] if isinstance(item, wire.Lit | wire.Mark))


@lru_cache(maxsize=256)
def _announcement(template: ChatTemplate) -> str:
    """A prompt in which the template shows a tool; "" where it shows none."""
    capabilities = template.capabilities
    if not capabilities.supports_tools:
        return ""
    return template.render([_QUESTION], now=_NOW, **capabilities.tool_variables([_TOOL], _NOW))


@lru_cache(maxsize=1024)
def rendered_turns(template: ChatTemplate, said: Message) -> tuple[str, ...]:
    """An assistant's turn as the template writes it, from every place where it may be said to begin."""
    capabilities = template.capabilities
    turn: dict[str, Any] = {"role": "assistant", "content": said.content}
    if said.content is None and not capabilities.supports_null_content:
        turn["content"] = ""
    if said.reasoning is not None:
        turn["reasoning_content"] = said.reasoning
    if said.tool_calls:
        as_object = capabilities.tool_call_arguments == "object"
        arguments = [json.loads(call.arguments) if as_object else call.arguments for call in said.tool_calls]
        turn["tool_calls"] = [
            {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": each}} for each in arguments
        ]
    variables = capabilities.tool_variables([_TOOL] if capabilities.supports_tools else None, _NOW)
    try:
        before = template.render([_QUESTION], add_generation_prompt=False, now=_NOW, **variables)
        prompt = template.render([_QUESTION], add_generation_prompt=True, now=_NOW, **variables)
        after = template.render([_QUESTION, turn], add_generation_prompt=False, now=_NOW, **variables)
    except TemplateError:
        return ()
    first, last = _common(before, after), _common(prompt, after)
    stops = (*capabilities.stop, capabilities.turn_end.strip())
    places = dict.fromkeys((last, *(at for at in range(last, first - 1, -1) if _MARK.match(after, at)), first))
    return tuple(_before_stop(after[place:], stops) for place in places)


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    differ = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def _before_stop(text: str, stops: tuple[str, ...]) -> str:
    cuts = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(cuts)] if cuts else text
