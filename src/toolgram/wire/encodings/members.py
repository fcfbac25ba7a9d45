"""Members, as many as an object may have: for notations that put nothing between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolgram.grammar.ir import EMPTY, MUST, NOTHING, Expr, choice, members, must_be_there, optional, seq


def all_of(items: Sequence[tuple[Expr, str]], low: int, high: int | None, rule: Callable[[Expr], Expr]) -> Expr:
    """Each member that is required, and any of the others: from `low` to `high` in all.

    With each of `items` is how it occurs, as `grammar.ir.Members` has it. It comes in its place or later. Where that
    takes counting, they come in order, and `rule` is asked for a rule for each place and number.
    """
    occurs = "".join([times for _, times in items])
    if low <= max(1, sum(map(MUST.__contains__, occurs))) and (high is None or high >= len(items)):
        written = members([member for member, _ in items], occurs, "")
        return written if low or must_be_there(occurs) else optional(written)
    most = low if high is None else min(high, len(items))  # without a limit, those beyond `low` need no counting
    after = [EMPTY if count >= low else NOTHING for count in range(most + 1)]
    for member, times in reversed(items):
        with_it = [*after[1:], after[most] if high is None else NOTHING]
        without = [NOTHING] * len(after) if times in MUST else after
        after = [_shared(choice(seq(member, more), less), rule) for more, less in zip(with_it, without, strict=True)]
    return after[0]


def _shared(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    return expr if expr in (NOTHING, EMPTY) else rule(expr)
