"""The grammar of what follows the model's thoughts once they are over: no more of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from toolgram.errors import GrammarError
from toolgram.grammar.grammar import Grammar
from toolgram.planning.turn import compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.wire import format as wire

_MOST_THOUGHTS = 64


def grammar_after_thoughts(spec: TurnSpec, text: str) -> Grammar:
    """What may follow this beginning of a turn (behind what the prompt opened), in which the thoughts were closed.

    Raises GrammarError where nothing may.
    """
    # A format may have room for any number of thoughts: the text says how many there were.
    for count in range(1, _MOST_THOUGHTS):
        turn = _at_most(spec.format.turn, count)
        try:
            return compile_turn(replace(spec, format=replace(spec.format, turn=turn))).grammar.after(text)
        except GrammarError:
            if turn == spec.format.turn:
                raise
    raise GrammarError(f"there are {_MOST_THOUGHTS} thoughts or more")


def _at_most(node: wire.Node, count: int) -> wire.Node:
    """The node with this many thoughts at most, where it has any number of them."""
    if not isinstance(node, wire.Many):
        return wire.rebuild(node, partial(_at_most, count=count))
    alone = wire.holds(node, wire.Reasoning) and not (wire.holds(node, wire.Content) or wire.holds(node, wire.Call))
    return replace(node, max=count) if alone else node
