"""Wire formats: a turn's nodes with what holds for all of it, and the ways to go through nodes and to change them.

The nodes themselves (`nodes`) are part of this vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import overload

from toolgram.wire.call_id import COUNT as COUNT
from toolgram.wire.call_id import CallId as CallId
from toolgram.wire.encodings import AnyEncoding
from toolgram.wire.nodes import NOTHING_WRITTEN as NOTHING_WRITTEN
from toolgram.wire.nodes import Alt as Alt
from toolgram.wire.nodes import Arguments as Arguments
from toolgram.wire.nodes import Array as Array
from toolgram.wire.nodes import Break as Break
from toolgram.wire.nodes import Call as Call
from toolgram.wire.nodes import CallAhead as CallAhead
from toolgram.wire.nodes import Chain as Chain
from toolgram.wire.nodes import Const as Const
from toolgram.wire.nodes import Content as Content
from toolgram.wire.nodes import Layout as Layout
from toolgram.wire.nodes import Lenient as Lenient
from toolgram.wire.nodes import Lit as Lit
from toolgram.wire.nodes import Many as Many
from toolgram.wire.nodes import Mark as Mark
from toolgram.wire.nodes import Name as Name
from toolgram.wire.nodes import NamedMark as NamedMark
from toolgram.wire.nodes import Node as Node
from toolgram.wire.nodes import Object as Object
from toolgram.wire.nodes import Opt as Opt
from toolgram.wire.nodes import Reasoning as Reasoning
from toolgram.wire.nodes import Seq as Seq


@dataclass(frozen=True)
class WireFormat:
    """How a whole assistant turn is written, from the end of the generation prompt's fixed part to the end of turn.

    What a generation prompt holds of it already ("<|from|>assistant\\n<|recipient|>") is part of `turn`. The separators
    are those of JSON on the wire. What is known of a format is found once, when it is first asked for.
    """

    turn: Node
    item_separator: str = ", "
    key_separator: str = ": "

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type, tuple[Node | str, ...]]:  # what was found stays here: hashes of texts differ
        return type(self), (self.turn, self.item_separator, self.key_separator)

    @cached_property
    def _hash(self) -> int:
        return hash((self.turn, self.item_separator, self.key_separator))

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The texts of all marks that a reader knows, aliases and those of `Lenient` nodes included."""
        return tuple(dict.fromkeys(text for mark in marks_in(self.turn) for text in mark.spellings))

    @cached_property
    def call_id(self) -> CallId | None:
        """The id of a call, None where the wire carries none."""
        return next((node for node in walk(self.turn, written=True) if isinstance(node, CallId)), None)

    @cached_property
    def reasoning(self) -> bool:
        """Whether there is a place for reasoning: one that is only read, should a model write it, is none."""
        return any(isinstance(node, Reasoning) for node in walk(self.turn, written=True))

    @cached_property
    def encodings(self) -> tuple[AnyEncoding, ...]:
        """The encodings in which arguments are written; there may be more of them that are only read."""
        nodes = walk(self.turn, written=True)
        return tuple(dict.fromkeys(node.encoding for node in nodes if isinstance(node, Arguments)))

    @cached_property
    def answers(self) -> tuple[AnyEncoding, ...]:
        """The encodings in which the value of a response schema is written."""
        nodes = walk(self.turn, written=True)
        return tuple(dict.fromkeys(node.encoding for node in nodes if isinstance(node, Content)))

    def layout(self, node: Object | Array) -> Layout:
        """How an object or array is laid out."""
        return node.layout or Layout(Lit(self.item_separator), Lit(self.key_separator))


PLAIN = WireFormat(Opt(Content()))


def parts(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside this one, separators included."""
    match node:
        case Call(item) | Opt(item) | Array(item):
            return (item,)
        case Seq(items) | Alt(items):
            return items
        case Many(item, separator):
            return (item, separator)
        case Chain():
            return (*node.items, node.join)
        case Lenient(item, others):
            return (item, *others)
        case Object(members):
            return tuple(member for _, member in members)
        case _:
            return ()


def walk(node: Node, *, written: bool = False) -> Iterator[Node]:
    """The node and all inside it, in the order they are written; with `written` only what is ever written."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed((part.item,) if written and isinstance(part, Lenient) else parts(part)))


@overload
def rebuild(node: Node, change: Callable[[Node], Node]) -> Node: ...
@overload
def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node | None: ...
def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node | None:
    """The node with `change` made to each part directly inside it; all that changes a format is made with this.

    A part that becomes None cannot be written: with it goes what is nothing without it, while an alternative to it
    stays, and what may be left out is. A chain also leaves out the segments of which nothing is left.
    """
    match node:
        case Seq(items):
            kept = _all(items, change)
            return None if kept is None else Seq(*kept)
        case Alt(options):
            left = _some(options, change)
            return Alt(*left) if left else None
        case Chain(items, join, closes):
            between = change(join)
            left = [item for item in _some(items, change) if item != NOTHING_WRITTEN]
            return None if between is None else Chain(*left, join=between, closes=closes)
        case Lenient(item, others):
            made = change(item)
            return None if made is None else Lenient(made, *_some(others, change))
        case Opt(item):
            made = change(item)
            return NOTHING_WRITTEN if made is None else Opt(made)
        case Many(item, separator):
            made, between = change(item), change(separator)
            if made is None or between is None:
                return None if node.min else NOTHING_WRITTEN
            return replace(node, item=made, separator=between)
        case Call(item) | Array(item):
            made = change(item)
            return None if made is None else replace(node, item=made)
        case Object(members):
            values = _all(tuple(member for _, member in members), change)
            keys = (key for key, _ in members)
            return None if values is None else Object(*zip(keys, values, strict=True), layout=node.layout)
        case _:
            return node


def _all(nodes: tuple[Node, ...], change: Callable[[Node], Node | None]) -> list[Node] | None:
    left = _some(nodes, change)
    return left if len(left) == len(nodes) else None


def _some(nodes: tuple[Node, ...], change: Callable[[Node], Node | None]) -> list[Node]:
    return [made for made in map(change, nodes) if made is not None]


def as_written(node: Node) -> Node:
    """The node without what only a reader takes."""
    return as_written(node.item) if isinstance(node, Lenient) else rebuild(node, as_written)


def naming(node: Node, tools: tuple[str, ...]) -> Node:
    """The node, whose marks name these tools."""
    if isinstance(node, NamedMark):
        return replace(node, tools=tools)
    return rebuild(node, partial(naming, tools=tools))


def holds(node: Node, kind: type[Call | CallId | Content | NamedMark | Reasoning], *, written: bool = False) -> bool:
    """Whether a node of this kind is in here; with `written` in what is ever written."""
    return any(isinstance(part, kind) for part in walk(node, written=written))


def only_reasons(node: Node) -> bool:
    """Whether what is written here is reasoning, and neither an answer nor a call."""
    kinds = {type(part) for part in walk(node, written=True)}
    return Reasoning in kinds and kinds.isdisjoint((Content, Call))


def marks_in(node: Node, *, written: bool = False) -> tuple[Mark, ...]:
    """The marks in a part of a format, each once; with `written` only those that are ever written."""
    return tuple(dict.fromkeys(part for part in walk(node, written=written) if isinstance(part, Mark)))
