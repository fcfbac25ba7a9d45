"""The vocabulary of wire formats: how a model family writes its turn, as a frozen value.

Three interpreters read the same value: `grammar` makes a grammar of it, `reader` reads text by it, `writer` writes a
message in it. Example, the format of Hermes 2 Pro (model card of NousResearch/Hermes-2-Pro-Llama-3-8B)::

    Seq(Opt(Content()), Many(Call(Seq(
        Mark("<tool_call>"), Lit("\\n"), Object(("name", Name()), ("arguments", Arguments())), Lit("\\n"),
        Mark("</tool_call>")))))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import overload

from toolgram.grammar.hashing import HashedOnce, hash_once
from toolgram.wire.call_id import COUNT as COUNT
from toolgram.wire.call_id import CallId as CallId
from toolgram.wire.encodings import JSON, AnyEncoding
from toolgram.wire.encodings.json import escape


@dataclass(frozen=True, slots=True)
class Lit:
    """Text that the format prescribes and that may also stand in free text: white space, keywords.

    The reader is lenient about its white space. A grammar takes `others` in its place too: white space that a template
    of the family has there.
    """

    text: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Break:
    """White space that a template writes around an answer, before it or between it and a call: the reader drops it, as
    the template writes it again into the history. A grammar does not ask for it."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag or control token: free text that it may end never contains it. The reader takes `aliases` for it too."""

    text: str
    aliases: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """The text and its aliases."""
        return (self.text, *self.aliases)


@dataclass(frozen=True, slots=True)
class NamedMark:
    """A mark that says which tool is called, and so stands for a `Name`: `before`, the tool's name, `after`.

    Only where free text begins, or `anywhere` in it, and only for each of `tools`, which a request offers and a style
    leaves open, it is a mark: with any other name, or where it stops short of `after`, it is text.
    """

    before: str
    after: str
    tools: tuple[str, ...] = ()
    anywhere: bool = False

    def text(self, name: str) -> str:
        """The mark of a tool, whose name stands in a JSON string."""
        return self.before + escape(name) + self.after


@dataclass(frozen=True, slots=True)
class CallAhead:
    """Nothing: reasoning that nobody closed ends where a call begins, at `opener` and one of `rests`.

    Each of these is the name of a tool that is offered and what leads to its arguments: the opener with anything else
    behind it is text. White space `before` it belongs to neither.
    """

    opener: str
    rests: tuple[str, ...]
    before: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts at which a call has begun for good."""
        return tuple(self.opener + rest for rest in self.rests)


@dataclass(frozen=True, slots=True)
class Content:
    """The answer: free text, or the value of the response schema in an encoding: JSON on one line or more. Inside an
    `Object` a JSON string, or that value."""

    encoding: AnyEncoding = JSON


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's reasoning: free text. Inside an `Object` a JSON string."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of the tool, as it is; it may stand in a call again. Inside an `Object` a JSON string."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of the call, checked against the tool's parameters, written in an encoding."""

    encoding: AnyEncoding = JSON


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the `Name`, `Arguments` and `CallId` inside belong together."""

    item: Node


@dataclass(frozen=True, slots=True, init=False)
class Seq:
    """These, one after the other."""

    items: tuple[Node, ...]

    def __init__(self, *items: Node) -> None:
        object.__setattr__(self, "items", items)


@dataclass(frozen=True, slots=True, init=False)
class Alt:
    """One of these; the reader prefers the first that fits."""

    options: tuple[Node, ...]

    def __init__(self, *options: Node) -> None:
        object.__setattr__(self, "options", options)


@dataclass(frozen=True, slots=True)
class Opt:
    """This or nothing."""

    item: Node


@dataclass(frozen=True, slots=True)
class Many:
    """This, `min` times or more, `separator` between; `max` is for what a request allows, not for styles."""

    item: Node
    separator: Node = Lit("")
    min: int = 0
    max: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class Chain:
    """Segments in this order, at least one, `join` between any two: each an `Opt`, a `Many`, or always there.

    Where it `closes` each, it may stand after the last one too.
    """

    items: tuple[Node, ...]
    join: Node
    closes: bool

    def __init__(self, *items: Node, join: Node, closes: bool = False) -> None:
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "join", join)
        object.__setattr__(self, "closes", closes)


@dataclass(frozen=True, slots=True, init=False)
class Lenient:
    """This; the reader takes any of `others` in its place too, which models write though they should not."""

    item: Node
    others: tuple[Node, ...]

    def __init__(self, item: Node, *others: Node) -> None:
        object.__setattr__(self, "item", item)
        object.__setattr__(self, "others", others)


@dataclass(frozen=True, slots=True)
class Const:
    """A JSON string that is always the same, inside an `Object` ("type": "function")."""

    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands in an object or array between its members, between a key and its value, and inside its brackets."""

    item: Lit
    key: Lit
    first: Lit = Lit("")
    last: Lit = Lit("")


@dataclass(frozen=True, slots=True, init=False)
class Object:
    """A JSON object of these members, written in this order; the reader takes any order and skips other keys.

    Its separators are those of the format, unless it has a `layout`: a template of the family spaces it in its own way.
    """

    members: tuple[tuple[str, Node], ...]
    layout: Layout | None

    def __init__(self, *members: tuple[str, Node], layout: Layout | None = None) -> None:
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "layout", layout)


@dataclass(frozen=True, slots=True)
class Array:
    """A JSON array of one or more of these, in a `layout` as an object is; `max` is for what a request allows."""

    item: Node
    max: int | None = None
    layout: Layout | None = None


Node = (
    Lit
    | Break
    | Mark
    | NamedMark
    | CallAhead
    | Content
    | Reasoning
    | Name
    | CallId
    | Arguments
    | Call
    | Seq
    | Alt
    | Opt
    | Many
    | Chain
    | Lenient
    | Const
    | Object
    | Array
)

NOTHING_WRITTEN = Seq()


@hash_once
@dataclass(frozen=True)
class WireFormat(HashedOnce):
    """How a whole assistant turn is written, from the end of the generation prompt's fixed part to the end of turn.

    What a generation prompt holds of it already ("<|from|>assistant\\n<|recipient|>") is part of `turn`. The separators
    are those of JSON on the wire. What is known of a format is found once, when it is first asked for.
    """

    turn: Node
    item_separator: str = ", "
    key_separator: str = ": "

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The texts of all marks that a reader knows, aliases and those of `Lenient` nodes included."""
        return tuple(dict.fromkeys(text for mark in marks_in(self.turn) for text in mark.spellings))

    @cached_property
    def call_id(self) -> CallId | None:
        """The id of a call, None where the wire carries none."""
        return next((node for node in walk(self.turn) if isinstance(node, CallId)), None)

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
    yield node
    for part in (node.item,) if written and isinstance(node, Lenient) else parts(node):
        yield from walk(part, written=written)


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
