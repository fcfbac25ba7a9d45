"""What is written of nothing but the characters of numbers."""

from __future__ import annotations

from collections.abc import Container

from toolgram.grammar.dialects.lark.raw import DIGITS, is_of_digits
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import CharSet, Except, Expr, Literal, Members, Ref, Rules, children
from toolgram.grammar.walk import is_plain


def numeric(rules: Rules) -> set[str]:
    """The regular rules that have no other characters than those of numbers."""
    found: set[str] = set()
    for name in rules:
        if is_number(rules[name], found):
            found.add(name)
    return found


def is_number(expr: Expr, numeric: Container[str]) -> bool:
    """Whether an expression has no other characters than those of numbers; `numeric` are the rules that have none."""
    if isinstance(expr, Literal):
        return DIGITS.issuperset(expr.text)
    if isinstance(expr, Ref):
        return expr.name in numeric
    if isinstance(expr, CharSet):
        return is_of_digits(expr)
    return _are_numbers(expr) if is_plain(expr) else _parts_are_numbers(expr, numeric)


@found_once
def _are_numbers(expr: Expr) -> bool:
    return _parts_are_numbers(expr, ())


def _parts_are_numbers(expr: Expr, numeric: Container[str]) -> bool:
    parts = () if isinstance(expr, Except | Members) else children(expr)
    for part in parts:
        if not is_number(part, numeric):
            return False
    return bool(parts)
