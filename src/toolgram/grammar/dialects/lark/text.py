"""`Text` as a regular expression."""

from __future__ import annotations

from functools import lru_cache

from toolgram.grammar.ir import EMPTY, NOTHING, Expr, Text
from toolgram.grammar.regular.elimination import eliminated
from toolgram.grammar.until import automaton


@lru_cache(maxsize=1024)
def text_expression(text: Text) -> Expr:
    """The same language in sequences, choices, repeats and character sets.

    It has no dead ends, which llguidance's complement (`~`) leaves in its masks.
    """
    states = automaton(text.without, text.seen)
    steps = {
        number: {target: charset for charset, target in state.edges if charset.ranges}
        for number, state in enumerate(states)
    }
    return eliminated(0, steps, dict.fromkeys(steps, EMPTY), None) or NOTHING
