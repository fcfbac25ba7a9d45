"""Grammars as text that engines take.

A writer of this table is given rules as they are and writes them simplified: that keeps the language, and engines are
faster and agree better on rules that are few and whose alternatives begin differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolgram.grammar.dialects.ebnf import write_ebnf
from toolgram.grammar.dialects.gbnf import write_gbnf
from toolgram.grammar.dialects.lark import write_lark
from toolgram.grammar.ir import Rules
from toolgram.grammar.simplify import simplify

WRITERS: Mapping[str, Callable[[Rules], str]] = {
    "gbnf": lambda rules: write_gbnf(simplify(rules)),
    "lark": lambda rules: write_lark(simplify(rules)),
    "ebnf": lambda rules: write_ebnf(simplify(rules)),
}
