"""The vocabulary of wire formats: how a model family writes its turn, as a frozen value.

Three interpreters read the same value: `grammar` makes a grammar of it, `reader` reads text by it, `writer` writes a
message in it. Example, the format of Hermes 2 Pro (model card of NousResearch/Hermes-2-Pro-Llama-3-8B)::

    Seq(Opt(Content()), Many(Call(Seq(
        Mark("<tool_call>"), Lit("\\n"), Object(("name", Name()), ("arguments", Arguments())), Lit("\\n"),
        Mark("</tool_call>")))))
"""

from __future__ import annotations

from dataclasses import dataclass

from toolgram.wire.call_id import CallId
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
    """Nothing: text that nobody closed ends where a call begins, at `opener` and one of `rests`.

    Each of these is the name of a tool that is offered and what leads to its arguments: the opener with anything else
    behind it is text. White space `before` it belongs to neither. A grammar, which is shorter for it, has no text with
    one of `told` behind the opener, if these are given: the beginnings of all `rests`, which nearly tell.
    """

    opener: str
    rests: tuple[str, ...]
    before: str = ""
    told: tuple[str, ...] = ()

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
