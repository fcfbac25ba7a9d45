"""What an option begins with: literals of its own, the name of a tool among them, and what comes after these."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from toolgram.grammar.dialects.lark.options import is_literal, literals_before, made_of, row_again
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Lexeme,
    Node,
    Row,
    Sealed,
    Special,
    Tree,
    fork,
    is_among,
    is_empty,
    items_of,
    row,
)
from toolgram.grammar.hashing import found_once, kept_with
from toolgram.grammar.ir import CharSet, Literal

_MOST_TEXTS = 32  # that the literals spell with which an option begins
_NO_TEXT = "\ud800"  # stands in no text


class Option(NamedTuple):
    """What an option begins with, the texts that this spells, and what comes after, `inside` of it.

    After what is `before`, it goes on as `then`, or is no more than `instead`, if that is given.
    """

    before: tuple[Node, ...]
    then: tuple[Node, ...]
    instead: tuple[Node, ...] | None
    texts: frozenset[str]
    inside: Node

    def sealed(self, name: str, first: CharSet) -> Node:
        """The option with what comes after its beginning sealed, under this name."""
        way = row(*self.then, Sealed(name, first))
        return row(*self.before, way if self.instead is None else fork(way, row(*self.instead)))


def option_of(tree: Tree, name: str, told: Sequence[str]) -> Option:
    """An option by what it is made of; `told`, in order, are texts that free text must not begin with where it may
    begin. Up to the end of one of these such text can go on like the option, whose beginning goes on as far then."""
    items = made_of(tree, name)
    plain = kept_with(tree[name], _plainly, items)
    before, texts = plain.before, plain.texts
    after = items[len(before) :]
    if not after or not any(_is_begun(text, told) for text in texts):
        return plain
    ways = after[0].options if isinstance(after[0], Fork) else after[:1]
    full = [way for way in ways if not is_empty(way)]
    inner = _inside(tree, full[0])
    then, instead = inner[: literals_before(inner)], after[1:] if len(full) < len(ways) else None
    spelled = [_texts(row(*way)) for way in (then, instead) if way is not None]
    if len(full) > 1 or not then or None in spelled:
        return plain
    more = frozenset(text + end for text in texts for ends in spelled if ends for end in ends)
    return Option(before, then, instead, more, row_again(*inner[len(then) :], *after[1:]))


def _plainly(items: tuple[Node, ...]) -> Option:
    """An option that is made of these items, where nothing can go on like it."""
    length, texts = _beginning(items)
    return Option(items[:length], (), None, texts, row_again(*items[length:]))


def _inside(tree: Tree, node: Node) -> tuple[Node, ...]:
    """What a way through an option is made of; members begin anew there."""
    if not isinstance(node, Call):
        return items_of(node)
    match tree[node.name]:
        case Row() as whole if is_among(whole):
            return _begun_anew(whole)
        case whole:
            return items_of(whole)


@found_once
def _begun_anew(node: Row) -> tuple[Node, ...]:
    match node.items:
        case (*literals, Call(name)) if all(map(is_literal, literals)):
            return (*literals, Call(name))
        case _:
            return (node,)


def _is_begun(text: str, told: Sequence[str]) -> bool:
    """Whether a text is the beginning of any of others, which are in order."""
    at = bisect_right(told, text)
    return at < len(told) and told[at].startswith(text)


class _Beginning(NamedTuple):
    """How many items of a row are literals, or choices of such, and the texts that these spell."""

    length: int
    texts: frozenset[str]


def _beginning(items: tuple[Node, ...]) -> _Beginning:
    length, texts = 0, frozenset(("",))
    for item in items:
        more = _texts(item)
        if more is None or len(more) * len(texts) > _MOST_TEXTS:
            break
        length, texts = length + 1, frozenset(text + after for text in texts for after in more)
    return _Beginning(length, texts)


def _texts(node: Node) -> frozenset[str] | None:
    """The texts that literals spell; None where there is something else, or are too many."""
    match node:
        case Lexeme(Literal(text)):
            return frozenset((text,))
        case Special(number):
            return frozenset((f"{_NO_TEXT}{number};",))
        case Row(items):
            begin = _beginning(items)
            return begin.texts if begin.length == len(items) else None
        case Fork(options):
            found = [_texts(option) for option in options]
            texts = frozenset(text for each in found if each for text in each)
            return texts if None not in found and len(texts) <= _MOST_TEXTS else None
        case _:
            return None
