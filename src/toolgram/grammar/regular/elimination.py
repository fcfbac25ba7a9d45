"""Automata as regular expressions: their states eliminated one by one (Brzozowski and McCluskey, 1963)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from toolgram.grammar.ir import EMPTY, NOTHING, CharSet, Choice, Expr, Literal, Repeat, chars, choice, seq
from toolgram.grammar.walk import size

_State = TypeVar("_State", int, str)
Steps = Mapping[_State, Mapping[_State, Expr]]
"""For each state what leads to which others."""


def eliminated(start: _State, steps: Steps[_State], tails: Mapping[_State, Expr], most: int | None) -> Expr | None:
    """What leads from the start to any end, as one expression; None if it would have more than `most` parts.

    `tails`: for each state what leads from it to an end. Every state is reachable.
    """
    left = {state: dict(targets) for state, targets in steps.items()}
    ends = dict(tails)
    for state in _order(start, left):
        written = _eliminate(state, left, ends)
        if most is not None and written > most:
            return None
    return _looped(left[start].get(start, NOTHING), ends[start])


def _order(start: _State, steps: Steps[_State]) -> list[_State]:
    """Every state but the first, those that the fewest others lead to first, which keeps the expression small."""
    arrivals = dict.fromkeys(steps, 0)
    for targets in steps.values():
        for target in targets:
            arrivals[target] += 1
    places = {state: place for place, state in enumerate(steps)}
    return sorted((state for state in steps if state != start), key=lambda state: (arrivals[state], -places[state]))


def _eliminate(gone: _State, steps: dict[_State, dict[_State, Expr]], tails: dict[_State, Expr]) -> int:
    """Take one state out: who stepped to it steps on at once to where it stepped, or ends as it did. Gives the size of
    the largest expression that was written."""
    onward = steps.pop(gone)
    loop = onward.pop(gone, NOTHING)
    tail = tails.pop(gone)
    largest = 0
    for state, targets in steps.items():
        into = targets.pop(gone, None)
        if into is None:
            continue
        for target, expr in onward.items():
            targets[target] = _either(targets.get(target, NOTHING), seq(into, _looped(loop, expr)))
            largest = max(largest, size(targets[target]))
        tails[state] = _either(tails[state], seq(into, _looped(loop, tail)))
        largest = max(largest, size(tails[state]))
    return largest


def _looped(loop: Expr, after: Expr) -> Expr:
    return after if loop == NOTHING else seq(Repeat(loop, 0, None), after)


def _either(one: Expr, other: Expr) -> Expr:
    """A choice whose single characters are one set; the empty option comes last."""
    parts = [part for expr in (one, other) for part in (expr.options if isinstance(expr, Choice) else (expr,))]
    sets = [part for part in parts if isinstance(part, CharSet)]
    merged = [chars(*(bounds for part in sets for bounds in part.ranges))] if sets else []
    rest = [part for part in parts if not isinstance(part, CharSet) and part != Literal("")]
    return choice(*merged, *rest, *([EMPTY] if EMPTY in parts else []))
