"""Marks that end each message and that calls begin with: behind the last message nothing need follow."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from toolgram.template.markers import TOKEN
from toolgram.wire import format as wire

_SPACE = re.compile(r"(\s+)")


@lru_cache(maxsize=512)
def ended(format_: wire.WireFormat, mark: str, following: str) -> wire.WireFormat:
    """The format, at whose end this mark may stand, and as much as the model writes of the message `following` it.

    A model that ends its answer with the mark has promised no call. Where an engine takes the mark for the model's end,
    it ends there by itself.
    """
    match format_.turn:
        case wire.Chain(_, join) as chain if join == wire.Mark(mark):
            return replace(format_, turn=wire.Chain(*chain.items, join=join, closes=True))
        case turn:
            rest: wire.Node = wire.NOTHING_WRITTEN
            for piece in reversed(_pieces(following)):
                rest = wire.Opt(wire.Seq(wire.Lit(piece), rest))
            items = turn.items if isinstance(turn, wire.Seq) else (turn,)
            return replace(format_, turn=wire.Seq(*items, wire.Opt(wire.Seq(wire.Mark(mark), rest))))


def _pieces(text: str) -> list[str]:
    """A text cut at its control tokens and at white space, where a model may stop."""
    return [piece for part in TOKEN.split(text) for piece in _SPACE.split(part) if piece]
