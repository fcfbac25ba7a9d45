"""Rules without what no lexeme is made of: tokens without an id, and all strings but some inside of something else."""

from __future__ import annotations

from collections.abc import Iterable

from toolgram.caching import weighed
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import Except, Expr, Literal, Ref, Rules, Token
from toolgram.grammar.walk import EXCEPT, TOKEN, is_plain, kinds_in, weight, with_children


def plainer(rules: Rules) -> tuple[Rules, Iterable[str]]:
    """The rules so, and the texts of the tokens."""
    made: dict[str, Expr] = {}
    tokens: dict[str, None] = {}
    for name, expr in rules.items():
        written, found = _without_tokens(expr) if kinds_in(expr) & TOKEN else (expr, ())
        tokens |= dict.fromkeys(found)
        made |= _others_apart(name, written)
    return made, tokens


@found_once
def _without_tokens(expr: Expr) -> tuple[Expr, tuple[str, ...]]:
    """The expression with tokens without an id as literals, and these."""
    tokens: dict[str, None] = {}
    return _with_literals(expr, tokens), tuple(tokens)


def _with_literals(expr: Expr, tokens: dict[str, None]) -> Expr:
    if isinstance(expr, Token) and expr.id is None:
        tokens[expr.text] = None
        return Literal(expr.text)
    return with_children(expr, lambda part: _with_literals(part, tokens)) if kinds_in(expr) & TOKEN else expr


def _others_apart(rule: str, expr: Expr) -> Rules:
    """A rule, and one of their own for all strings but some in it, named for the rule that they are in."""
    return _apart(rule, expr) if kinds_in(expr) & EXCEPT else {rule: expr}


def _weight(_: str, expr: Expr) -> int:
    return weight(expr)


@weighed(_weight)  # and so the very expressions of before, of which much may be known
def _apart(rule: str, expr: Expr) -> Rules:
    made: dict[Except, str] = {}

    def named(part: Expr) -> Expr:
        if isinstance(part, Except):
            return Ref(made.setdefault(part, f"other-string {len(made) + 1} in {rule}"))
        return part if is_plain(part) else with_children(part, named)

    spelled = named(expr)
    return {rule: spelled, **{name: other for other, name in made.items()}}
