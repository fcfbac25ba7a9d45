"""What of a format a request leaves: formats without calls, without an answer, with or without reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Literal, TypeGuard

from toolgram.wire import format as wire

Calls = Literal["none", "any", "only"]
"""Whether the turn has no calls, may have calls, or is nothing but calls (and reasoning)."""

_CONTENT = (wire.Content(), wire.Opt(wire.Content()))


def allowed(node: wire.Node, calls: Calls, *, parallel: bool = True, must_answer: bool = False) -> wire.Node | None:
    """The part of a format that a request allows: None where nothing is left of it.

    A turn of nothing but calls has no content, though the tags around it if they may be empty; one that `must_answer`
    has it always.
    """
    bears_calls = wire.holds(node, wire.Call)
    if calls == "none" and isinstance(node, wire.Call):
        return None
    if calls == "only" and isinstance(node, wire.Break):
        return wire.NOTHING_WRITTEN
    if not (bears_calls or (wire.holds(node, wire.Content, written=True) and (must_answer or calls == "only"))):
        return node

    def inside(part: wire.Node) -> wire.Node | None:
        return allowed(part, calls, parallel=parallel, must_answer=must_answer)

    def beside(part: wire.Node) -> wire.Node | None:
        """What stands beside a call that is always there: another may be left out, and is where only one may come."""
        if not wire.holds(part, wire.Call):
            return inside(part)
        left = "any" if calls == "only" else calls
        return allowed(part, left, must_answer=must_answer) if parallel else wire.NOTHING_WRITTEN

    if isinstance(node, wire.Opt) and not bears_calls:
        item = inside(node.item)
        if must_answer and calls != "only":
            return item
        return wire.NOTHING_WRITTEN if item is None or wire.holds(item, wire.Content) else wire.Opt(item)
    if isinstance(node, wire.Seq) and any(map(_always_calls, node.items)):
        return wire.rebuild(node, lambda part: inside(part) if _always_calls(part) else beside(part))
    if calls == "only" and bears_calls and isinstance(node, wire.Alt):
        node = wire.Alt(*(option for option in node.options if wire.holds(option, wire.Call)))
    match left := wire.rebuild(node, inside):
        case wire.Opt(item) if calls == "only":
            return item
        case wire.Many():
            least = max(left.min, 1) if calls == "only" and bears_calls else left.min
            return replace(left, min=least, max=left.max if parallel else 1)
        case wire.Array():
            return replace(left, max=left.max if parallel else 1)
        case _:
            return left


def _always_calls(node: wire.Node) -> bool:
    """Whether a call stands here in any case."""
    match node:
        case wire.Call():
            return True
        case wire.Seq(items):
            return any(map(_always_calls, items))
        case wire.Alt(options):
            return all(map(_always_calls, options))
        case wire.Many(item):
            return node.min > 0 and _always_calls(item)
        case _:
            return False


def without_calls(format_: wire.WireFormat) -> wire.WireFormat:
    """The format of a turn in which nothing can be called."""
    return replace(format_, turn=allowed(format_.turn, "none") or wire.NOTHING_WRITTEN)


def closing_content(node: wire.Node, opened: str) -> wire.Node:
    """The format whose place for content is empty and always there, if it is what the prompt opened last.

    A turn of nothing but calls closes it before the first one.
    """
    match node:
        case wire.Opt(wire.Seq(items)) if found := [each for each in items if each in _CONTENT]:
            at = items.index(found[0])
            before = [item.text for item in items[:at] if isinstance(item, wire.Lit | wire.Mark)]
            if at and len(before) == at and opened.endswith("".join(before)):
                return wire.Seq(*items[:at], *items[at + 1 :])
            return node
        case _:
            return wire.rebuild(node, partial(closing_content, opened=opened))


def ways_to_reason(format_: wire.WireFormat) -> Iterator[wire.WireFormat]:
    """The format with its reasoning always there, if empty, in each way it may be: a prompt may have opened it."""
    most = max((len(_ways(node)) for node in wire.walk(format_.turn) if _is_reasoning(node)), default=0)
    for way in range(most):
        yield replace(format_, turn=_always_reasoning(format_.turn, way))


@lru_cache(maxsize=512)
@lru_cache(maxsize=64)
def read_reasoning_alone(format_: wire.WireFormat) -> wire.WireFormat:
    """The format of a model that does not reason: its reasoning is read, should it write some, but not offered.

    Where reasoning is the only place for words, a model that has none spends its turn there. A segment of a chain stays
    as it is: what stands between segments is written beside each that is there.
    """
    return replace(format_, turn=_read_reasoning_alone(format_.turn))


def _read_reasoning_alone(node: wire.Node) -> wire.Node:
    if _is_reasoning(node):
        return wire.Lenient(wire.NOTHING_WRITTEN, node.item)
    return node if isinstance(node, wire.Chain) else wire.rebuild(node, _read_reasoning_alone)


def _is_reasoning(node: wire.Node) -> TypeGuard[wire.Opt]:
    return isinstance(node, wire.Opt) and wire.holds(node, wire.Reasoning) and not wire.holds(node, wire.Content)


def _always_reasoning(node: wire.Node, way: int) -> wire.Node:
    if _is_reasoning(node):
        ways = _ways(node)
        return ways[min(way, len(ways) - 1)]
    return wire.rebuild(node, partial(_always_reasoning, way=way))


def _ways(node: wire.Opt) -> tuple[wire.Node, ...]:
    return node.item.options if isinstance(node.item, wire.Alt) else (node.item,)


def without_reasoning(node: wire.Node) -> wire.Node:
    """The format with no place for reasoning: its tags are plain text then, and inside JSON it counts as content."""
    match node:
        case wire.Reasoning():
            return wire.Content()
        case wire.Opt() | wire.Many() if wire.only_reasons(node):
            return wire.NOTHING_WRITTEN
        case wire.Alt(options) if not all(map(wire.only_reasons, options)):
            return wire.Alt(*(without_reasoning(each) for each in options if not wire.only_reasons(each)))
        case wire.Lenient(item, others):
            return wire.Lenient(
                without_reasoning(item), *(without_reasoning(each) for each in others if not wire.only_reasons(each))
            )
        case _:
            return wire.rebuild(node, without_reasoning)
