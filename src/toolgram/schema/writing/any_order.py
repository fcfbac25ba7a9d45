"""The members of objects as expressions in every order of the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from toolgram.grammar.ir import EMPTY, NOTHING, Expr, choice, optional, seq
from toolgram.schema import types

MAX_REQUIRED = 6  # keys: 64 rules
_MAX_KEYS = 10  # and 1024 with the optional ones
_MAX_STATES = 2048


class _Written(NamedTuple):
    """Which declared members are written, how many others (as far as it matters), and whether the one that must be."""

    declared: frozenset[int] = frozenset()
    others: int = 0
    some: bool = False


def too_many(kind: types.Object) -> str | None:
    """Why this object's keys are not written in every order; None where they are."""
    keys = [item for item in kind.properties if item.value != types.NEVER]
    required = sum(item.required for item in keys)
    if required > MAX_REQUIRED or len(keys) > _MAX_KEYS or 2 ** len(keys) * (_counted(kind) + 1) > _MAX_STATES:
        return f"{len(keys)} keys ({required} of them required) have too many orders"
    return None


def _counted(kind: types.Object) -> int:
    """Up to which number the members are counted."""
    return kind.min if kind.max is None else kind.max


def any_order(
    kind: types.Object,
    members: Sequence[tuple[types.Property, Expr]],
    extra: Expr,
    some: Expr,
    comma: str,
    rule: Callable[[str, Callable[[], Expr]], Expr],
) -> Expr:
    """The members in every order, and others among them: a rule for each set of keys that is already written.

    After the one that must be of some kind no others come, which could have its key.
    """
    needed = {index for index, (item, _) in enumerate(members) if item.required}
    states: dict[_Written, Expr] = {}

    def follow(written: _Written, before: str) -> Expr:
        count = len(written.declared) + written.others
        if kind.max is not None and count >= kind.max:
            options: list[Expr] = []
        else:
            options = [
                seq(before, member, state(written._replace(declared=written.declared | {index})))
                for index, (_, member) in enumerate(members)
                if index not in written.declared
            ]
            more = written._replace(others=min(written.others + 1, _counted(kind)))
            if extra != NOTHING and not written.some:
                options.append(seq(before, extra, state(more)))
            if kind.some and not written.some:
                options.append(seq(before, some, state(more._replace(some=True))))
        enough = needed <= written.declared and count >= kind.min and (written.some or not kind.some)
        return optional(choice(*options)) if enough else choice(*options)

    def state(written: _Written) -> Expr:
        if len(written.declared) == len(members) and extra == NOTHING:
            return EMPTY
        if written not in states:
            hint = "-".join([*(str(index + 1) for index in sorted(written.declared)), *["other"] * written.others])
            states[written] = rule(hint, lambda: follow(written, comma))
        return states[written]

    return follow(_Written(), "")
