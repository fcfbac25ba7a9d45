"""Automata of a few simple languages."""

from __future__ import annotations

from toolgram.grammar.ir import chars
from toolgram.schema.automata import Automaton, complement
from toolgram.schema.effort import remembered
from toolgram.schema.regex import language
from toolgram.schema.regex_parse import Cat, Tree


@remembered(maxsize=16)
def without(text: str) -> Automaton:
    """The texts that do not contain this one. Raises TooLarge."""
    return complement(language(_literally(text)))


def _literally(text: str) -> Tree:
    return Cat(tuple(map(chars, text)))
