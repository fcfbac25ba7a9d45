"""Calls after words: models often say what they are about to do, and then call as if they had said nothing.

Such a call stands on a line of its own, and perhaps an empty one before it. It has begun where its opener is followed
by the whole name of a tool that is offered and by what stands before its arguments: up to there the words may quote
what they like, but that a grammar looks no further than the first letters of a long name.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from os.path import commonprefix
from typing import NamedTuple

from toolgram.template.markers import TOKEN
from toolgram.wire import format as wire
from toolgram.wire.unclosed import naming, openings

_TELLING = 9  # characters of a long name, with its quote, by which a grammar tells a call: all would be long


class AfterWords(NamedTuple):
    """A format without the calls after words, how these begin, and they with the line break before them."""

    format: wire.WireFormat
    ahead: wire.CallAhead
    calls: wire.Node


@lru_cache(maxsize=512)
def with_calls_after_words(format_: wire.WireFormat, calls: wire.Node, tools: tuple[str, ...]) -> wire.WireFormat:
    """The format, in which these calls may follow the content with which a turn begins; as it is where none can."""
    on_a_line = wire.Seq(wire.Lit("\n"), calls)
    ahead = None if format_.reasoning else _ahead(format_, on_a_line, tools)
    if ahead is None:
        return format_
    return replace(format_, turn=_after_content(format_.turn, wire.Seq(wire.Opt(wire.Lit("\n")), ahead, on_a_line)))


def without_calls_after_words(format_: wire.WireFormat) -> wire.WireFormat:
    """The format without them; as it is where it has none."""
    found = calls_after_words(format_)
    return found.format if found else format_


@lru_cache(maxsize=512)
def calls_after_words(format_: wire.WireFormat) -> AfterWords | None:
    """The parts of a format that has them; None for any other."""
    for node in wire.walk(format_.turn):
        match node:
            case wire.Seq((wire.Content(), wire.Alt((_, wire.Seq((_, wire.CallAhead() as ahead, calls)))))):
                return AfterWords(replace(format_, turn=_without(format_.turn)), ahead, calls)
            case _:
                pass
    return None


def _ahead(format_: wire.WireFormat, calls: wire.Node, tools: tuple[str, ...]) -> wire.CallAhead | None:
    """How calls of these tools begin; None where text cannot quote the beginning."""
    begun = openings(format_, calls)
    opener = commonprefix([before for before, _ in begun])  # noqa: RUF071 - these are no paths
    opener = opener[: opener.find("\n", 1)] if "\n" in opener[1:] else opener  # that it cannot begin amid itself
    if not opener.strip() or TOKEN.search(opener) or not all(rest for _, rest in begun):
        return None
    # What may stand before a name may come with what may stand after it, in any pair: so grammars have each name once.
    leads, ends = dict.fromkeys(before[len(opener) :] for before, _ in begun), dict.fromkeys(rest for _, rest in begun)
    ways = list(product(leads, ends, tools))
    rests = dict.fromkeys(lead + naming(rest, tool) for lead, rest, tool in ways)
    told = dict.fromkeys(lead + _told(rest, tool) for lead, rest, tool in ways)
    return wire.CallAhead(opener, tuple(rests), told=tuple(told))


def _told(rest: str, tool: str) -> str:
    """What is told of a name and what follows: all, or the beginning of a long name."""
    return naming(rest, tool) if len(naming(rest[0], tool)) <= _TELLING else naming(rest, tool)[:_TELLING]


def _after_content(node: wire.Node, calls: wire.Node) -> wire.Node:
    match node:
        case wire.Opt(wire.Content() as content):
            return wire.Opt(wire.Seq(content, wire.Alt(wire.NOTHING_WRITTEN, calls)))
        case wire.Alt():
            return wire.rebuild(node, partial(_after_content, calls=calls))
        case wire.Seq(items):
            at = next((at for at, item in enumerate(items) if wire.as_written(item) != wire.NOTHING_WRITTEN), None)
            return node if at is None else wire.Seq(*items[:at], _after_content(items[at], calls), *items[at + 1 :])
        case _:
            return node


def _without(node: wire.Node) -> wire.Node:
    match node:
        case wire.Seq((wire.Content() as content, wire.Alt((_, wire.Seq((_, wire.CallAhead(), _)))))):
            return content
        case _:
            return wire.rebuild(node, _without)
