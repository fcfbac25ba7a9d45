"""Languages of characters that a string holds as they are: formats, most patterns. Written once for all documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Ref
from toolgram.grammar.regular import to_expr
from toolgram.grammar.regular.alphabet import ANY_CHAR
from toolgram.grammar.regular.automata import Automaton
from toolgram.schema.writing.json_style import Spelling, one_char, quoted
from toolgram.schema.writing.object_members import single
from toolgram.work import remembered


class _NeedsRules(Exception):
    """It is made of characters that have rules, or is a rule itself."""


@remembered(maxsize=64)
def plain_string(automaton: Automaton, spelling: Spelling, low: int, high: int | None) -> Expr | None:
    """The texts of a language as a string holds them; None where they take rules. Raises TooLarge."""
    try:
        return to_expr.expression(automaton, partial(_plain_char, spelling), _rule, "", low, high)
    except _NeedsRules:
        return None


def _plain_char(spelling: Spelling, charset: CharSet) -> Expr:
    made = one_of(charset, spelling)
    if made is None or isinstance(made, Choice):
        raise _NeedsRules
    return made


def one_of(charset: CharSet, spelling: Spelling) -> Expr | None:
    """One of these characters, as a string holds it; None for any character that one may hold."""
    if (only := single(charset)) is not None:
        return Literal(quoted(only, spelling)[1:-1] if spelling.encoding.escapes else only)
    return None if charset == ANY_CHAR and spelling.encoding.escapes else one_char(charset, spelling)


def _rule(_hint: str, _make: Callable[[], Expr]) -> Ref:
    raise _NeedsRules
