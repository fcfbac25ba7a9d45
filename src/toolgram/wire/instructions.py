"""The instructions of which the program of a wire format is made, and the marks at which its free text may end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolgram.wire.encodings import AnyEncoding
from toolgram.wire.json_shapes import ArrayShape, Shape

FreeField = Literal["content", "reasoning"]
FREE_FIELDS: tuple[FreeField, ...] = ("content", "reasoning")


@dataclass(frozen=True, slots=True)
class TextAt:
    """Prescribed text."""

    text: str
    next: int


@dataclass(frozen=True, slots=True)
class MarkAt:
    """A mark in one of its spellings; with `first` only where free text begins."""

    text: str
    next: int
    first: bool = False


@dataclass(frozen=True, slots=True)
class AheadAt:
    """Where reasoning ends because a call begins with this text, which is part of the call."""

    text: str
    next: int


@dataclass(frozen=True, slots=True)
class FreeAt:
    """Free text into a field; with `value` it may be the JSON value of a response schema."""

    field: FreeField
    next: int


NameAction = Literal["name", "again", "closing"]


@dataclass(frozen=True, slots=True)
class NameAt:
    """The tool's name or the call's id, up to what follows. A name that is said `again` is one word, and text if it is
    another one; one that is `closing` the call says nothing, whatever it is."""

    action: NameAction | Literal["id"]
    next: int
    form: str = "{id}"


@dataclass(frozen=True, slots=True)
class ArgumentsAt:
    """The arguments, in an encoding."""

    encoding: AnyEncoding
    next: int

    @property
    def first(self) -> str:
        """The character that the arguments begin with; of tags there may be none, and then what follows begins."""
        return self.encoding.opener[0]


@dataclass(frozen=True, slots=True)
class JsonAt:
    """A JSON object or array of a known shape."""

    shape: Shape
    next: int

    @property
    def first(self) -> str:
        """The character that it begins with."""
        return "[" if isinstance(self.shape, ArrayShape) else "{"


@dataclass(frozen=True, slots=True)
class ActionAt:
    """A call begins or ends here, or its name is known."""

    action: Literal["begin", "name", "end"]
    next: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class ForkAt:
    """Any of these may follow."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StopAt:
    """The turn may end."""


Instruction = TextAt | MarkAt | AheadAt | FreeAt | NameAt | ArgumentsAt | JsonAt | ActionAt | ForkAt | StopAt
Action = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Exit:
    """A mark at which free text may end: `text`, the prescribed text before it, and where it stands.

    With `first` it is one only where the text begins; with `ahead` it is not taken, as what follows begins with it.
    """

    text: str
    before: str
    at: int
    actions: tuple[Action, ...]
    first: bool = False
    ahead: bool = False

    @property
    def calls(self) -> bool:
        """Whether a call begins with it."""
        return any(action == "begin" for action, _ in self.actions)
