"""The EBNF of XGrammar, as its version 0.2.8 reads it."""

from __future__ import annotations

from toolgram.grammar.dialects import bnf
from toolgram.grammar.dialects.ebnf_shapes import shaped
from toolgram.grammar.ir import Rules

_SYNTAX = bnf.Syntax(
    any_char="[\\u0000-\\uD7FF\\uE000-\\U0010FFFF]",
    escape="\\u%04X",  # XGrammar reads as many hexadecimal digits after \\x as there are
    token=lambda number: f"Token({number})",
    text=lambda markers: f"TagDispatch(excludes=({', '.join(markers)},))",
    # A negated class admits the bytes of a surrogate, which are no UTF-8, and must not name what is not ASCII: before
    # 0.2.8 XGrammar takes one that does for a class without ASCII, and a vLLM of today may have such a version.
    never=((0xD800, 0xDFFF),),
)


def write_ebnf(rules: Rules) -> str:
    """The rules, as `simplify` leaves them, as EBNF, one rule a line."""
    shapes, lookaheads = shaped(rules)
    return bnf.write(shapes, _SYNTAX, lookaheads)
