"""`Text` as a regular expression: the automaton's states eliminated one by one (Brzozowski and McCluskey, 1963)."""

from __future__ import annotations

from functools import lru_cache

from toolgram.grammar.ir import EMPTY, NOTHING, CharSet, Choice, Expr, Literal, Repeat, Text, chars, choice, seq
from toolgram.grammar.until import automaton


@lru_cache(maxsize=1024)
def text_expression(text: Text) -> Expr:
    """The same language in sequences, choices, repeats and character sets.

    It has no dead ends, which llguidance's complement (`~`) leaves in its masks.
    """
    states = automaton(text.without, text.seen)
    steps: dict[int, dict[int, Expr]] = {
        number: {target: charset for charset, target in state.edges if charset.ranges}
        for number, state in enumerate(states)
    }
    tails: dict[int, Expr] = dict.fromkeys(steps, EMPTY)
    for number in _order(steps):
        _eliminate(number, steps, tails)
    return _looped(steps[0].get(0, NOTHING), tails[0])


def _order(steps: dict[int, dict[int, Expr]]) -> list[int]:
    """Every state but the first, those that the fewest others lead to first, which keeps the expression small."""
    arrivals = dict.fromkeys(steps, 0)
    for targets in steps.values():
        for target in targets:
            arrivals[target] += 1
    return sorted((number for number in steps if number), key=lambda number: (arrivals[number], -number))


def _eliminate(gone: int, steps: dict[int, dict[int, Expr]], tails: dict[int, Expr]) -> None:
    """Take one state out: who stepped to it steps on at once to where it stepped, or ends as it did."""
    onward = steps.pop(gone)
    loop = onward.pop(gone, NOTHING)
    tail = tails.pop(gone)
    for number, targets in steps.items():
        into = targets.pop(gone, None)
        if into is None:
            continue
        for target, expr in onward.items():
            targets[target] = _either(targets.get(target, NOTHING), seq(into, _looped(loop, expr)))
        tails[number] = _either(tails[number], seq(into, _looped(loop, tail)))


def _looped(loop: Expr, after: Expr) -> Expr:
    return after if loop == NOTHING else seq(Repeat(loop, 0, None), after)


def _either(one: Expr, other: Expr) -> Expr:
    """A choice whose single characters are one set; the empty option comes last."""
    parts = [part for expr in (one, other) for part in (expr.options if isinstance(expr, Choice) else (expr,))]
    sets = [part for part in parts if isinstance(part, CharSet)]
    merged = [chars(*(bounds for part in sets for bounds in part.ranges))] if sets else []
    rest = [part for part in parts if not isinstance(part, CharSet) and part != Literal("")]
    return choice(*merged, *rest, *([EMPTY] if EMPTY in parts else []))
