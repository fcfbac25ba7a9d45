"""From text with slots to the nodes of a wire format: finds the marks, at which free text ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from toolgram.styles.probes import TAG
from toolgram.wire.format import Arguments, Const, Lit, Mark, Name, NamedMark, Node, Object, Seq

Piece = str | Node

_PRIVATE = range(0xE000, 0xF8FF)  # a private-use character stands for the nodes between texts
_BRACKETS = re.compile(r"[\s\[{(\"']*\Z")
_SHORTEST, _SOME_NAME = 2, "zqname"
_LETTER = re.compile(r"\w")


def nodes(pieces: Iterable[Piece]) -> tuple[Node, ...]:
    """The pieces with each tag as a mark and other text as text; a tag with a slot in it is a mark up to the slot.

    Where nothing but the slot says what the tag is, <slot>, it is text.
    """
    pieces = list(pieces)
    slots = [piece for piece in pieces if not isinstance(piece, str)]
    texts = "".join(piece for piece in pieces if isinstance(piece, str))
    slot = next(char for char in map(chr, _PRIVATE) if char not in texts)
    text = "".join(piece if isinstance(piece, str) else slot for piece in pieces)
    waiting = iter(slots)
    found: list[Node] = []
    at = 0
    for tag in TAG.finditer(text):
        found += _filled(text[at : tag.start()], slot, waiting)
        head, inside, rest = tag[0].partition(slot)
        begun = Mark(head) if not inside or _LETTER.search(head) else Lit(head)
        found += [begun, *_filled(inside + rest, slot, waiting)]
        at = tag.end()
    return tuple(_joined([*found, *_filled(text[at:], slot, waiting)]))


def as_one(found: tuple[Node, ...]) -> Node:
    """The nodes as one node; no nodes become an empty text."""
    return found[0] if len(found) == 1 else Seq(*found) if found else Lit("")


def _filled(text: str, slot: str, slots: Iterator[Node]) -> Iterator[Node]:
    for at, piece in enumerate(text.split(slot)):
        if at:
            yield next(slots)
        if piece:
            yield Lit(piece)


def _joined(found: Sequence[Node]) -> Iterator[Node]:
    """Joins neighbouring texts."""
    text = ""
    for node in found:
        if isinstance(node, Lit):
            text += node.text
            continue
        if text:
            yield Lit(text)
        yield node
        text = ""
    if text:
        yield Lit(text)


def with_mark(pieces: Sequence[Piece], separators: tuple[str, str]) -> tuple[Node, ...] | None:
    """The pieces with a mark before any slot: the tag there, or else the words, as they are.

    If only brackets come first, a JSON object is taken apart: its first key and the text around it make the mark; of a
    tag that the tool's name alone makes, it is that. None if what comes first is too short to distinguish it from an
    answer.
    """
    found = nodes(pieces)
    first = next((node for node in found if not isinstance(node, Lit)), None)
    if isinstance(first, Mark):
        return found
    if named := _named(found):
        return named
    head, rest = _head(found)
    words = _BRACKETS.sub("", head)
    if isinstance(first, Object) and len(words.strip()) < _SHORTEST:
        words, rest = _head(nodes([head, *_members(first, separators), *rest[1:]]))
        head = words
    if len(words.strip()) < _SHORTEST:
        return None
    space = words[: len(words) - len(words.lstrip())]
    after = words[len(words.rstrip()) :] + head[len(words) :]
    return (*nodes([space]), Mark(words.strip()), *_joined([*nodes([after]), *rest]))


def _named(found: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes with a tag that the tool's name makes as their mark; none where they do not begin with one."""
    match found:
        case (Lit(text), Name(), Lit(after), *rest):
            before = text.lstrip()
            tag = TAG.match(before + _SOME_NAME + after)
            if tag is None or tag.end() <= len(before + _SOME_NAME):
                return ()
            end = tag.end() - len(before + _SOME_NAME)
            mark = NamedMark(before, after[:end], anywhere=True)
            return (*nodes([text[: len(text) - len(before)]]), mark, *nodes([after[end:]]), *rest)
        case _:
            return ()


def with_mark_after(lead: str, pieces: Sequence[Piece], separators: tuple[str, str]) -> tuple[Node, ...] | None:
    """The pieces with a mark after the words that every part of a turn begins with."""
    first, *rest = pieces
    if not (lead and isinstance(first, str) and first.startswith(lead)):
        return with_mark(pieces, separators)
    after = with_mark([first.removeprefix(lead), *rest], separators)
    return None if after is None else (*nodes([lead]), *after)


def _head(found: tuple[Node, ...]) -> tuple[str, tuple[Node, ...]]:
    """The text before the first node that is not text, and the rest."""
    if found and isinstance(found[0], Lit):
        return found[0].text, found[1:]
    return "", found


def _members(node: Object, separators: tuple[str, str]) -> Iterator[Piece]:
    """The object as text with slots."""
    item, key = separators
    for at, (name, member) in enumerate(node.members):
        yield (item if at else "{") + json.dumps(name, ensure_ascii=False) + key
        match member:
            case Object():
                yield from _members(member, separators)
            case Const(text):
                yield json.dumps(text, ensure_ascii=False)
            case Arguments():
                yield member
            case _:
                yield from ('"', member, '"')
    yield "}"
