"""The shapes of JSON that formats prescribe: which members an object has, and what each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolgram.errors import GrammarError
from toolgram.wire import format as wire

ARGUMENTS = ("arguments", "parameters")  # what the arguments of a call are read under, besides the format's own key

Role = Literal["name", "type", "id", "arguments", "content", "reasoning", "skip"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value with a role."""

    role: Role


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """An object whose members are known; with `call` it is one call."""

    members: tuple[tuple[str, Shape], ...]
    call: bool = False

    def member(self, key: str) -> Shape:
        """The shape of a member's value."""
        return next((shape for name, shape in self.members if name == key), SKIP)


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """An array of these."""

    item: Shape


Shape = Leaf | ObjectShape | ArrayShape

SKIP = Leaf("skip")
TYPE, CALL_TYPE = "type", "function"  # what the OpenAI API says of a call before its name


def shape_of(node: wire.Node) -> Shape:
    """The shape of a JSON node of a format. Raises GrammarError for a node that is not JSON."""
    match node:
        case wire.Object(members):
            return ObjectShape(_with_other_words(tuple((key, shape_of(member)) for key, member in members)))
        case wire.Array(item):
            return ArrayShape(shape_of(item))
        case wire.Call(item):
            match shape_of(item):
                case ObjectShape(members):
                    return ObjectShape(members, call=True)
                case _:
                    raise GrammarError("a call inside JSON must be an object")
        case wire.Opt(item):
            return shape_of(item)
        case wire.Alt(options):
            return _merge([shape_of(option) for option in options])
        case wire.Name():
            return Leaf("name")
        case wire.CallId():
            return Leaf("id")
        case wire.Arguments():
            return Leaf("arguments")
        case wire.Content():
            return Leaf("content")
        case wire.Reasoning():
            return Leaf("reasoning")
        case wire.Const():
            return SKIP
        case _:
            raise GrammarError(f"{type(node).__name__} cannot stand inside JSON")


def _with_other_words(members: tuple[tuple[str, Shape], ...]) -> tuple[tuple[str, Shape], ...]:
    """The members of a call and what models write instead of them, from having seen other formats."""
    if Leaf("name") not in (shape for _, shape in members):
        return members
    if any(shape == Leaf("arguments") for _, shape in members):
        members += tuple((key, Leaf("arguments")) for key in ARGUMENTS if key not in dict(members))
    return (*members, ("function", ObjectShape(members)))  # the nesting of the OpenAI API


def _merge(shapes: list[Shape]) -> Shape:
    """One shape that reads what any of these does: objects are told apart by their keys."""
    members: dict[str, Shape] = {}
    for shape in shapes:
        if not isinstance(shape, ObjectShape):
            return shapes[0]
        for key, member in shape.members:
            members[key] = _merge([members[key], member]) if key in members else member
    return ObjectShape(tuple(members.items()))
