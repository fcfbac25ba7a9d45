"""Strings in their quotes as lexemes; one that is a key has the colon after it."""

from __future__ import annotations

import re

from toolgram.grammar.dialects.lark.tree import Lexeme
from toolgram.grammar.ir import Expr, seq

COLON = re.compile(": *")


def string(expr: Expr) -> Lexeme:
    """A string that is no key."""
    return Lexeme(expr, tail="")


def string_before(expr: Expr, text: str) -> tuple[Lexeme, str]:
    """A string that this text follows, with the colon that it begins with, if it does; and what is left of it."""
    colon = COLON.match(text)
    if colon is None:
        return string(expr), text
    return Lexeme(seq(expr, colon[0]), tail=colon[0]), text[colon.end() :]
