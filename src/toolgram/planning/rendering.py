"""A conversation as a template shows it: all of it, or it is told what is not there."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, cast

from toolgram.conversation.message import Message, ToolCall
from toolgram.conversation.request import Request
from toolgram.errors import TemplateError
from toolgram.planning.plainer_tools import filled, plain
from toolgram.styles.base import ToolStyle
from toolgram.template.adapt import adapt, neutralised
from toolgram.template.bounds import TooMuch
from toolgram.template.capabilities import Capabilities
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.provenance import render_parts
from toolgram.template.sandbox import Raised
from toolgram.wire import format as wire
from toolgram.wire.writer import write_freely

Parts = tuple[tuple[str, bool], ...]
Lost = list[tuple[str, ...]]  # of each turn with calls, the fields that may not be shown
_SYSTEM = ("system", "developer")
_TEXTS = ("content", "reasoning_content")
_WORD = "zqsystem"  # that stands in no conversation


@dataclass(frozen=True)
class Rendering:
    """The conversation, as messages that the style may have changed, and how the template shows it."""

    request: Request
    template: ChatTemplate
    style: ToolStyle
    lead: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None  # that the template announces
    format_prompt: str | None
    now: datetime
    native: bool

    def whole(self) -> tuple[Parts, Lost]:
        """The parts, and what of each turn with calls may not be shown.

        Where the template drops the system's text, as some do after a call, the first turn of the user's has it.
        """
        can = self.template.capabilities
        made = self.by(can)
        system = list(takewhile(lambda message: message["role"] in _SYSTEM, self.messages))
        texts = [*(text_of(message.get("content")) for message in system), self.format_prompt or ""]
        if not can.supports_system or _are_shown(texts, made[0]) or self._shows_a_system_text(len(system)):
            return made
        return self.by(replace(can, supports_system=False))

    def _shows_a_system_text(self, leading: int) -> bool:
        """Whether a word in the place of so many leading messages is shown: templates take flags out of a text."""
        asked = replace(
            self, messages=[{"role": "system", "content": _WORD}, *self.messages[leading:]], format_prompt=None
        )
        parts, _ = asked.by(self.template.capabilities)
        return _are_shown([_WORD], parts)

    def by(self, can: Capabilities) -> tuple[Parts, Lost]:
        """What comes of it for a template that can do this. Raises TemplateError."""
        lost: Lost = []
        call_text = None if self.native else partial(written, style=self.style, lead=self.lead, lost=lost)
        on_wire = self.style.wire.call_id
        # Where the id has the name in it, that may be all that the template shows of the name.
        call_ids = on_wire.fitted if on_wire is not None and on_wire.has_name else None
        adapted = adapt(
            self.messages,
            can,
            tools=bool(self.tools),
            extra_system=self.format_prompt,
            call_text=call_text,
            call_ids=call_ids,
        )
        if self.native:
            fields = ("content",) if can.reasoning_field else ("content", "reasoning_content")
            lost += [fields for message in self.messages if message.get("tool_calls")]
        add, given = self.request.add_generation_prompt, self.request.chat_template_kwargs
        render = partial(render_parts, self.template, adapted, add_generation_prompt=add, now=self.now)
        try:
            return render(**{**can.tool_variables(self.tools, self.now), **given}), lost
        except TemplateError as error:
            if self.request.continue_final_message or not self.tools or isinstance(error.__cause__, TooMuch):
                raise
            plainer = _plainer(self.tools, lambda shown: render(**{**can.tool_variables(shown, self.now), **given}))
            return plainer, lost


def _are_shown(texts: Sequence[str], parts: Parts) -> bool:
    """Whether a prompt holds these texts, be it with escapes, or line by line."""
    prompt = "".join(text for text, _ in parts)

    def shown(text: str) -> bool:
        escaped = (json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
        return any(each in prompt for each in escaped) or all(line.strip() in prompt for line in text.splitlines())

    return all(text in prompt or shown(text) for text in map(str.strip, texts))


def _plainer(tools: Sequence[Mapping[str, Any]], render: Callable[[Sequence[Mapping[str, Any]]], Parts]) -> Parts:
    """A rendering with the tools put plainer: some templates take for granted what a tool need not have.

    Raises TemplateError with the name of the first tool that the template does not take even so.
    """
    try:
        return render([filled(tool) for tool in tools])
    except TemplateError as error:
        if isinstance(error.__cause__, Raised):  # it is the conversation that the template refuses
            raise
    shown = [plain(tool) for tool in tools]
    try:
        return render(shown)
    except TemplateError as error:
        if _fails(render, []):
            raise
        at = bisect_left(range(1, len(shown)), x=True, key=lambda count: _fails(render, shown[:count]))
        told = f"{error}, for the tool {tools[at]['function']['name']!r}"
        raise TemplateError(told) from error


def _fails(render: Callable[[Sequence[Mapping[str, Any]]], Parts], tools: Sequence[Mapping[str, Any]]) -> bool:
    try:
        render(tools)
    except TemplateError:
        return True
    return False


def written(message: Mapping[str, Any], style: ToolStyle, lead: str, lost: Lost) -> str:
    """A turn of the assistant as text of the style, after `lead`, which the template writes itself.

    To `lost` are added the fields that the style has no place for.
    """
    text, fields = _as_text(message, style)
    lost.append(fields)
    return text.removeprefix(lead)


def _as_text(message: Mapping[str, Any], style: ToolStyle) -> tuple[str, tuple[str, ...]]:
    """A turn of the assistant as text of the style, and the fields that the style has no place for."""
    content, reasoning = text_of(message.get("content")), message.get("reasoning_content") or ""
    if (tags := tags_of(style.wire)) is not None:
        content = neutralised(content, tags)
    calls = tuple(_call(call) for call in message.get("tool_calls") or ())
    turn = Message(content or None, reasoning or None, calls)
    attempts = (
        (turn, ()),
        (replace(turn, reasoning=None), ("reasoning_content",)),
        # Where the format has no place for text beside calls, it may have one for reasoning.
        (replace(turn, content=None, reasoning="\n\n".join(filter(None, (reasoning, content))) or None), ()),
        (replace(turn, content=None, reasoning=None), ("content", "reasoning_content")),
    )
    written = ((write_freely(style.wire, attempt), lost) for attempt, lost in attempts)
    found = ((text, lost) for text, lost in written if text is not None)
    text, lost = next(found, (content, ("reasoning_content", "tool_calls")))
    return text, tuple(field for field in lost if message.get(field))


def not_shown(messages: Sequence[Mapping[str, Any]], lost: Lost, prompt: str) -> tuple[str, ...]:
    """Pointers to the fields of turns with calls that are `lost` in the style's text, and that no template shows."""
    if not any(lost):
        return ()
    turns = ((at, message) for at, message in enumerate(messages) if message.get("tool_calls"))
    missing: list[str] = []
    place = 0  # the turns stand there in their order, so that each is looked for behind the one before
    for (at, message), fields in zip(turns, lost, strict=True):
        found = {field: prompt.find(text_of(message.get(field)).strip(), place) for field in fields if field in _TEXTS}
        missing += (f"/messages/{at}/{field}" for field in fields if found.get(field, -1) < 0)
        place = max(place, *found.values(), 0)
    return tuple(missing)


def text_of(content: Any) -> str:
    if isinstance(content, str | None):
        return content or ""
    return "".join(part.get("text", "") for part in cast("list[Mapping[str, Any]]", content))


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments", "{}")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(function["name"], text or "{}", call.get("id"))


@lru_cache(maxsize=64)
def tags_of(format_: wire.WireFormat) -> re.Pattern[str] | None:
    """What finds the marks of a format, those too that begin inside another one."""
    marks = (f"{re.escape(mark[0])}(?={re.escape(mark[1:])})" for mark in sorted(format_.marks))
    return re.compile("|".join(marks)) if format_.marks else None
