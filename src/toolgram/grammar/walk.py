"""Walking over rules and building them anew."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from operator import is_

from toolgram.grammar.ir import Choice, Expr, Ref, Repeat, Rules, Sequence, choice, repeat, seq

Uses = Mapping[str, list[str]]
"""For each rule the names of the rules that it uses, in order, with repeats."""


def with_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each direct child changed; itself where nothing changes."""
    if isinstance(expr, Sequence):
        changed = [change(item) for item in expr.items]
        return expr if all(map(is_, changed, expr.items)) else seq(*changed)
    if isinstance(expr, Choice):
        changed = [change(option) for option in expr.options]
        return expr if all(map(is_, changed, expr.options)) else choice(*changed)
    if isinstance(expr, Repeat):
        inner = change(expr.item)
        return expr if inner is expr.item else repeat(inner, expr.min, expr.max)
    return expr


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression with its references renamed."""
    if isinstance(expr, Ref):
        return Ref(names.get(expr.name, expr.name))
    return with_children(expr, lambda part: renamed(part, names))


def names_in(expr: Expr) -> list[str]:
    """The names of the rules that the expression uses, in order, with repeats."""
    found: list[str] = []
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Ref):
            found.append(part.name)
        elif isinstance(part, Repeat):
            waiting.append(part.item)
        elif isinstance(part, Sequence):
            waiting.extend(part.items[::-1])
        elif isinstance(part, Choice):
            waiting.extend(part.options[::-1])
    return found


def uses(rules: Rules) -> Uses:
    """The names that each rule uses."""
    return {name: names_in(expr) for name, expr in rules.items()}


def reachable(rules: Rules, start: str = "root", used: Uses | None = None) -> dict[str, Expr]:
    """The rules that `start` needs, each followed by those that it is the first to use; `used` if that is known."""
    found: dict[str, Expr] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rules[name]
            waiting.extend(reversed(used[name] if used else names_in(rules[name])))
    return found


def fresh(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, … that is not taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
