"""What a reply says beside its message, as JSON: what the grammar changed, what was cut off or ended, how likely."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from toolgram.chat import Reply
from toolgram.engines.base import Logprob, TokenLogprobs, TracePoint

Json = dict[str, Any]

_DIGITS = 4


def notes_of(reply: Reply) -> Json:
    """The notes of a choice, by the names of its fields; none that are empty."""
    notes = {
        "dropped_tool_calls": reply.dropped_calls,
        "divergences": divergences_json(reply),
        "ended_repetitions": [{"call": one.call, "pointer": one.pointer} for one in reply.ended_repetitions],
        "broken_bounds": [
            {"call": one.call, "pointer": one.pointer, "keyword": one.keyword} for one in reply.broken_bounds
        ],
    }
    odds = {"call_log_odds": reply.call_log_odds, "another_call_log_odds": reply.another_call_log_odds}
    # Infinite ones say that only one side was allowed.
    known = {name: value for name, value in odds.items() if value is not None and isfinite(value)}
    return ({} if reply.valid else {"valid": False}) | {name: value for name, value in notes.items() if value} | known


def divergences_json(reply: Reply) -> list[Json]:
    """The divergences of a reply."""
    return [
        {
            "call": one.call,
            "pointer": one.pointer,
            "preferred": one.preferred,
            "removed": round(one.removed, _DIGITS),
            "offset": one.offset,
        }
        for one in reply.divergences
    ]


def logprobs_json(tokens: Sequence[TokenLogprobs]) -> list[Json]:
    """How likely tokens were, and the likeliest beside each."""
    return [{**_logprob(one.chosen), "top_logprobs": [_logprob(top) for top in one.top]} for one in tokens]


def _logprob(token: Logprob) -> Json:
    text = token.piece.decode(errors="replace")
    return {"token": text, "logprob": token.logprob, "bytes": list(token.piece)}


def trace_json(points: Sequence[TracePoint]) -> list[Json]:
    """Where the model alone would have written another token: the number of that token, and what it preferred."""
    return [
        {
            "position": point.position,
            "preferred": point.piece.decode(errors="replace"),
            "removed": round(point.removed, _DIGITS),
        }
        for point in points
        if point.preferred != point.token
    ]


def divergences_of_choices(replies: Sequence[Reply]) -> list[Json]:
    """Those of several replies, each with the number of its choice."""
    return [{"choice": at, **one} for at, reply in enumerate(replies) for one in divergences_json(reply)]
