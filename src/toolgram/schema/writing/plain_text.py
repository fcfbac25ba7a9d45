"""Answers in plain text: a regular expression, or one of some texts, as a language and as grammar rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolgram.grammar.ir import Expr, Ref
from toolgram.grammar.regular.automata import Automaton, TooLarge, intersection, of_texts
from toolgram.grammar.regular.languages import begun_otherwise, without
from toolgram.grammar.regular.regex import pattern
from toolgram.grammar.regular.regex_syntax import Malformed, Unsupported
from toolgram.grammar.regular.to_expr import expression
from toolgram.schema.writing.json_style import RuleNames

_SPACE = tuple(char for char in map(chr, range(0x3001)) if char.isspace())  # beyond, there is none


def plain_language(schema: Mapping[str, Any], excluded: Iterable[str], begun: tuple[str, ...] = ()) -> Automaton:
    """The texts of a string schema with an `enum` or a `pattern`, without those that hold an excluded text, or begin
    with one of those that are `begun`.

    Raises ValueError for a pattern that is no regular language, is not well formed, or is too large.
    """
    try:
        language = of_texts(schema["enum"]) if "enum" in schema else pattern(schema["pattern"])
        for text in excluded:
            language = intersection(language, without((text,)))
        if begun:
            language = intersection(language, begun_otherwise(begun))
    except (Malformed, Unsupported, TooLarge) as error:
        raise ValueError(str(error) or "it is too large") from error
    return language


def ends_in_space(language: Automaton) -> bool:
    """Whether some text of the language ends with white space."""
    ends = {number for number, state in enumerate(language.states) if state.accepts}
    return any(
        target in ends and any(char in charset for char in _SPACE)
        for state in language.states
        for charset, target in state.edges
    )


def plain_rules(language: Automaton, names: RuleNames) -> tuple[Expr, dict[str, Expr]]:
    """The language as an expression of characters as they are, and the rules that it refers to."""
    bodies: dict[str, Callable[[], Expr]] = {}

    def rule(hint: str, make: Callable[[], Expr]) -> Ref:
        name = names.fresh(hint)
        bodies[name] = make
        return Ref(name)

    expr = expression(language, lambda chars: chars, rule, "answer")
    return expr, {name: make() for name, make in bodies.items()}  # each may refer to those after it
