"""The prompt for a request in a style: the conversation as the template takes it, with the tools announced."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from toolgram.conversation.message import Message
from toolgram.conversation.request import Request, Tool
from toolgram.errors import InvalidRequest, InvalidSchema, TemplateError
from toolgram.planning.rendering import Parts, Rendering, not_shown, tags_of, text_of, written
from toolgram.planning.unseen import hides, unseen
from toolgram.schema.reading.normalize import normalize
from toolgram.styles.base import Announcement, ToolStyle, answer_prompt, plain_prompt
from toolgram.styles.detect import speaks, writes_as_read
from toolgram.styles.generic.tagged import list_tools
from toolgram.styles.turn_edges import opened_by, opening
from toolgram.template.adapt import neutralised
from toolgram.template.chat_template import ChatTemplate
from toolgram.template.markers import likely_pattern
from toolgram.wire import format as wire
from toolgram.wire.allowed import without_calls
from toolgram.wire.writer import write_freely
from toolgram.work import MAX_WORK, limited

_LONGEST_OPENING = 200
_RESULTS = ("tool", "function")
_SHOWN = ("content", "name", "tool_call_id")  # of what is not the assistant's, where a result is written as text
_HALF = re.compile("[\ud800-\udfff]")
_CUT = "\ue0fe\ue0ff"  # where a message to be continued ends; private use, taken out again


@dataclass(frozen=True)
class Prompt:
    """What the engine is given; `opened` is what it holds already of the turn that the model writes.

    `left_out` are pointers to what of the conversation the prompt has no place for.
    """

    parts: Parts
    format_prompt: str | None
    opened: str
    control: re.Pattern[str]  # what is likely a control token of the model
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "".join(text for text, _ in self.parts)

    @property
    def end(self) -> str:
        """The template's own text after the conversation."""
        return _trusted_end(self.parts)


def build_prompt(request: Request, template: ChatTemplate, style: ToolStyle, now: datetime) -> Prompt:
    """The prompt of a request.

    Raises InvalidRequest for what the template cannot express, TemplateError, and InvalidSchema where that is why.
    """
    try:
        prompt = _best_prompt(request, template, style, now)
    except TemplateError:
        for tool in request.tools:
            with limited(MAX_WORK):
                normalize(tool.parameters or {}, pointer=tool.schema_pointer, mode="relaxed")
        raise
    said = [text for message in request.messages if (text := text_of(message.get("content")).strip())]
    if said and all(trusted for _, trusted in prompt.parts) and not any(text in prompt.text for text in said):
        raise TemplateError(
            "the chat template shows nothing of the conversation: it may want it by another name than `messages`"
        )
    return replace(prompt, parts=tuple((_whole(text), own) for text, own in prompt.parts))


def _whole(text: str) -> str:
    """The text without halves of characters, which arguments can spell (JSON in a text), and which no engine takes."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def _best_prompt(request: Request, template: ChatTemplate, style: ToolStyle, now: datetime) -> Prompt:
    """As the template writes it, or, where it does not take the conversation, with calls and results as text."""
    can = template.capabilities
    shown = can.supports_tool_calls_without_tools or request.tools or not _has_calls(request)
    if not (can.supports_tool_calls and shown and writes_as_read(template, style)):
        return _prompt(request, template, style, now, native=False)
    try:
        return _prompt(request, template, style, now, native=True)
    except TemplateError:
        if not any(message.get("tool_calls") or message["role"] in _RESULTS for message in request.messages):
            raise
        # Some templates refuse orders of calls and results that a conversation may well have: as text they go through.
        return _prompt(request, template, style, now, native=False)


def _has_calls(request: Request) -> bool:
    return any(message.get("tool_calls") for message in request.messages)


def _continued(request: Request, template: ChatTemplate, style: ToolStyle, now: datetime, *, native: bool) -> Prompt:
    """The prompt of a turn to be continued that the template cannot show: written by the style, after the rest."""
    at = len(request.messages) - 1
    content, reasoning = _said(request, template, style)
    turn = Message(content + _CUT, reasoning or None) if content else Message(None, reasoning + _CUT)
    written = write_freely(_answering(request, style), turn)
    if not at or written is None or _CUT not in written:
        raise InvalidRequest(f"/messages/{at}", "neither the template nor the style can show an unfinished turn")
    messages = request.messages[:-1]
    before = replace(request, messages=messages, continue_final_message=False, add_generation_prompt=True)
    base = _prompt(before, template, style, now, native=native)
    opened = written[: written.index(_CUT)]
    tags = opened.removesuffix(content or reasoning)
    header = _without_end(base.parts, len(base.opened))
    parts = (*header, (tags, not (content and reasoning)), (content or reasoning, False))
    return Prompt(parts, base.format_prompt, opened, base.control, base.left_out)


def _said(request: Request, template: ChatTemplate, style: ToolStyle) -> tuple[str, str]:
    """Content and reasoning of the message to be continued; a format without a place for reasoning shows none.

    Where the template does not show that the model reasons, the caller must be one who tells reasoning from content.
    """
    last = request.messages[-1]
    apart = request.reasoning_format == "auto"
    shown = template.capabilities.supports_reasoning or apart or _lead(template, style)
    reasons = shown and style.wire.reasoning
    return text_of(last.get("content")), (last.get("reasoning_content") or "") if reasons else ""


def _answering(request: Request, style: ToolStyle) -> wire.WireFormat:
    """The format of a turn to be continued: where nothing can be called, what looks like a call is an answer."""
    format_ = style.format(with_tools=bool(request.tools))
    return format_ if request.callable_tools else without_calls(format_)


def _lead(template: ChatTemplate, style: ToolStyle) -> str:
    """What the generation prompt holds of a turn."""
    return opening(style.wire.turn, template.capabilities.generation_prompt)


def _prompt(
    request: Request, template: ChatTemplate, style: ToolStyle, now: datetime, *, native: bool, hidden: bool = False
) -> Prompt:
    """As the template writes it; `hidden`: it shows nothing of the tools in this conversation."""
    capabilities = template.capabilities
    shown = capabilities.supports_tools and (speaks(template, style) or not style.is_generic)
    announces = bool(request.tools) and (hidden or not shown)
    format_prompt = _format_prompt(request, style, now, announces=announces)
    lead = _lead(template, style)
    messages = list(request.messages)
    if announces:
        messages = [_neutral(message, tags_of(style.wire)) for message in messages]
    if announces and style.framed:
        messages = [_framed(message, style, lead) for message in messages]
    if request.continue_final_message:
        messages[-1] = _open_end(messages[-1], len(messages) - 1)
    tools = None if announces or not request.tools else [tool.source for tool in request.announced_tools]
    rendered = Rendering(request, template, style, lead, messages, tools, format_prompt, now, native)
    try:
        parts, lost = rendered.whole()
    except TemplateError:
        if request.continue_final_message:
            return _continued(request, template, style, now, native=native)
        raise
    prompt = "".join(text for text, _ in parts)
    if tools and hides(tools, request.messages, prompt):
        native = native and capabilities.supports_tool_calls_without_tools
        return _prompt(request, template, style, now, native=native, hidden=True)
    left_out = tuple(dict.fromkeys((*not_shown(request.messages, lost, prompt), *unseen(request.messages, prompt))))
    format_, control = style.format(with_tools=bool(request.tools)), likely_pattern(template)
    if not request.continue_final_message:
        end = _trusted_end(parts)
        opens = request.add_generation_prompt or end.endswith(capabilities.generation_prompt)
        return Prompt(parts, format_prompt, opening(format_.turn, end) if opens else "", control, left_out)
    parts = _cut(parts)
    content, reasoning = _said(request, template, style)
    tail = _end_of(parts, _LONGEST_OPENING + 2 * len(content) + 2 * len(reasoning))
    opened = opened_by(_answering(request, style).turn, tail, content, reasoning)
    if not opened:
        return _continued(request, template, style, now, native=native)
    return Prompt(parts, format_prompt, opened, control, left_out)


def _format_prompt(request: Request, style: ToolStyle, now: datetime, *, announces: bool) -> str | None:
    answer = request.response_format
    if announces:
        about = Announcement(
            tools=tuple(tool.source for tool in request.announced_tools),
            parallel=request.parallel_tool_calls is not False,
            now=now,
            answer=answer.schema if answer else None,
            has_answer=answer is not None and not answer.plain,
        )
        # A model that was trained to call tools knows its format, and needs but the list.
        with _in_place(request.announced_tools):
            announced = (style.announce or list_tools)(about)
        return f"{announced}\n\n{plain_prompt(answer.schema)}" if answer and answer.plain else announced
    if answer is None:
        return None
    return plain_prompt(answer.schema) if answer.plain else answer_prompt(answer.schema)


@contextmanager
def _in_place(tools: Sequence[Tool]) -> Generator[None]:
    """What is no schema, by its place in a list of tools, is told by its place in the body."""
    try:
        yield
    except InvalidSchema as error:
        _, _, at, *_ = error.pointer.split("/")
        inside = error.pointer.removeprefix(f"/tools/{at}/function/parameters")
        pointer = tools[int(at)].schema_pointer + inside
        raise InvalidSchema(pointer, error.keyword, error.reason.removeprefix(f"{error.keyword}: ")) from error


def _framed(message: Mapping[str, Any], style: ToolStyle, lead: str) -> Mapping[str, Any]:
    """An answer of the assistant as a style writes it that frames every turn; calls are written later."""
    if message["role"] != "assistant" or message.get("tool_calls"):
        return message
    kept = {key: value for key, value in message.items() if key != "reasoning_content"}
    return {**kept, "content": written(message, style, lead, [])}


# Forgery


def _neutral(message: Mapping[str, Any], tags: re.Pattern[str] | None) -> Mapping[str, Any]:
    """A message whose text cannot be taken for the style's own; the assistant's turns are written by the style."""
    if message["role"] == "assistant" or tags is None:
        return message
    shown = ((key, value) for key in _SHOWN if (value := message.get(key)) is not None)
    return {**message, **{key: neutralised(value, tags) for key, value in shown}}


# The turn that the prompt opens


def _open_end(message: Mapping[str, Any], at: int) -> Mapping[str, Any]:
    """The message to be continued, with its end marked: that of its content, or of its reasoning if that is all."""
    content, reasoning = text_of(message.get("content")), message.get("reasoning_content")
    if content:
        return {**message, "content": content + _CUT}
    if isinstance(reasoning, str) and reasoning:
        return {**message, "reasoning_content": reasoning + _CUT}
    raise InvalidRequest(f"/messages/{at}/content", "to be continued, the last message needs text or reasoning")


def _cut(parts: Parts) -> Parts:
    """The parts up to where the message to be continued ends, which is the last; none where the template does not show
    it."""
    for at, (text, trusted) in reversed([*enumerate(parts)]):
        before, found, _ = text.rpartition(_CUT)
        if found:
            return tuple(part for part in (*parts[:at], (before, trusted)) if part[0])
    return ()


def _trusted_end(parts: Parts) -> str:
    """The template's own text after the conversation: what a user writes never opens the model's turn."""
    end = ""
    for text, trusted in reversed(parts):
        if not trusted:
            break
        end = text + end
    return end[-_LONGEST_OPENING:]


def _without_end(parts: Parts, length: int) -> Parts:
    """The parts except so many characters at their end, each as trusted as it was."""
    kept = list(parts)
    while length and kept:
        text, trusted = kept.pop()
        if len(text) > length:
            kept.append((text[: len(text) - length], trusted))
        length = max(0, length - len(text))
    return tuple(kept)


def _end_of(parts: Parts, length: int) -> str:
    return "".join(text for text, _ in parts)[-length:]
