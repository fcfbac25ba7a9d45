"""GBNF, the grammar language of llama.cpp (its `grammars/README.md` and `src/llama-grammar.cpp`)."""

from __future__ import annotations

from toolgram.grammar.dialects import bnf
from toolgram.grammar.dialects.gbnf_reader import MOST_REPEATS, read_gbnf
from toolgram.grammar.ir import Rules

__all__ = ["read_gbnf", "write_gbnf"]

_SYNTAX = bnf.Syntax(
    any_char=".",
    escape="\\x%02X",
    token=lambda number: f"<[{number}]>",
)


def write_gbnf(rules: Rules) -> str:
    """The rules, as `simplify` leaves them, as GBNF, one rule a line."""
    return bnf.write(bnf.lowered(rules, MOST_REPEATS), _SYNTAX)
