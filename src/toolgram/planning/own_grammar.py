"""A grammar that a request brings for its answer."""

from __future__ import annotations

from collections.abc import Collection

from toolgram.conversation.answers import GivenGrammar
from toolgram.errors import GrammarError, InvalidRequest
from toolgram.grammar.dialects.gbnf_reader import read_gbnf
from toolgram.grammar.ir import Expr, Literal, Ref, Rules, children
from toolgram.grammar.walk import renamed
from toolgram.schema.writing.json_style import RuleNames

_LONGEST = 1 << 16  # characters
_MOST_RULES = 1000


def rules_of(given: GivenGrammar, names: RuleNames, root: str) -> tuple[Ref, dict[str, Expr]]:
    """A grammar as a part of one that has these names: its root, which is to be named so, and all its rules.

    Raises InvalidRequest for what is not GBNF, or too much of it.
    """
    gbnf, at = given.gbnf, given.pointer
    if len(gbnf) > _LONGEST:
        raise InvalidRequest(at, f"has {len(gbnf)} characters: a grammar may have at most {_LONGEST}")
    try:
        rules = read_gbnf(gbnf)
    except GrammarError as error:
        raise InvalidRequest(at, f"is not GBNF: {error}") from error
    except RecursionError as error:
        raise InvalidRequest(at, "its groups and repetitions are nested too deeply") from error
    if len(rules) > _MOST_RULES:
        raise InvalidRequest(at, f"has {len(rules)} rules: a grammar may have at most {_MOST_RULES}")
    others = {"root": names.fresh(root)}
    others |= {name: names.fresh(name) for name in rules if name != "root"}
    return Ref(others["root"]), {others[name]: renamed(expr, others) for name, expr in rules.items()}


def mark_in(rules: Rules, marks: Collection[str]) -> str | None:
    """One of the marks that a literal of these rules spells."""
    waiting: list[Expr] = list(rules.values())
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Literal):
            if (found := next((mark for mark in marks if mark in expr.text), None)) is not None:
                return found
        else:
            waiting += children(expr)
    return None
