"""The grammar of what follows the model's reasoning once it is over: no more of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from toolgram.errors import GrammarError
from toolgram.grammar.grammar import Grammar
from toolgram.planning.turn import compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.wire import format as wire

_MOST_REASONING = 64


def grammar_after_reasoning(spec: TurnSpec, text: str) -> Grammar:
    """What may follow this beginning of a turn (after what the prompt opened), in which the reasoning was closed.

    Raises GrammarError where nothing may.
    """
    # A format may have room for reasoning any number of times: the text says how often there was some.
    for count in range(1, _MOST_REASONING):
        turn = _at_most(spec.format.turn, count)
        try:
            return compile_turn(replace(spec, format=replace(spec.format, turn=turn))).grammar.after(text)
        except GrammarError:
            if turn == spec.format.turn:
                raise
    raise GrammarError(f"there is reasoning {_MOST_REASONING} times or more")


def _at_most(node: wire.Node, count: int) -> wire.Node:
    """The node with reasoning this many times at most, where it has it any number of times."""
    if not isinstance(node, wire.Many):
        return wire.rebuild(node, partial(_at_most, count=count))
    return replace(node, max=count) if wire.only_reasons(node) else node
