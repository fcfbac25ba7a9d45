"""The items of arrays as expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from toolgram.grammar.excepts import NESTING
from toolgram.grammar.ir import EMPTY, Expr, choice, optional, repeat, seq
from toolgram.schema import types


def array_items(
    kind: types.Array, prefix: Sequence[Expr], rest: Expr, comma: str, rule: Callable[[int, Expr], Expr]
) -> Expr:
    """An array of the items in `prefix`, then others; `rule` makes a rule of those from a number on."""
    least = max(kind.min - len(prefix), 0)
    most = None if kind.max is None else kind.max - len(prefix)
    if not prefix:
        if most == 0:
            return seq("[]")
        more = None if most is None else most - 1
        full = seq("[", rest, repeat(seq(comma, rest), max(least - 1, 0), more), "]")
        return full if least else choice(full, "[]")
    tail = EMPTY if most == 0 else repeat(seq(comma, rest), least, most)
    for index in reversed(range(len(prefix))):
        tail = seq("" if index == 0 else comma, prefix[index], tail)
        if index >= kind.min:
            tail = optional(tail)
        if index and index % NESTING == 0:
            tail = rule(index + 1, tail)
    return seq("[", tail, "]")


def next_items(ways: Iterable[tuple[Expr, Expr]], before: str, *, may_end: bool) -> Expr:
    """What may follow in an array: an item and what comes after it, or the end."""
    return choice(*(seq(before, item, rest) for item, rest in ways), *([EMPTY] if may_end else []))
