"""Reasoning that a call closes: models often begin a call where their reasoning should have ended, and has not.

A call has begun where its opener is followed by the whole name of a tool that is offered and by what stands before
its arguments; where nothing does, by the beginning of these. Up to there the reasoning may quote what it likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from toolgram.schema.writing.json_style import Spelling, quoted
from toolgram.template.markers import TOKEN
from toolgram.wire import format as wire
from toolgram.wire.allowed import allowed

_NAME, _QUOTED, _ARGUMENTS = "\0", "\1", "\2"  # places in the beginning of a call; none stands in any text


@lru_cache(maxsize=512)
def closed_by_calls(format_: wire.WireFormat, tools: tuple[str, ...]) -> wire.WireFormat:
    """The format, in which a call of these tools may close the reasoning; as it is where none can.

    None can where reasoning does not stand before the calls between tags, and where a call does not begin with its
    tool's name, or so that text cannot be told from it.
    """
    turn = format_.turn
    at = _reasoning_in(turn)
    if at is None or not isinstance(turn, wire.Seq):
        return format_
    calls = allowed(wire.Seq(*turn.items[at + 1 :]), "only")
    ahead = None if calls is None else _ahead(format_, calls, tools)
    if ahead is None:
        return format_
    thought = _left_open(turn.items[at], ahead)
    return wire.WireFormat(
        wire.Seq(*turn.items[:at], thought, *turn.items[at + 1 :]), format_.item_separator, format_.key_separator
    )


def unclosed(turn: wire.Node) -> tuple[wire.Node, wire.Node, wire.CallAhead] | None:
    """A turn whose reasoning a call closes: up to the end of that, what may follow it, and how the call begins."""
    at = _reasoning_in(turn)
    ahead = next((node for node in wire.walk(turn, written=True) if isinstance(node, wire.CallAhead)), None)
    if at is None or ahead is None or not isinstance(turn, wire.Seq):
        return None
    thought = _up_to_reasoning(turn.items[at])
    return wire.Seq(*turn.items[:at], thought), wire.Seq(*turn.items[at + 1 :]), ahead


def _reasoning_in(turn: wire.Node) -> int | None:
    """Which part of a turn is its reasoning, if it is a part with nothing besides."""
    if not isinstance(turn, wire.Seq):
        return None
    return next((at for at, item in enumerate(turn.items) if wire.only_reasons(item)), None)


def _left_open(node: wire.Node, ahead: wire.CallAhead) -> wire.Node:
    """The reasoning with a call in the place of what closes it, or that."""
    match node:
        case wire.Seq(items) if wire.Reasoning() in items:
            at = items.index(wire.Reasoning()) + 1
            closer = wire.Seq(*items[at:])
            space = next((item for item in items[at:] if isinstance(item, wire.Lit) and item.text.isspace()), None)
            begun = ahead if space is None or space is not items[at] else wire.Seq(space, ahead)
            return wire.Seq(*items[:at], wire.Alt(closer, begun))
        case _:
            return wire.rebuild(node, partial(_left_open, ahead=ahead))


def _up_to_reasoning(node: wire.Node) -> wire.Node:
    """The part of some reasoning that comes before what closes it."""
    match node:
        case wire.Seq(items):
            at = next(at for at, item in enumerate(items) if wire.holds(item, wire.Reasoning))
            return wire.Seq(*items[:at], _up_to_reasoning(items[at]))
        case wire.Alt(options):
            return _up_to_reasoning(next(option for option in options if wire.holds(option, wire.Reasoning)))
        case wire.Opt(item) | wire.Many(item) | wire.Lenient(item):
            return _up_to_reasoning(item)
        case _:
            return node


def _ahead(format_: wire.WireFormat, calls: wire.Node, tools: tuple[str, ...]) -> wire.CallAhead | None:
    """How calls of these tools begin; None where what comes before their names is not always the same.

    Where some begin with a token, it is these: another beginning is too little to tell a call amid thoughts.
    """
    begun = openings(format_, calls)
    begun = [way for way in begun if TOKEN.search(way[0])] or begun
    lead = begun[0][0] if begun else ""
    tokens = TOKEN.findall(lead)
    # Where a token comes again within an opener, engines cannot tell where text ends and a call begins.
    if (
        not lead.strip()
        or len(set(tokens)) < len(tokens)
        or any(before != lead or not named for before, named in begun)
    ):
        return None
    rests = (naming(rest, tool) for tool in tools for _, rest in begun)
    return wire.CallAhead(lead.lstrip(), tuple(dict.fromkeys(rests)), _space(lead))


def openings(format_: wire.WireFormat, calls: wire.Node) -> list[tuple[str, str]]:
    """The ways in which calls begin: what comes before the name of a tool, and from there to what shows that arguments
    begin, for which see `naming`; this is empty where no name comes."""
    return [_cut(text) for text in _beginnings(format_, (calls,))]


def _cut(text: str) -> tuple[str, str]:
    """The beginning of a call: up to its tool's name, and from there to what shows that its arguments begin."""
    at = next((at for at, char in enumerate(text) if char in (_NAME, _QUOTED)), len(text))
    between, _, arguments = text[at + 1 :].partition(_ARGUMENTS)
    return text[:at], text[at : at + 1] + (between or arguments)


def naming(text: str, tool: str) -> str:
    """The text of an opening with the name of a tool in its places."""
    return text.replace(_NAME, tool).replace(_QUOTED, quoted(tool, Spelling()))


def _space(text: str) -> str:
    """The white space that a text begins with."""
    return text[: len(text) - len(text.lstrip())]


def _beginnings(format_: wire.WireFormat, nodes: tuple[wire.Node, ...]) -> Iterator[str]:
    """What calls that are written so begin with, up to the beginning of their arguments, or to their ids.

    `_NAME` stands for the tool's name, `_QUOTED` for a JSON string of it, `_ARGUMENTS` before the arguments.
    """
    if not nodes:
        yield ""
        return
    first, rest = nodes[0], nodes[1:]
    match first:
        case wire.Lit(text) | wire.Mark(text):
            yield from (text + more for more in _beginnings(format_, rest))
        case wire.Name():
            yield from _beginnings(format_, (wire.Lit(_NAME), *rest))
        case wire.CallId():
            yield ""
        case wire.Arguments(encoding):
            yield _ARGUMENTS + encoding.opener
            if encoding.may_be_empty:
                yield _ARGUMENTS + _first_words(rest)
        case wire.Seq(items):
            yield from _beginnings(format_, (*items, *rest))
        case wire.Alt(options):
            yield from (text for option in options for text in _beginnings(format_, (option, *rest)))
        case wire.Opt(item):
            yield from _beginnings(format_, (item, *rest))
            yield from _beginnings(format_, rest)
        case wire.Many(item) | wire.Call(item) | wire.Lenient(item):
            yield from _beginnings(format_, (item, *rest))
        case wire.Array(item):
            yield from _beginnings(format_, (wire.Lit("["), item, *rest))
        case wire.Object():
            yield from _beginnings(format_, (*_spelled(format_, first), *rest))
        case _:
            return


def _spelled(format_: wire.WireFormat, node: wire.Object) -> Iterator[wire.Node]:
    """A JSON object as text, up to what is none."""
    layout = format_.layout(node)
    lead = "{" + layout.first.text
    for key, member in node.members:
        yield wire.Lit(lead + quoted(key, Spelling()) + layout.key.text)
        match member:
            case wire.Name():
                yield wire.Lit(_QUOTED)
            case wire.Const(text):
                yield wire.Lit(quoted(text, Spelling()))
            case _:
                yield member
        lead = layout.item.text


def _first_words(nodes: tuple[wire.Node, ...]) -> str:
    """The text that comes first, up to the end of the first mark or words in it."""
    text = ""
    for node in nodes:
        if text.strip() or not isinstance(node, wire.Lit | wire.Mark):
            break
        text += node.text
    return text
