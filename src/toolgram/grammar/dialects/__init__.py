"""Grammars as text that engines take.

A writer of this table is given rules as `simplify` leaves them: that is done once for all dialects, keeps the language,
and engines are faster and agree better on rules that are few and whose alternatives begin differently. The writers rely
on what `tidy`, a part of it, sees to: all references are defined, no part matches nothing, and no repeat is of what may
be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolgram.grammar.dialects.ebnf import write_ebnf
from toolgram.grammar.dialects.gbnf import write_gbnf
from toolgram.grammar.dialects.lark import write_lark
from toolgram.grammar.ir import Rules

WRITERS: Mapping[str, Callable[[Rules], str]] = {"gbnf": write_gbnf, "lark": write_lark, "ebnf": write_ebnf}

FACTORED = frozenset({"gbnf", "ebnf"})
"""The dialects whose writers take rules with common beginnings written once."""
