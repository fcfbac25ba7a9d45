"""What a lexeme takes of what follows it."""

from __future__ import annotations

from toolgram.grammar.dialects.lark.tree import Fork, Lexeme, Loop, Node, Row, expression, weight
from toolgram.grammar.ir import EMPTY, Expr, Literal, Repeat, Sequence, Text, seq
from toolgram.grammar.walk import size

MOST_MERGES = 4  # of one lexeme with what follows it
_LARGEST_TAKEN = 40  # parts of what may be empty, which a lexeme takes whole
_LARGEST_AFTER_LITERAL = 8


def runs_on(expr: Expr) -> bool:
    """Whether an expression ends in any number of characters."""
    last = expr.items[-1] if isinstance(expr, Sequence) else expr
    return isinstance(last, Text | Repeat)


def merged(lexeme: Lexeme, taken: Expr) -> Lexeme:
    """The lexeme with what it took."""
    return Lexeme(seq(lexeme.expr, taken), lexeme.name, merged=lexeme.merged + 1)


def until_marker(lexeme: Lexeme, following: Lexeme) -> tuple[Expr, tuple[Lexeme, ...]]:
    """What a text, or one with a literal after it, takes of another literal: up to the end of the first marker that
    it must not contain; and what is left."""
    *_, last, begun = (EMPTY, *lexeme.expr.items) if isinstance(lexeme.expr, Sequence) else (EMPTY, lexeme.expr)
    if not isinstance(begun, Literal):
        last, begun = begun, EMPTY
    if not (isinstance(last, Text) and isinstance(following.expr, Literal)):
        return following.expr, ()
    text = begun.text + following.expr.text
    ends = [text.index(marker) + len(marker) for marker in last.without if marker in text]
    end = min(ends, default=0)
    if not len(begun.text) < end < len(text):
        return following.expr, ()
    return Literal(text[len(begun.text) : end]), (Lexeme(Literal(text[end:])),)


def is_before_marker(lexeme: Lexeme) -> bool:
    """Whether a text has taken a literal that it may contain, so that this does not end it."""
    match lexeme.expr:
        case Sequence((*_, Text(without), Literal(text))):
            return lexeme.merged < MOST_MERGES and not any(marker in text for marker in without)
        case _:
            return False


def optional_spelling(node: Node, lexeme: Lexeme) -> Expr | None:
    """The node as an expression if it is regular, small and may be empty, so that a lexeme can take it whole; a literal
    need not take more of it than its beginning."""
    largest = _LARGEST_AFTER_LITERAL if isinstance(lexeme.expr, Literal) else _LARGEST_TAKEN
    if weight(node) > largest:
        return None
    spelled = expression(node)
    return spelled if spelled is not None and size(spelled) <= largest and may_be_empty(node) else None


def may_be_empty(node: Node) -> bool:
    """Whether nothing is in the node but what may be left out."""
    match node:
        case Row(items):
            return all(map(may_be_empty, items))
        case Fork(options):
            return any(map(may_be_empty, options))
        case Loop(item, least):
            return not least or may_be_empty(item)
        case _:
            return False
