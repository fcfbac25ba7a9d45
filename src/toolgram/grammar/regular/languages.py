"""Automata of a few simple languages."""

from __future__ import annotations

from toolgram.grammar.ir import chars
from toolgram.grammar.regular.automata import Automaton, complement
from toolgram.grammar.regular.regex import language
from toolgram.grammar.regular.regex_syntax import Cat, Tree
from toolgram.work import remembered


@remembered(maxsize=16)
def without(text: str) -> Automaton:
    """The texts that do not contain this one. Raises TooLarge."""
    return complement(language(_literally(text)))


def _literally(text: str) -> Tree:
    return Cat(tuple(map(chars, text)))
