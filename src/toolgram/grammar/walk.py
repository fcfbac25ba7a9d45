"""Walking over rules and building them anew."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from toolgram.grammar.ir import Choice, Expr, Ref, Repeat, Rules, Sequence, choice, repeat, seq


def with_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each direct child changed; itself where nothing changes."""
    match expr:
        case Sequence(items):
            changed = tuple(change(item) for item in items)
            return expr if _same(changed, items) else seq(*changed)
        case Choice(options):
            changed = tuple(change(option) for option in options)
            return expr if _same(changed, options) else choice(*changed)
        case Repeat(item, low, high):
            inner = change(item)
            return expr if inner is item else repeat(inner, low, high)
        case _:
            return expr


def _same(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))


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


def reachable(rules: Rules, start: str = "root") -> dict[str, Expr]:
    """The rules that `start` needs, each followed by those that it is the first to use."""
    found: dict[str, Expr] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rules[name]
            waiting.extend(reversed(names_in(rules[name])))
    return found


def fresh(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, … that is not taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
