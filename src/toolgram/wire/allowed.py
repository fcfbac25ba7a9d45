"""What of a format a request leaves: formats without calls, without an answer, with or without reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, TypeGuard

from toolgram.wire import format as wire

Calls = Literal["none", "any", "only"]
"""Whether the turn has no calls, may have calls, or is nothing but calls (and reasoning)."""


def allowed(node: wire.Node, calls: Calls, *, parallel: bool = True, must_answer: bool = False) -> wire.Node | None:
    """The part of a format that a request allows: None where nothing is left of it.

    A turn of nothing but calls has no content; one that `must_answer` has it always.
    """
    bears_calls = wire.holds(node, wire.Call)
    if calls == "none" and isinstance(node, wire.Call):
        return None
    if isinstance(node, wire.Opt) and not bears_calls and wire.holds(node, wire.Content):
        if calls == "only":
            return wire.NOTHING_WRITTEN
        if must_answer:
            return node.item
    if not (bears_calls or (must_answer and wire.holds(node, wire.Content))):
        return node

    def inside(part: wire.Node) -> wire.Node | None:
        return allowed(part, calls, parallel=parallel, must_answer=must_answer)

    match node:
        case wire.Seq(items):
            kept = [inside(item) for item in items]
            return None if None in kept else wire.Seq(*(item for item in kept if item is not None))
        case wire.Alt(options):
            if calls == "only":
                options = tuple(option for option in options if wire.holds(option, wire.Call))
            left = [option for option in map(inside, options) if option is not None]
            return wire.Alt(*left) if left else None
        case wire.Lenient(item, others):
            left = inside(item)
            lefts = [other for other in map(inside, others) if other is not None]
            return None if left is None else wire.Lenient(left, *lefts)
        case wire.Opt(item):
            left = inside(item)
            if left is None:
                return wire.NOTHING_WRITTEN
            return left if calls == "only" else wire.Opt(left)
        case wire.Many(item):
            left = inside(item)
            if left is None:
                return None if node.min else wire.NOTHING_WRITTEN
            least = max(node.min, 1) if calls == "only" else node.min
            return replace(node, item=left, min=least, max=node.max if parallel else 1)
        case wire.Chain():
            lefts = [inside(item) for item in node.items]
            kept = [left for left in lefts if left is not None and left != wire.NOTHING_WRITTEN]
            return wire.Chain(*kept, join=node.join)
        case wire.Object(members):
            values = [(key, inside(member)) for key, member in members]
            if any(value is None for _, value in values):
                return None
            return wire.Object(*((key, value) for key, value in values if value is not None))
        case wire.Array(item):
            left = inside(item)
            return None if left is None else replace(node, item=left, max=node.max if parallel else 1)
        case _:
            return node


def ways_to_think(format_: wire.WireFormat) -> Iterator[wire.WireFormat]:
    """The format with its reasoning always there, if empty, in each way it may be: a prompt may have opened it."""
    ways = [
        node.item.options if isinstance(node.item, wire.Alt) else (node.item,)
        for node in wire.walk(format_.turn)
        if _is_thought(node)
    ]
    for way in range(max(map(len, ways), default=0)):
        yield replace(format_, turn=_always_thinking(format_.turn, way))


@lru_cache(maxsize=512)
def read_reasoning_alone(node: wire.Node) -> wire.Node:
    """The format of a model that does not reason: its reasoning is read, should it write some, but not offered.

    Where reasoning is the only place for words, a model that has none spends its turn there.
    """
    if _is_thought(node):
        return wire.Lenient(wire.NOTHING_WRITTEN, node.item)
    if isinstance(node, wire.Seq):
        return wire.Seq(*map(read_reasoning_alone, node.items))
    return node


def _is_thought(node: wire.Node) -> TypeGuard[wire.Opt]:
    return isinstance(node, wire.Opt) and wire.holds(node, wire.Reasoning) and not wire.holds(node, wire.Content)


def _always_thinking(node: wire.Node, way: int) -> wire.Node:
    if _is_thought(node):
        return node.item.options[way] if isinstance(node.item, wire.Alt) else node.item
    if isinstance(node, wire.Seq):
        return wire.Seq(*(_always_thinking(item, way) for item in node.items))
    return node


def without_reasoning(node: wire.Node) -> wire.Node:
    """The format with no place for reasoning: its tags are plain text then, and inside JSON it counts as content."""
    if not wire.holds(node, wire.Reasoning):
        return node
    match node:
        case wire.Reasoning():
            return wire.Content()
        case wire.Opt() | wire.Many() if not (wire.holds(node, wire.Content) or wire.holds(node, wire.Call)):
            return wire.NOTHING_WRITTEN
        case wire.Seq(items):
            return wire.Seq(*map(without_reasoning, items))
        case wire.Alt(options):
            return wire.Alt(*map(without_reasoning, options))
        case wire.Lenient(item, others):
            return wire.Lenient(without_reasoning(item), *map(without_reasoning, others))
        case wire.Opt(item) | wire.Many(item) | wire.Array(item) | wire.Call(item):
            return replace(node, item=without_reasoning(item))
        case wire.Chain():
            lefts = [without_reasoning(item) for item in node.items]
            return wire.Chain(*(left for left in lefts if left != wire.NOTHING_WRITTEN), join=node.join)
        case wire.Object(members):
            return wire.Object(*((key, without_reasoning(member)) for key, member in members))
        case _:
            return node
