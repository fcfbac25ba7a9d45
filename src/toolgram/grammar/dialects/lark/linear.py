"""Which rules are regular: those that do not recur, and those that recur at their ends alone; and which of them spell a
value, so that they are put in where they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from toolgram.grammar import ir
from toolgram.grammar.dialects.lark.raw import DIGITS
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Text,
    children,
    choice,
    seq,
)
from toolgram.grammar.regular.elimination import eliminated
from toolgram.grammar.walk import MEMBERS, TOKEN, Uses, found_given, is_plain, kinds_in, names_in, size

LARGEST_LEXEME = 120
_LONGEST_WORD = 2  # a longer literal is part of the format rather than of a value's spelling
_STRUCTURE = frozenset('"{}[],:')  # what is not in a value's spelling, however short
_MOST_RULES = 40  # that recur together: what is made of them is nested about as deeply
_LARGEST = 2_000  # parts of an expression for a rule that recurs; what is larger is not taken for regular
_MOST_WRITTEN = 20_000  # parts of all of them

_END = ""
_Steps = dict[str, Expr]
"""What a rule reads before it goes on as another, or ends."""


def regular(
    rules: Rules, used: Uses, components: Iterable[Sequence[str]], suits: Callable[[Sequence[str]], bool]
) -> tuple[dict[str, Expr], bool]:
    """The rules that are regular, none of them recursive any more, each after those that it uses; and whether that is
    the same for each of them in other grammars.

    `components`: those that lead to one another, each after those that it leads to. Rules that recur are only made
    regular where they suit, and not where they would become too large, by themselves or all together.
    """
    found: dict[str, Expr] = {}
    written = 0
    users: dict[str, set[str]] = {name: set() for name in rules}
    for name, parts in used.items():
        for part in parts:
            users[part].add(name)
    for component in components:
        inside = set(component)
        others = {part for name in component for part in used[name]} - inside
        if any(has_more(rules[name]) for name in component) or not others <= found.keys():
            continue
        name = component[0]
        if name not in used[name] and len(component) == 1:
            found[name] = rules[name]
        elif len(component) <= _MOST_RULES and suits(component):
            steps = {name: _steps(rules[name], inside) for name in component}
            for entry in (name for name in component if users[name] - inside):
                expr = _expression(entry, steps, min(_LARGEST, _MOST_WRITTEN - written))
                if expr is not None:
                    found[entry] = expr
                    written += size(expr)
    return found, written <= _MOST_WRITTEN - _LARGEST


def has_more(expr: Expr) -> bool:
    """Whether there is what is in no lexeme in the expression itself: a special token, or members in any order."""
    return bool(kinds_in(expr) & (TOKEN | MEMBERS))


def _steps(expr: Expr, inside: set[str]) -> _Steps | None:
    """The expression by which of these rules it ends with; None if one of them is anywhere else in it."""
    if inside.isdisjoint(names_in(expr)):
        return {_END: expr}
    match expr:
        case Ref(name):
            return {name: EMPTY}
        case ir.Sequence((*first, last)):
            steps = _steps(last, inside)
            if steps is None or not all(inside.isdisjoint(names_in(item)) for item in first):
                return None
            return {to: seq(*first, rest) for to, rest in steps.items()}
        case Choice(options):
            merged: _Steps = {}
            for option in options:
                steps = _steps(option, inside)
                if steps is None:
                    return None
                for to, way in steps.items():
                    merged[to] = choice(merged[to], way) if to in merged else way
            return merged
        case _:
            return None


def _expression(start: str, steps: dict[str, _Steps | None], most: int) -> Expr | None:
    ways: dict[str, _Steps] = {}
    tails: dict[str, Expr] = {}
    for name, out in steps.items():
        if out is None:
            return None
        ways[name] = {to: way for to, way in out.items() if to != _END}
        tails[name] = out.get(_END, NOTHING)
    return eliminated(start, ways, tails, most)


def small_rules(rules: Rules) -> dict[str, Expr | None]:
    """The regular rules with their rules put in, or None if one has long words or structure in it, or is large."""
    found: dict[str, Expr | None] = {}
    for name, expr in rules.items():
        spelled = without_references(expr, found)
        found[name] = spelled if spelled is not None and size(spelled) <= LARGEST_LEXEME else None
    return found


def _without_references(expr: Expr, small: Mapping[str, Expr | None]) -> Expr | None:
    """The expression with the small rules put in, or None if it uses others, or has long words or structure in it."""
    if is_plain(expr):
        return expr if _has_short_words(expr) else None
    match expr:
        case Ref(name):
            return small.get(name)
        case ir.Sequence(items):
            parts = _all_without_references(items, small)
            return None if parts is None else seq(*parts)
        case Choice(options):
            parts = _all_without_references(options, small)
            return None if parts is None else choice(*parts)
        case Repeat(item, least, most):
            inner = _without_references(item, small)
            return None if inner is None else Repeat(inner, least, most)
        case _:
            return None


without_references = found_given(_without_references)


@found_once
def _has_short_words(expr: Expr) -> bool:
    if isinstance(expr, Literal):
        return is_short(expr.text)
    parts = children(expr)
    return len(parts) <= LARGEST_LEXEME and all(map(_has_short_words, parts))


def _all_without_references(exprs: Iterable[Expr], small: Mapping[str, Expr | None]) -> list[Expr] | None:
    parts: list[Expr] = []
    for expr in exprs:
        part = _without_references(expr, small)
        if part is None:
            return None
        parts.append(part)
    return parts if len(parts) <= LARGEST_LEXEME else None


def is_short(text: str) -> bool:
    return (len(text) <= _LONGEST_WORD and _STRUCTURE.isdisjoint(text)) or DIGITS.issuperset(text)


def has_set(expr: Expr) -> bool:
    return isinstance(expr, CharSet | Repeat | Text) or any(map(has_set, children(expr)))
