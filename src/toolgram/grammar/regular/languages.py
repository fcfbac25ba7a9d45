"""Automata of a few simple languages."""

from __future__ import annotations

from toolgram.grammar.ir import chars
from toolgram.grammar.regular.automata import Automaton, complement
from toolgram.grammar.regular.regex import language
from toolgram.grammar.regular.regex_syntax import START, Alt, Cat, Tree
from toolgram.work import remembered


@remembered(maxsize=16)
def without(texts: tuple[str, ...]) -> Automaton:
    """The texts that contain none of these. Raises TooLarge."""
    return complement(language(Alt(tuple(map(_literally, texts)))))


@remembered(maxsize=16)
def begun_otherwise(texts: tuple[str, ...]) -> Automaton:
    """The texts that begin with none of these. Raises TooLarge."""
    return complement(language(Cat((START, Alt(tuple(map(_literally, texts)))))))


def _literally(text: str) -> Tree:
    return Cat(tuple(map(chars, text)))
