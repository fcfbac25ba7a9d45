"""The EBNF of XGrammar, as its versions from 0.2.1 to 0.2.8 read it."""

from __future__ import annotations

from toolgram.grammar.dialects import bnf
from toolgram.grammar.dialects.ebnf_ranges import ranges
from toolgram.grammar.dialects.ebnf_shapes import shaped
from toolgram.grammar.dialects.ebnf_tokens import beside_texts
from toolgram.grammar.ir import Rules

_SYNTAX = bnf.Syntax(
    escape="\\u%04X",  # XGrammar reads as many hexadecimal digits after \\x as there are
    token=lambda number: f"Token({number})",
    text=lambda markers: f"TagDispatch(excludes=({', '.join(markers)},))",
    ranges=ranges,
)


def write_ebnf(rules: Rules) -> str:
    """The rules, as `simplify` leaves them, as EBNF, one rule a line."""
    shapes, lookaheads = shaped(beside_texts(rules))
    return bnf.write(shapes, _SYNTAX, lookaheads)
