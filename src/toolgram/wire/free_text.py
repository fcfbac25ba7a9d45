"""Free text as an expression: all text but what would end it."""

from __future__ import annotations

from toolgram.grammar.ir import START, Expr, Text, Token, choice, less, not_chars, optional, repeat, seq
from toolgram.grammar.until import automaton, text_after
from toolgram.template.markers import CONTROL, TOKEN
from toolgram.wire import format as wire


def free_text(markers: tuple[str, ...], first: tuple[str, ...], not_first: str, not_last: str) -> Expr:
    """Text without these markers, that begins with none of `first` or `not_first`, and ends with none of `not_last`."""
    text = Text((*markers, *(START + mark for mark in first)), START) if first else Text(markers)
    if not_last:
        return optional(seq(text, not_chars(not_last)))
    if not_first:
        edges = automaton(text.without, text.seen)[0].edges
        starts = ((less(charset, not_first), text_after(text, target)) for charset, target in edges)
        return choice(*(seq(charset, rest) for charset, rest in starts if charset.ranges), seq())
    return text


def unclosed_text(markers: tuple[str, ...], ahead: wire.CallAhead) -> Expr:
    """Text without these markers, and without the beginning of a call: its opener and anything else is text."""
    without = (*markers, ahead.opener)
    if any(mark.startswith(ahead.opener[at:]) for mark in without for at in range(1, len(ahead.opener))):
        return Text((*markers, *ahead.texts))
    quoting = Text((*without, *(START + rest for rest in ahead.rests)), START)
    return seq(Text(without), repeat(seq(opener(ahead), quoting)))


def opener(ahead: wire.CallAhead) -> Expr:
    """The opener of a call. Only control tokens are tokens in it, as these are never text, which quotes all else."""
    return seq(*(Token(piece) if CONTROL.fullmatch(piece) else piece for piece in TOKEN.split(ahead.opener)))
