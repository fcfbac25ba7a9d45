"""The grammar of what follows the model's thoughts once they are over: no more of them."""

from __future__ import annotations

from dataclasses import replace

from toolgram.errors import GrammarError
from toolgram.grammar.grammar import Grammar
from toolgram.planning.turn import TurnSpec, compile_turn
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
    match node:
        case wire.Many(item) if wire.holds(item, wire.Reasoning):
            alone = not (wire.holds(item, wire.Content) or wire.holds(item, wire.Call))
            return replace(node, max=count) if alone else node
        case wire.Seq(items):
            return wire.Seq(*(_at_most(item, count) for item in items))
        case wire.Chain(items):
            return wire.Chain(*(_at_most(item, count) for item in items), join=node.join)
        case _:
            return node
