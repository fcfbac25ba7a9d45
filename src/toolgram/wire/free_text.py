"""Free text as an expression: all text but what would end it."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from itertools import product

from toolgram.grammar.ir import (
    START,
    Choice,
    Expr,
    Ref,
    Repeat,
    Sequence,
    Text,
    Token,
    choice,
    less,
    not_chars,
    optional,
    repeat,
    seq,
)
from toolgram.grammar.until import automaton, text_after
from toolgram.grammar.walk import fresh
from toolgram.template.markers import CONTROL, TOKEN
from toolgram.wire import format as wire
from toolgram.wire.program import Program


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


def unclosed_text(markers: tuple[str, ...], ahead: wire.CallAhead, first: tuple[str, ...] = ()) -> Expr:
    """Text without these markers, that begins with none of `first`, and without the beginning of a call: its opener and
    anything else is text."""
    without = (*markers, ahead.opener)
    if any(mark.startswith(ahead.opener[at:]) for mark in without for at in range(1, len(ahead.opener))):
        return free_text((*markers, *ahead.texts), first, "", "")
    quoting = Text((*without, *(START + begun for begun in ahead.told or ahead.rests)), START)
    return seq(free_text(without, first, "", ""), repeat(seq(opener(ahead), quoting)))


def first_marks(format_: wire.WireFormat, program: Program) -> Iterable[str]:
    """The marks that content must not begin with: what stands before a name in one and behind it in another as well, so
    that each name is said once."""
    nodes = [node for node in wire.walk(format_.turn) if isinstance(node, wire.NamedMark) and not node.anywhere]
    pairs = product(dict.fromkeys(node.before for node in nodes), dict.fromkeys(node.after for node in nodes))
    tools = dict.fromkeys(name for node in nodes for name in node.tools)
    every = (wire.NamedMark(before, after).text(name) for before, after in pairs for name in tools)
    return dict.fromkeys((*program.first_marks, *every))


def thought(format_: wire.WireFormat, program: Program, stops: tuple[str, ...]) -> Expr:
    """What reasoning may be."""
    marks, last = (*program.markers("reasoning"), *stops), program.last_characters("reasoning")
    ahead = next((node for node in wire.walk(format_.turn) if isinstance(node, wire.CallAhead)), None)
    if ahead is None or last:
        return free_text(marks, (), "", last)
    return unclosed_text(tuple(mark for mark in marks if mark not in ahead.texts), ahead)


def closed_or_called(
    closed: Expr, begun: Expr, ahead: wire.CallAhead, called: Expr, rules: MutableMapping[str, Expr]
) -> Expr:
    """Turns whose text is `closed`, and those in which a call ends it: `begun`, the opener, and `called`.

    They are one rule from the first opener of a call on, so that what follows an opener tells the two: read side by
    side, one would be all of the text up to the name of each tool.
    """
    opened = opener(ahead)
    match begun:
        case Sequence((*before, Repeat(Sequence(quoted), 0, None))) if seq(*quoted[:-1]) == opened:
            ends, others = _behind(closed, begun.items)
            rest = Ref(fresh("text-rest", rules))
            rules[rest.name] = choice(*ends, seq(opened, choice(called, seq(quoted[-1], rest))))
            return choice(seq(*before, rest), *others)
        case _:
            return choice(closed, seq(begun, opened, called))


def _behind(expr: Expr, begin: tuple[Expr, ...]) -> tuple[list[Expr], list[Expr]]:
    """What follows these in the ways through an expression that begin so, and the other ways."""
    match expr:
        case Sequence(items) if items[: len(begin)] == begin:
            return [seq(*items[len(begin) :])], []
        case Sequence((first, *after)):
            behind, others = _behind(first, begin)
            if not behind:
                return [], [expr]
            return [seq(way, *after) for way in behind], [seq(way, *after) for way in others]
        case Choice(options):
            found = [_behind(option, begin) for option in options]
            return [way for behind, _ in found for way in behind], [way for _, others in found for way in others]
        case _:
            return [], [expr]


def opener(ahead: wire.CallAhead) -> Expr:
    """The opener of a call. Only control tokens are tokens in it, as these are never text, which quotes all else."""
    return seq(*(Token(piece) if CONTROL.fullmatch(piece) else piece for piece in TOKEN.split(ahead.opener)))
