"""Members in their order, as many as an object may have: for notations that put nothing between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolgram.grammar.ir import EMPTY, NOTHING, Expr, choice, optional, seq


def in_order(members: Sequence[tuple[Expr, bool]], low: int, high: int | None, rule: Callable[[Expr], Expr]) -> Expr:
    """Each member that is required, and any of the others: from `low` to `high` in all.

    Where that takes counting, `rule` is asked for a rule for each place and number.
    """
    if low <= sum(required for _, required in members) and (high is None or high >= len(members)):
        return seq(*(member if required else optional(member) for member, required in members))
    most = low if high is None else min(high, len(members))  # without a limit, those beyond `low` need no counting
    after = [EMPTY if count >= low else NOTHING for count in range(most + 1)]
    for member, required in reversed(members):
        with_it = [*after[1:], after[most] if high is None else NOTHING]
        without = [NOTHING] * len(after) if required else after
        after = [_shared(choice(seq(member, more), less), rule) for more, less in zip(with_it, without, strict=True)]
    return after[0]


def _shared(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    return expr if expr in (NOTHING, EMPTY) else rule(expr)
