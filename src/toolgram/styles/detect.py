"""Which style a template speaks: the one that reads the template's own rendering of a call back to the same call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

from toolgram.errors import TemplateError
from toolgram.events import ContentDelta, ToolCallEnd, Unreadable
from toolgram.messages import Message
from toolgram.styles.base import ToolStyle
from toolgram.template.capabilities import MARKER
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire import format as wire
from toolgram.wire.program import Program, compile_format
from toolgram.wire.reader import Reader

_NAME, _ID = "zqprobe", "zqcall001"
_ARGUMENTS: dict[str, Any] = {"text": "zq one", "count": 3}
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
def speaks(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style reads a call as the template itself writes it."""
    if not template.capabilities.supports_tool_calls:
        return False
    program = compile_format(style.wire.turn)
    beginnings = dict.fromkeys(("", opened_by(program, template.capabilities.generation_prompt), *_thoughts(style)))
    return any(_is_probe(program, opened, text) for text in _rendered_turns(template) for opened in beginnings)


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
        readable = not any(isinstance(event, Unreadable) for event in events)
        if readable and _stripped(said) == _stripped((content, reasoning)):
            return prompt[place:]
    return ""


def _stripped(texts: tuple[str, str]) -> tuple[str, ...]:
    return tuple(text.strip() for text in texts)


def _is_probe(program: Program, opened: str, text: str) -> bool:
    reader = Reader(program, opened=opened)
    events = [*reader.feed(text), *reader.finish()]
    # What stands behind the call may be a mark of the template's own, as where it opens the tool's result.
    ended = max((i for i, event in enumerate(events) if isinstance(event, ToolCallEnd)), default=-1)
    behind = "".join(event.text for event in events[ended + 1 :] if isinstance(event, ContentDelta | Unreadable))
    before = Message.from_events(events[: ended + 1])
    if before.content or before.reasoning or len(before.tool_calls) != 1 or MARKER.sub("", behind).strip():
        return False
    call = before.tool_calls[0]
    try:
        return call.name == _NAME and json.loads(call.arguments) == _ARGUMENTS
    except ValueError:
        return False


def _thoughts(style: ToolStyle) -> Iterator[str]:
    """What opens the reasoning: some templates leave it out of the history, and write only what closes it."""
    for node in wire.walk(style.wire.turn):
        if isinstance(node, wire.Seq) and any(isinstance(item, wire.Reasoning) for item in node.items):
            at = next(i for i, item in enumerate(node.items) if isinstance(item, wire.Reasoning))
            yield "".join(item.text for item in node.items[:at] if isinstance(item, wire.Lit | wire.Mark))


@lru_cache(maxsize=256)
def _rendered_turns(template: ChatTemplate) -> tuple[str, ...]:
    """An assistant's turn with one call, as the template writes it, from every place where it may be said to begin."""
    capabilities = template.capabilities
    arguments = _ARGUMENTS if capabilities.tool_call_arguments == "object" else json.dumps(_ARGUMENTS)
    call = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": arguments}}
    content = None if capabilities.supports_null_content else ""
    turn = {"role": "assistant", "content": content, "tool_calls": [call]}
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
