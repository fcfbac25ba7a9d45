"""What a call looks like in a format, and what was written of it for a tool before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolgram.caching import TOGETHER, counted, remembers
from toolgram.grammar.ir import Expr
from toolgram.grammar.walk import weight
from toolgram.wire import format as wire
from toolgram.wire.encodings import AnyEncoding


@dataclass(frozen=True, eq=False)
class CallForm:
    """A call in a format: equal to itself alone, and looked up once for all tools.

    `is_all`: it and the tool's name and arguments, in these `encodings`, are all that what is written depends on.
    """

    item: wire.Node
    in_json: bool
    encodings: tuple[AnyEncoding, ...]
    is_all: bool


@counted(256)
def form_of(format_: wire.WireFormat, item: wire.Node, in_json: bool) -> CallForm:  # noqa: ARG001 (it is looked up by its layouts, too)
    """The form of a call, which stands in JSON or outside of it."""
    nodes = list(wire.walk(item, written=True))
    encodings = dict.fromkeys(node.encoding for node in nodes if isinstance(node, wire.Arguments))
    is_all = not any(isinstance(node, wire.Content | wire.Reasoning) for node in nodes)
    return CallForm(item, in_json, tuple(encodings), is_all)


@remembers
def written(form: CallForm, name: str, arguments: Callable[[AnyEncoding], Expr], write: Callable[[], Expr]) -> Expr:
    """The call of a tool, which `write` makes where it is not known from another turn."""
    if not form.is_all:
        return write()
    key = (form, name, *map(arguments, form.encodings))
    known: Expr | None = TOGETHER.recall(written, key)
    if known is None:
        known = write()
        TOGETHER.note(written, key, known, weight(known))
    return known
