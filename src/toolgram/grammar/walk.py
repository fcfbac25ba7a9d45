"""Walking over rules and building them anew."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from operator import is_
from typing import TypeVar

from toolgram.grammar.hashing import HashedOnce, facts_of
from toolgram.grammar.ir import (
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    children,
    choice,
    members,
    repeat,
    seq,
)

REF, TOKEN, TEXT, CHARACTERS, EXCEPT, MEMBERS = (1 << number for number in range(6))
"""Kinds of expressions, for which other walks look (`kinds_in`)."""
_BITS_OF_KINDS = 6
_EVERY_KIND = (1 << _BITS_OF_KINDS) - 1
_OF_GRAMMARS = REF | TOKEN | EXCEPT | MEMBERS
_KINDS = {
    Literal: 0,
    CharSet: CHARACTERS,
    Sequence: 0,
    Choice: 0,
    Repeat: 0,
    Ref: REF,
    Token: TOKEN,
    Text: TEXT,
    Except: EXCEPT,
    Members: MEMBERS,
}
_WEIGHT = 200  # bytes that are remembered of an expression for each of its parts
_Of = TypeVar("_Of")
_Found = TypeVar("_Found")

Uses = Mapping[str, tuple[str, ...]]
"""For each rule the names of the rules that it uses, in order, with repeats."""


def with_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each direct child changed; itself where nothing changes, and what has no parts to change."""
    if isinstance(expr, Sequence):
        changed = [change(item) for item in expr.items]
        return expr if all(map(is_, changed, expr.items)) else seq(*changed)
    if isinstance(expr, Choice):
        changed = [change(option) for option in expr.options]
        return expr if all(map(is_, changed, expr.options)) else choice(*changed)
    if isinstance(expr, Repeat):
        inner = change(expr.item)
        return expr if inner is expr.item else repeat(inner, expr.min, expr.max)
    if isinstance(expr, Members):
        changed = [change(item) for item in expr.items]
        return expr if all(map(is_, changed, expr.items)) else members(changed, expr.occurs, expr.between)
    return expr


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression with its references renamed; itself where none of them is, and the very one of before where they
    are renamed again in the same way."""
    return expr if names.keys().isdisjoint(names_in(expr)) else _renamed_again(expr, names)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    if names.keys().isdisjoint(names_in(expr)):
        return expr
    if isinstance(expr, Ref):
        return Ref(names[expr.name])
    if isinstance(expr, Except):
        return Except(_renamed(expr.char, names), expr.raw, _renamed(expr.escaped, names), expr.texts, expr.quote)
    return with_children(expr, lambda part: _renamed(part, names))


def names_in(expr: Expr) -> tuple[str, ...]:
    """The names of the rules that the expression uses, in order, with repeats; found once for each expression."""
    if not isinstance(expr, HashedOnce):
        return (expr.name,) if isinstance(expr, Ref) else ()
    known = expr.known_inside
    if known is None:
        known = tuple([name for part in children(expr) for name in names_in(part)]) if kinds_in(expr) & REF else ()
        object.__setattr__(expr, "known_inside", known)
    return known


def found_given(find: Callable[[Expr, Mapping[str, _Of]], _Found]) -> Callable[[Expr, Mapping[str, _Of]], _Found]:
    """Decorates a function of an expression and of what is known of the rules that it uses: what it finds is kept with
    the expression for as long as that is the same."""

    def found(expr: Expr, by_rule: Mapping[str, _Of]) -> _Found:
        if not isinstance(expr, HashedOnce):
            return find(expr, by_rule)
        given = [*map(by_rule.get, names_in(expr))]
        facts = facts_of(expr)
        known: tuple[list[_Of | None], _Found] | None = facts.get(found)
        if known is None or known[0] != given:
            facts[found] = known = given, find(expr, by_rule)
        return known[1]

    return found


_renamed_again = found_given(_renamed)


def kinds_in(expr: Expr) -> int:
    """Which of REF, TOKEN, TEXT, CHARACTERS, EXCEPT and MEMBERS there are in the expression, or it is itself; found
    once for each expression."""
    if not isinstance(expr, HashedOnce):
        return _KINDS[type(expr)]
    return (expr.known_look or _look(expr)) & _EVERY_KIND


def _look(expr: Expr) -> int:
    """The size of an expression, and the kinds in it, as one number: both are found in one walk."""
    kinds, parts = _KINDS[type(expr)], 1
    for part in children(expr):
        if isinstance(part, HashedOnce):
            look = part.known_look or _look(part)
            kinds |= look & _EVERY_KIND
            parts += look >> _BITS_OF_KINDS
        else:
            kinds |= _KINDS[type(part)]
            parts += size(part)
    if isinstance(expr, Except):
        parts = 1 + sum(map(len, expr.texts))
    look = parts << _BITS_OF_KINDS | kinds
    object.__setattr__(expr, "known_look", look)
    return look


def is_plain(expr: Expr) -> bool:
    """Whether it is made of characters alone, and so the same in every grammar: no rules, tokens, nor strings but some,
    and no members in any order."""
    return not kinds_in(expr) & _OF_GRAMMARS


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


def size(expr: Expr) -> int:
    """How much there is to write: the number of parts, long literals counted by their length; found once for each
    expression."""
    if isinstance(expr, HashedOnce):
        return (expr.known_look or _look(expr)) >> _BITS_OF_KINDS
    return 1 + len(expr.text) // 4 if isinstance(expr, Literal) else 1


def weight(expr: Expr) -> int:
    """How many bytes are remembered of an expression, roughly."""
    return _WEIGHT * size(expr)
