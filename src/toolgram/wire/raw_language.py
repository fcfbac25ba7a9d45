"""Strings of a schema as they stand between tags: characters as they are, without the mark that ends them."""

from __future__ import annotations

from collections.abc import Callable

from toolgram.grammar.ir import Expr, Ref, Text
from toolgram.grammar.regular.automata import TooLarge, intersection
from toolgram.grammar.regular.languages import without
from toolgram.grammar.regular.to_expr import expression
from toolgram.schema import types
from toolgram.schema.writing.json_style import RuleNames


def raw_string(kind: types.String, mark: str, names: RuleNames, rules: dict[str, Expr], hint: str) -> Expr | None:
    """The strings without this mark, as an expression over `rules`; None where they are too many for a grammar."""
    if kind == types.String():
        return Text((mark,))

    def rule(hint: str, make: Callable[[], Expr]) -> Ref:
        name = names.fresh(hint)
        bodies[name] = make
        return Ref(name)

    bodies: dict[str, Callable[[], Expr]] = {}
    try:
        language = without(mark)
        if kind.automaton is not None:
            language = intersection(kind.automaton, language)
        expr = expression(language, lambda chars: chars, rule, hint, kind.min, kind.max)
    except TooLarge:
        return None
    rules.update({name: make() for name, make in bodies.items()})
    return expr
