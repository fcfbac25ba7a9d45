"""Which style a template speaks: the one that reads the template's own rendering of a call back to the same call."""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import Any

from toolgram.errors import TemplateError
from toolgram.messages import Message
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader

_NAME, _ID = "zqprobe", "zqcall001"
_ARGUMENTS: dict[str, Any] = {"text": "zq one", "count": 3}
_NOW = datetime(2024, 1, 2)
_QUESTION = {"role": "user", "content": "zqquestion"}


@lru_cache(maxsize=1024)
def speaks(template: ChatTemplate, style: ToolStyle) -> bool:
    """Whether the style reads a call as the template itself writes it."""
    capabilities = template.capabilities
    if not capabilities.supports_tool_calls:
        return False
    text = _rendered_turn(template)
    if text is None:
        return False
    lead = style.wire.lead if template.capabilities.generation_prompt.endswith(style.wire.lead) else ""
    reader = Reader(compile_format(style.wire.turn), opened=lead)
    message = Message.from_events([*reader.feed(text), *reader.finish()])
    if message.content or len(message.tool_calls) != 1:
        return False
    call = message.tool_calls[0]
    try:
        return call.name == _NAME and json.loads(call.arguments) == _ARGUMENTS
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _rendered_turn(template: ChatTemplate) -> str | None:
    """An assistant's turn with one call, as the template writes it after its generation prompt."""
    capabilities = template.capabilities
    arguments = _ARGUMENTS if capabilities.tool_call_arguments == "object" else json.dumps(_ARGUMENTS)
    call = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": arguments}}
    content = None if capabilities.supports_null_content else ""
    turn = {"role": "assistant", "content": content, "tool_calls": [call]}
    tools = [{"type": "function", "function": {"name": _NAME, "description": "", "parameters": {"type": "object"}}}]
    variables = capabilities.tool_variables(tools if capabilities.supports_tools else None, _NOW)
    try:
        before = template.render([_QUESTION], add_generation_prompt=True, now=_NOW, **variables)
        after = template.render([_QUESTION, turn], add_generation_prompt=False, now=_NOW, **variables)
    except TemplateError:
        return None
    if not after.startswith(before):
        return None
    text = after[len(before) :]
    end = capabilities.turn_end
    cuts = [at for stop in (*capabilities.stop, end.strip()) if stop and (at := text.find(stop)) >= 0]
    return text[: min(cuts)] if cuts else text
