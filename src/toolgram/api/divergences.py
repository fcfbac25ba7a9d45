"""Values that the grammar made other than the model was about to write them, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgram.chat import Reply

_DIGITS = 4


def divergences_json(reply: Reply) -> list[dict[str, Any]]:
    """The divergences of a reply."""
    return [
        {
            "call": one.call,
            "pointer": one.pointer,
            "preferred": one.preferred,
            "removed": round(one.removed, _DIGITS),
        }
        for one in reply.divergences
    ]


def divergences_of_choices(replies: Sequence[Reply]) -> list[dict[str, Any]]:
    """Those of several replies, each with the number of its choice."""
    return [{"choice": at, **one} for at, reply in enumerate(replies) for one in divergences_json(reply)]
