"""Tools that a message of the system brings in the course of a conversation, as in Kimi's API::

    {"role": "system", "tools": [{"type": "function", "function": {"name": "f", "parameters": {…}}}]}

A template that declares them where they stand (Kimi K3's) is given the message, so that the prompt before it stays what
it was. For all others they are announced with the rest, before the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from toolgram.caching import counted
from toolgram.conversation.body import OF_SYSTEM
from toolgram.conversation.fields import Json
from toolgram.conversation.request import Request, Tool, placed
from toolgram.errors import InvalidRequest, TemplateError
from toolgram.template.chat_template import ChatTemplate

_NAME = "zqbrought"  # no template writes it by itself
_PROBE: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "Hi."},
    {"role": "system", "tools": [{"type": "function", "function": {"name": _NAME, "parameters": {"type": "object"}}}]},
    {"role": "user", "content": "Go on."},
)
_SAID = ("content", "refusal", "function_call", "tool_calls")


def with_tools_in_place(request: Request, template: ChatTemplate) -> Request:
    """The request with the tools that messages bring where the template shows them.

    Raises InvalidRequest where there is nothing else in the conversation.
    """
    bringing = {at for at, message in enumerate(request.messages) if _brings(message)}
    if not bringing:
        return request
    begin = next((at for at, message in enumerate(request.messages) if message["role"] not in OF_SYSTEM), 0)
    late = {at for at in bringing if at > begin}  # those before it are joined with the first of the system's messages
    if late and not _declares(template):
        late = set[int]()
    messages = [
        (at, part)
        for at, message in enumerate(request.messages)
        for part in (_parts(message, in_place=at in late) if at in bringing else (message,))
    ]
    if not messages:
        raise InvalidRequest("/messages", "must hold more than tools")
    declared = {f"/messages/{at}" for at in late}
    return replace(
        request,
        messages=tuple(message for _, message in messages),
        tools=tuple(replace(tool, announced=_owner(tool) not in declared) for tool in request.tools),
        places=_moved(request.places, {old: at for at, (old, _) in enumerate(messages)}),
    )


def _moved(places: Mapping[str, str], moves: Mapping[int, int]) -> Mapping[str, str]:
    """The places where messages have other numbers now: those before, by the old ones."""
    moved = {f"/messages/{at}": placed(places, f"/messages/{old}") for old, at in moves.items() if old != at}
    for pointer, place in places.items():
        _, _, number, *rest = pointer.split("/", 3)
        if int(number) in moves:
            moved["/".join(("", "messages", str(moves[int(number)]), *rest))] = place
    return moved


def _owner(tool: Tool) -> str:
    """Where the message stands that brings a tool."""
    return "/".join(tool.pointer.split("/", 3)[:3])


def _brings(message: Json) -> bool:
    return message["role"] in OF_SYSTEM and isinstance(message.get("tools"), list)


def _parts(message: Json, *, in_place: bool) -> Iterator[Json]:
    """The message as one that brings tools, where they are shown there, and one that says the rest, if there is any."""
    if in_place:
        yield {"role": "system", "tools": message["tools"]}
    if any(message.get(field) for field in _SAID):
        yield {key: value for key, value in message.items() if key != "tools"}


@counted(64)
def _declares(template: ChatTemplate) -> bool:
    """Whether the template shows tools that a message brings, where that stands."""
    try:
        return _NAME in template.render(_PROBE)
    except TemplateError:
        return False
