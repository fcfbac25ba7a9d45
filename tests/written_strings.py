"""A grammar of an automaton alone, each character written as it is."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import assume

from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import CharSet, Expr, Literal, Ref
from toolgram.grammar.regular.automata import Automaton, TooLarge
from toolgram.grammar.regular.regex import pattern
from toolgram.grammar.regular.to_expr import expression


def compiled(text: str) -> Automaton:
    """The automaton of a pattern; among random patterns are some that explode, and these prove nothing."""
    try:
        return pattern(text)
    except TooLarge:
        assume(condition=False)
        raise


def written(automaton: Automaton, low: int = 0, high: int | None = None) -> Grammar:
    """The grammar of the texts of `low` to `high` characters."""
    waiting: list[tuple[str, Callable[[], Expr]]] = []

    def rule(hint: str, make: Callable[[], Expr]) -> Ref:
        waiting.append((f"{hint}-{len(waiting) + 1}", make))
        return Ref(waiting[-1][0])

    def char(allowed: CharSet) -> Expr:
        first, last = allowed.ranges[0][0], allowed.ranges[-1][1]
        return Literal(chr(first)) if first == last else allowed

    rules = {"root": expression(automaton, char, rule, "text", low, high)}
    for name, make in waiting:
        rules[name] = make()
    return Grammar(rules)
