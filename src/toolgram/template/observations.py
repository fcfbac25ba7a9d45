"""Messages as GLM-4's templates take them, which know neither `tool_calls` nor the role `tool`.

A call is a turn with its tool's name as `metadata` and its arguments as content, and its result a turn of the role
`observation` (chat template of GLM-4 0414, as Xinference has it). The first of them (that of glm-4-9b-chat) take the
tools from a message of the system's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolgram.errors import TemplateError
from toolgram.template.bounds import TooMuch
from toolgram.template.probe_turns import NAME, RESULT, TOOLS, VALUE, call, result, user

Message = Mapping[str, Any]
Draw = Callable[[Sequence[Message], Sequence[Message] | None], str]


class Observing(NamedTuple):
    """Whether a template takes calls with metadata and results as observations, and tools within a message."""

    calls: bool
    tools: bool

    def spelled(
        self, messages: Sequence[Message], tools: Sequence[Message] | None
    ) -> tuple[Sequence[Message], Sequence[Message] | None]:
        """The conversation, and the tools, in the form of the template. Raises TemplateError for several calls in a
        turn, and for one beside content."""
        if self.calls:
            messages = list(map(_spelled, messages))
        if self.tools and tools:
            return [{"role": "system", "content": "", "tools": tools}, *messages], None
        return messages, tools


def observing(draw: Draw) -> Observing:
    """What of it a template wants that `draw` renders as it is: only where it shows nothing in the usual form.

    Raises TemplateError where it exceeds the limits of the sandbox.
    """
    turn = {"role": "assistant", "content": "", "tool_calls": [call(VALUE, "object")]}
    calls = [user(), turn, result()]
    within = [{"role": "system", "content": "", "tools": TOOLS}, user()]
    return Observing(
        calls=not _shows(draw, calls, NAME) and _shows(draw, map(_spelled, calls), NAME, VALUE, RESULT),
        tools=not _shows(draw, [user()], NAME, tools=TOOLS) and _shows(draw, within, NAME, without=_KEY),
    )


_KEY = ("'tools'", '"tools"')  # of a message that is printed whole


def _shows(
    draw: Draw, messages: Iterable[Message], *words: str, without: Sequence[str] = (), tools: Sequence[Message] = ()
) -> bool:
    try:
        text = draw(list(messages), tools or None)
    except TemplateError as error:
        if isinstance(error.__cause__, TooMuch):
            raise
        return False
    return all(word in text for word in words) and not any(word in text for word in without)


def _spelled(message: Message) -> Message:
    if message.get("role") == "tool":
        return {"role": "observation", "content": message.get("content")}
    calls = message.get("tool_calls")
    if not calls:
        return message
    if len(calls) > 1 or message.get("content"):
        raise TemplateError("the chat template takes one call in a turn, and nothing beside it")
    function = calls[0]["function"]
    arguments: Any = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"role": "assistant", "metadata": function["name"], "content": text}
