"""Whether the results of a conversation answer calls of it, which the APIs insist on."""

from __future__ import annotations

from toolgram.conversation.request import Request, placed
from toolgram.errors import InvalidRequest


def check_results(request: Request) -> None:
    """A result must answer a call of the assistant's turn before it. Raises InvalidRequest with its place."""
    open_calls: list[str | None] = []
    for i, message in enumerate(request.messages):
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
