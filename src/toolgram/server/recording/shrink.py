"""The smallest recording that still ends as it did: what can be left out of its body and of what was written, is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from toolgram.server.recording.replay import alike, replayed
from toolgram.server.recording.values import Recording, Written

MOST = 2000  # replays

Holds = Callable[[Any], bool]


def shrunk(recording: Recording, most: int = MOST) -> tuple[Recording, int]:
    """A small recording that ends like this one, and after how many replays it was found.

    Nothing more can be left out of it, one thing at a time, unless `most` replays were too few to see that.
    """
    tried = 0
    best = replace(recording, calls=tuple(tuple(map(_joined, choice)) for choice in recording.calls))

    def holds(other: Recording) -> bool:
        nonlocal tried
        if tried == most:
            return False
        tried += 1
        return alike(replayed(other).end, recording.end)

    if not holds(best):  # it depends on how the text was cut
        best = recording
    size = -1
    while size != (size := len(best.to_json())):
        best = replace(best, calls=_least_calls(best, holds))
        best = replace(best, body=least(best.body, lambda body, now=best: holds(replace(now, body=body))))
    return replace(best, end=replayed(best).end), tried


def _joined(call: Written) -> Written:
    return replace(call, pieces=("".join(call.pieces),), tokens=(), trace=())


def _least_calls(best: Recording, holds: Callable[[Recording], bool]) -> tuple[tuple[Written, ...], ...]:
    """The calls of the engine with as little text as possible."""
    calls = [list(choice) for choice in best.calls]
    for choice in calls:
        for at, call in enumerate(choice):

            def as_before(pieces: Any, choice: list[Written] = choice, at: int = at, call: Written = call) -> bool:
                choice[at] = replace(call, pieces=tuple(pieces), tokens=(), trace=())
                return holds(replace(best, calls=tuple(map(tuple, calls))))

            found = least(list(call.pieces), as_before)
            choice[at] = replace(call, pieces=tuple(found), tokens=(), trace=()) if found != list(call.pieces) else call
    return tuple(map(tuple, calls))


def least(value: Any, holds: Holds) -> Any:
    """The value with as little as possible in it, so that it still `holds`: members, items and text are left out."""
    match value:
        case dict():
            return _least_members(cast("dict[str, Any]", value), holds)
        case list():
            kept = _least_sequence(cast("list[Any]", value), holds)
            for at, item in enumerate(kept):
                kept[at] = least(item, lambda new, at=at: holds([*kept[:at], new, *kept[at + 1 :]]))
            return kept
        case str():
            return "".join(_least_sequence(value, lambda left: holds("".join(left))))
        case _:
            return value


def _least_members(members: dict[str, Any], holds: Holds) -> dict[str, Any]:
    for key in list(members):
        without = {name: member for name, member in members.items() if name != key}
        if holds(without):
            members = without
    for key in members:
        now = members
        members = {**now, key: least(now[key], lambda new, key=key, now=now: holds({**now, key: new}))}
    return members


def _least_sequence(items: Sequence[Any], holds: Holds) -> list[Any]:
    """Runs of items are left out, from half of them down to each alone (delta debugging)."""
    left = list(items)
    length = len(left)
    while length:
        at = 0
        while at < len(left):
            without = left[:at] + left[at + length :]
            if holds(without):
                left = without
            else:
                at += length
        length = length // 2 if length <= len(left) else len(left)
    return left
