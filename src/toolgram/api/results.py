"""What tools answered: whether it answers calls of the conversation, and the pictures that clients send behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from toolgram.conversation.body import OF_TOOLS
from toolgram.conversation.fields import Json, type_of
from toolgram.conversation.request import Request, placed
from toolgram.errors import InvalidRequest

_IMAGES = ("image_url", "image")
_MOST_CAPTION = 100  # characters


def check_results(request: Request) -> None:
    """A result must answer a call of the assistant's turn before it. Raises InvalidRequest with its place."""
    open_calls: list[str | None] = []
    answers = answers_of_tools(request.messages)
    for i, message in enumerate(request.messages):
        if message["role"] == "user" and i in answers:
            continue  # the pictures of a result, which stand before the next one
        if message["role"] != "tool":
            open_calls = [call.get("id") for call in message.get("tool_calls") or ()]
            continue
        at = placed(request.places, f"/messages/{i}")
        if not open_calls:
            raise InvalidRequest(at, "a message with role 'tool' must answer a preceding message with 'tool_calls'")
        id_ = message.get("tool_call_id")
        if id_ is not None and id_ not in open_calls and any(call is not None for call in open_calls):
            known = ", ".join(map(repr, open_calls))
            at = placed(request.places, f"/messages/{i}/tool_call_id")
            raise InvalidRequest(at, f"no call of the turn before has the id {id_!r}: there are {known}")


def answers_of_tools(messages: Sequence[Json]) -> frozenset[int]:
    """Which messages hold what tools answered: results, and the pictures behind them.

    A result of chat completions is text, so that clients send its images right behind it as if the user did: alone
    (Goose, Cline), or under a line that says of which tool they are (pi, opencode, Copilot Chat).
    """
    found: list[int] = []
    behind = False
    for at, message in enumerate(messages):
        behind = message["role"] in OF_TOOLS or (behind and message["role"] == "user" and _brings_images(message))
        if behind:
            found.append(at)
    return frozenset(found)


def _brings_images(message: Json) -> bool:
    parts = cast("list[Any]", content) if isinstance(content := message.get("content"), list) else []
    texts = [part for part in parts if type_of(part) not in _IMAGES]
    return len(texts) < len(parts) and (not texts or (len(texts) == 1 and _is_caption(texts[0])))


def _is_caption(part: Any) -> bool:
    text = cast("Json", part).get("text") if isinstance(part, dict) else None
    return isinstance(text, str) and len(text) <= _MOST_CAPTION and "tool" in text.lower()
