"""The vocabulary of wire formats: how a model family writes its turn, as a frozen value.

Three interpreters read the same value: `grammar` makes a grammar of it, `reader` reads text by it, `writer` writes a
message in it. Example, the format of Hermes 2 Pro (model card of NousResearch/Hermes-2-Pro-Llama-3-8B)::

    Seq(Opt(Content()), Many(Call(Seq(
        Mark("<tool_call>"), Lit("\\n"), Object(("name", Name()), ("arguments", Arguments())), Lit("\\n"),
        Mark("</tool_call>")))))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from toolgram.wire.encodings import JSON, AnyEncoding


@dataclass(frozen=True, slots=True)
class Lit:
    """Text that the format prescribes and that may also stand in free text: white space, keywords.

    The reader is lenient about its white space.
    """

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
class Content:
    """The answer: free text, or the value of the response schema. Inside an `Object` a JSON string, or that value."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's thoughts: free text. Inside an `Object` a JSON string."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of the tool, as it is; it may stand in a call again. Inside an `Object` a JSON string."""


@dataclass(frozen=True, slots=True)
class CallId:
    """The id of a call: `length` characters out of `alphabet` (a character class, as in "a-zA-Z0-9"), or up to `most`.

    `form` says what the id is where the wire shows but a part of it: "functions.{name}:{id}".
    """

    alphabet: str = "a-zA-Z0-9"
    length: int = 9
    form: str = "{id}"
    most: int | None = None

    @property
    def longest(self) -> int:
        """How many characters there are at most."""
        return self.length if self.most is None else self.most

    @property
    def pattern(self) -> str:
        """The regular expression of what the wire shows."""
        sizes = f"{self.length}" if self.longest == self.length else f"{self.length},{self.longest}"
        return f"[{self.alphabet}]{{{sizes}}}"

    def admits(self, name: str, id_: str) -> bool:
        """Whether a call of this tool may have this id."""
        before, _, after = self.form.replace("{name}", name).partition("{id}")
        return re.fullmatch(re.escape(before) + self.pattern + re.escape(after), id_) is not None


COUNT = CallId("0-9", 1, most=3)
"""An id that is a number, which counts calls."""


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
    """Segments in this order, at least one, `join` between any two: each an `Opt`, a `Many`, or always there."""

    items: tuple[Node, ...]
    join: Node

    def __init__(self, *items: Node, join: Node) -> None:
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "join", join)


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


@dataclass(frozen=True, slots=True, init=False)
class Object:
    """A JSON object of these members, written in this order; the reader takes any order and skips other keys."""

    members: tuple[tuple[str, Node], ...]

    def __init__(self, *members: tuple[str, Node]) -> None:
        object.__setattr__(self, "members", members)


@dataclass(frozen=True, slots=True)
class Array:
    """A JSON array of one or more of these; `max` is for what a request allows, not for styles."""

    item: Node
    max: int | None = None


Node = (
    Lit
    | Mark
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


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How a whole assistant turn is written, from the end of the generation prompt's fixed part to the end of turn.

    What a generation prompt holds of it already ("<|from|>assistant\\n<|recipient|>") is part of `turn`. The separators
    are those of JSON on the wire.
    """

    turn: Node
    item_separator: str = ", "
    key_separator: str = ": "


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


def as_written(node: Node) -> Node:
    """The node without what only a reader takes."""
    match node:
        case Lenient(item):
            return as_written(item)
        case Call(item) | Opt(item) | Array(item):
            return replace(node, item=as_written(item))
        case Many():
            return replace(node, item=as_written(node.item), separator=as_written(node.separator))
        case Seq(items):
            return Seq(*map(as_written, items))
        case Alt(options):
            return Alt(*map(as_written, options))
        case Chain():
            return Chain(*map(as_written, node.items), join=as_written(node.join))
        case Object(members):
            return Object(*((key, as_written(member)) for key, member in members))
        case _:
            return node


def holds(node: Node, kind: type[Call | Content | Reasoning]) -> bool:
    """Whether a node of this kind is in here."""
    return any(isinstance(part, kind) for part in walk(node))
