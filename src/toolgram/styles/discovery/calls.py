"""The part of a wire format that writes calls, from the text of one call and of two."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from toolgram.styles.discovery.arguments import Notation, json_objects, notation
from toolgram.styles.discovery.layout import Layout
from toolgram.styles.discovery.model_mistakes import first_forgotten, opener_forgotten
from toolgram.styles.discovery.to_nodes import Piece, as_one, nodes, with_mark_after
from toolgram.styles.probes import ONE, TWO, CallProbe, Scene, common_prefix, common_suffix
from toolgram.wire.format import (
    COUNT,
    Arguments,
    Array,
    Call,
    CallId,
    Const,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    Object,
    Opt,
    Seq,
)

_BETWEEN, _WORD_END = re.compile(r"[^\w\s\"'<>\[\]=|]{1,2}"), re.compile(r"(?:\w+[./:#-])*\Z", re.ASCII)


@dataclass(frozen=True)
class Calls:
    """The calls of a turn: the node, which may write none, and the notation of arguments.

    `bare` calls have no marker before them: they stand in the place of an answer, and are always written.
    """

    node: Node
    notation: Notation
    bare: bool = False


@dataclass(frozen=True)
class _Found:
    """One call in a text: where it begins and ends, and its pieces."""

    start: int
    end: int
    pieces: tuple[Piece, ...]


def calls(scene: Scene, laid: Layout) -> Calls | None:
    """How a template writes calls; None if its calls are not alike, or in no known notation."""
    written = notation(scene, laid.one_call, ONE)
    if written is None:
        return None
    stops = scene.capabilities.stop
    if laid.two_calls is None or _apart(scene, laid.two_calls):
        found = _find(laid.one_call, ONE, written, 0, stops)
        return None if found is None else _single(laid, found, written)
    first = _find(laid.two_calls, ONE, written, 0, stops)
    second = _find(laid.two_calls, TWO, written, first.end, stops) if first else None
    if first is None or second is None:
        return None
    first, second = _with_count(laid.two_calls, first, second)
    same = _same(first.pieces, second.pieces)
    return None if same is None else _several(laid, laid.two_calls, first, second, same, written)


def _apart(scene: Scene, two: str) -> bool:
    """Whether the template ends the turn between two calls: then each is the only one of its turn."""
    between = two[two.index(ONE.name) : two.index(TWO.name)]
    return any(stop in between for stop in scene.capabilities.stop if stop)


# One call

_Slot = tuple[int, int, Node]
"""Where a part of a call begins and ends in a text, and what it is."""


def _find(text: str, probe: CallProbe, written: Notation, start: int, stops: tuple[str, ...]) -> _Found | None:
    """A call in a text: its arguments, its name, its id if it is shown, and the text between them.

    What stands behind the end of its turn is none of it: the header of its result may show the name, too.
    """
    span = written.place(text, probe, start)
    if span is None:
        return None
    text = text[: min((at for stop in stops if stop and (at := text.find(stop, span[1])) >= 0), default=len(text))]
    found = _object(text, probe, start, span)
    if found is not None:  # some write the name before it as well
        names = [name for name in _all_of(text, probe.name, start, found[:2]) if name < found[0]]
        return _with_slots(text, [found, *_names(names, probe)])
    names = _all_of(text, probe.name, start, span)
    if not names:
        return None
    slots: list[_Slot] = [(*span, Arguments(written.encoding)), *_names(names, probe)]
    if (id_ := _outside(text, probe.id, start, span)) is not None:
        slots.append((id_, id_ + len(probe.id), CallId()))
    return _with_slots(text, slots)


def _names(places: list[int], probe: CallProbe) -> list[_Slot]:
    return [(at, at + len(probe.name), Name()) for at in places]


def _with_slots(text: str, slots: list[_Slot]) -> _Found:
    """The call from the first of its parts to the last, with the text between them."""
    slots.sort(key=lambda slot: slot[0])
    pieces: list[Piece] = []
    at = slots[0][0]
    for begin, end, node in slots:
        pieces += [text[at:begin], node]
        at = end
    return _Found(slots[0][0], at, tuple(piece for piece in pieces if piece))


def _all_of(text: str, name: str, start: int, span: tuple[int, int]) -> list[int]:
    """Where a name occurs before a span and after it: tags around the arguments may have it, or some before them."""
    found = (match.start() for match in re.finditer(re.escape(name), text))
    return [at for at in found if start <= at < span[0] or at >= span[1]]


def _outside(text: str, word: str, start: int, span: tuple[int, int]) -> int | None:
    """Where a word occurs before a span, or else after it."""
    at = text.find(word, start, span[0])
    at = at if at >= 0 else text.find(word, span[1])
    return at if at >= 0 else None


def _object(text: str, probe: CallProbe, start: int, span: tuple[int, int]) -> _Slot | None:
    """The outermost JSON object that holds the call and nothing unknown."""
    for at, end, value in json_objects(text, start):
        if at < span[0] and end > span[1]:
            node = _members(value, probe)
            known = node is not None and probe.name in _values(value)
            return (at, end, node) if known and node is not None else None
    return None


def _members(value: dict[str, Any], probe: CallProbe) -> Object | None:
    members: list[tuple[str, Node]] = []
    for key, each in value.items():
        node: Node | None = None
        if each == probe.arguments:
            node = Arguments()
        elif each == probe.name:
            node = Name()
        elif each == probe.id:
            node = CallId()
        elif isinstance(each, str):
            node = Const(each)
        elif isinstance(each, dict):
            node = _members(each, probe)  # pyright: ignore[reportUnknownArgumentType] - JSON
        if node is None or key in (probe.name, *probe.arguments):
            return None
        members.append((key, node))
    return Object(*members)


def _values(value: dict[str, Any]) -> list[Any]:
    """The values in an object and in the objects inside it."""
    inner = (_values(each) if isinstance(each, dict) else [each] for each in value.values())  # pyright: ignore[reportUnknownArgumentType] - JSON
    return [each for values in inner for each in values]


# What two calls have in common


def _same(one: tuple[Piece, ...], other: tuple[Piece, ...]) -> tuple[Piece, ...] | None:
    """The pieces of both calls, with a digit that counts up as an id; None if they differ in other ways."""
    if len(one) != len(other):
        return None
    same: list[Piece] = []
    for a, b in zip(one, other, strict=True):
        merged = _merged(a, b)
        if merged is None:
            return None
        same += merged
    return tuple(same)


def _merged(one: Piece, other: Piece) -> list[Piece] | None:
    match one, other:
        case str(), str():
            return [one] if one == other else _counted(one, other)
        case Object(members), Object(others) if [key for key, _ in members] == [key for key, _ in others]:
            merged = [_merged(a, b) for (_, a), (_, b) in zip(members, others, strict=True)]
            found = [each[0] for each in merged if each is not None and not isinstance(each[0], str)]
            keys = [key for key, _ in members]
            return [Object(*zip(keys, found, strict=True))] if len(found) == len(merged) else None
        case Const(a), Const(b) if a != b:
            return [COUNT] if _counts(a, b) else None
        case _:
            return [one] if one == other else None


def _counted(one: str, other: str) -> list[Piece] | None:
    """The text around a digit that counts up."""
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if one[at + 1 :] != other[at + 1 :] or not _counts(one[at : at + 1], other[at : at + 1]):
        return None
    return [piece for piece in (one[:at], COUNT, one[at + 1 :]) if piece]


def _whole_ids(pieces: list[Piece]) -> list[Piece]:
    """The pieces; a count that makes one word with the name before it ("functions.f:0") is part of such an id."""
    for at, piece in enumerate(pieces):
        if piece == COUNT and at >= 3 and pieces[at - 2] == Name():
            before, between = pieces[at - 3], pieces[at - 1]
            if isinstance(between, str) and isinstance(before, str) and _BETWEEN.fullmatch(between):
                word = _WORD_END.search(before)
                form = f"{word[0] if word else ''}{{name}}{between}{{id}}"
                return [*pieces[:at], replace(COUNT, form=form), *pieces[at + 1 :]]
    return pieces


def _with_count(text: str, first: _Found, second: _Found) -> tuple[_Found, _Found]:
    """The calls from a digit that precedes each and counts up, if there is one."""
    before, between = text[: first.start], text[first.end : second.start]
    shared = common_suffix(before, between)
    if not _counts(before.removesuffix(shared)[-1:], between.removesuffix(shared)[-1:]):
        return first, second

    def longer(found: _Found) -> _Found:
        start = found.start - len(shared) - 1
        return _Found(start, found.end, (text[start : found.start], *found.pieces))

    return longer(first), longer(second)


def _counts(one: str, other: str) -> bool:
    return one in ("0", "1") and other.isdecimal() and int(other) == int(one) + 1


# Around the calls


def _single(laid: Layout, found: _Found, written: Notation) -> Calls | None:
    """The calls of a template that writes one per turn."""
    before, after = laid.one_call[: found.start], laid.one_call[found.end :].rstrip()
    if not (laid.calls_follow_answers or before.strip() or after) and isinstance(found.pieces[0], Object):
        return Calls(Call(found.pieces[0]), written, bare=True)
    body = with_mark_after(laid.lead_of_marks, [before, *found.pieces, after], written.separators)
    return None if body is None else Calls(Opt(Call(Seq(*first_forgotten(body)))), written)


def _several(
    laid: Layout, text: str, first: _Found, second: _Found, same: tuple[Piece, ...], written: Notation
) -> Calls | None:
    """The calls of a template that writes any number: what stands around each, and around all."""
    before, between, after = text[: first.start], text[first.end : second.start], text[second.end :].rstrip()
    opener = before if laid.lead and laid.lead in between else common_suffix(before, between).lstrip()
    rest = between.removesuffix(opener)
    closer = common_prefix(rest, after)
    closer = closer if closer.strip() else ""
    begin, end = before.removesuffix(opener), after.removeprefix(closer)
    if not laid.calls_follow_answers and isinstance(same[0], Object) and not (opener or closer):
        if not begin.strip() and not end:
            return Calls(Many(Call(same[0]), separator=as_one(nodes([rest])), min=1), written, bare=True)
        if (begin.strip(), end, rest) == ("[", "]", written.item_separator):
            return Calls(Array(Call(same[0])), written, bare=True)
    lead = laid.lead_of_marks
    call = _whole_ids([opener, *same, closer])
    marked = _section(begin, end, call, rest.removeprefix(closer), written, lead)
    return marked or _python_list(begin, end, call, rest.removeprefix(closer), written)


def _python_list(begin: str, end: str, call: list[Piece], separator: str, written: Notation) -> Calls | None:
    """A list of Python calls, which needs no marker if it is the whole turn."""
    match [piece for piece in call if piece]:
        case [Name() as name, Arguments(encoding) as arguments] if encoding.notation.keyword_arguments:
            many = Many(Call(Seq(name, arguments)), separator=Lit(separator), min=1)
            listed = begin.strip() == "[" and end == "]"
            return Calls(Seq(Lit("["), many, Lit("]")), written, bare=True) if listed else None
        case _:
            return None


def _section(begin: str, end: str, call: list[Piece], separator: str, written: Notation, lead: str) -> Calls | None:
    """Calls with a separator between, in a section that opens and closes."""
    marks = begin.strip("[ \n")
    whole = nodes(call) if marks else with_mark_after(lead, call, written.separators)
    opened = with_mark_after(lead, [begin], written.separators) if marks else nodes([begin])
    if whole is None or opened is None:
        return None
    if not begin.strip():
        end = ""  # there is nothing that it could close: the template just continues so
    each = Call(as_one(first_forgotten(whole)))
    if not begin:
        return Calls(Many(each, separator=as_one(nodes([separator]))), written)
    listed = isinstance(each.item, Object) and begin.endswith("[") and end.startswith("]")
    if listed and separator == written.item_separator:
        return Calls(Opt(Seq(*_without_last(opened), Array(each), *nodes([end[1:]]))), written)
    many = Many(each, separator=as_one(nodes([separator])), min=1)
    section = opener_forgotten(opened, (many,)) if isinstance(whole[0], Mark) else (*opened, many)
    return Calls(Opt(Seq(*section, *nodes([end]))), written)


def _without_last(found: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes without the closing bracket at their end."""
    *kept, last = found
    if not isinstance(last, Lit):
        return found
    return (*kept, *nodes([last.text[:-1]]))
