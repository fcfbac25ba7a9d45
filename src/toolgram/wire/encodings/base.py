"""What an encoding is: one way to write the arguments of a call. Each has a file of its own beside this one.

A new encoding is a new file: a frozen value that derives from `AnyEncoding`, with its reader, its grammar and its
writer. Nobody outside asks which of them an encoding is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolgram.errors import Relaxation
from toolgram.grammar.ir import Expr
from toolgram.schema.types import Canonical
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import Sink, Status

Spell = Callable[[Any], str | None]
"""A value as a grammar spells it; None where it is not valid."""


class ArgumentsReader(Protocol):
    """Reads the arguments of one call as they arrive, and hands them on as JSON text."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read; FAILED where the text is not in this encoding."""
        ...

    def close_at_end(self, rest: str) -> bool:
        """The text is over, `rest` was not taken: hand on their end if nothing more of them is due, and say so."""
        ...

    def cut(self, rest: str) -> None:
        """The text is over, `rest` was not taken: hand on what is there of a key or value, but no half marks."""
        ...


@dataclass(frozen=True)
class ToolArguments:
    """The arguments of one tool in an encoding: `expr` over `rules`, and what of their schema these do not enforce.

    `spell` writes values as sentences of `expr`; `capped` says that a number without a bound was given one in digits.
    """

    expr: Expr
    spell: Spell
    rules: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    relaxations: Sequence[Relaxation] = ()
    capped: bool = False


class AnyEncoding(ABC):
    """How the arguments of a call are written: what all encodings can do, and what is known of each."""

    __slots__ = ()
    name: str

    @property
    @abstractmethod
    def notation(self) -> Notation:
        """How the values are written that are no tags of the encoding; of JSON, that is all of them."""

    @property
    @abstractmethod
    def opener(self) -> str:
        """The text with which arguments begin, where there are any."""

    @property
    def may_be_empty(self) -> bool:
        """Whether no arguments are no text at all."""
        return False

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags and quotes that no other encoding has, by which a prompt that asks for this one is known."""
        return ()

    @property
    def shows_types(self) -> bool:
        """Whether the text alone tells "1" from 1; else a reader goes by the tool's schema."""
        return False

    @abstractmethod
    def reader(self, expected: Expected, sink: Sink) -> ArgumentsReader:
        """What reads the arguments of a call into a sink, as JSON text; `expected` is what the tool takes."""

    @abstractmethod
    def arguments(
        self, canonical: Canonical, spelling: Spelling, names: RuleNames, hint: str, *, exact: bool
    ) -> ToolArguments:
        """The arguments of a tool, which are of a canonical type; new rules are named like the hint.

        Where they need not be `exact`, a bound may be enforced loosely, which is reported.

        Raises TooLarge where the grammar would have too many rules.
        """

    @abstractmethod
    def write(self, value: Any, spelling: Spelling) -> str:
        """Arguments of the history, whatever their schema was. Raises ValueError for what is no JSON value."""

    def respelled(self, change: Callable[[str], str]) -> AnyEncoding:
        """The encoding with its tags so changed; itself where it has none."""
        del change
        return self

    def is_shown_in(self, text: str) -> bool:
        """Whether a text has an argument in the tags of the encoding, white space included."""
        del text
        return False

    def or_spaced(self, other: AnyEncoding) -> AnyEncoding:
        """The encoding whose grammar takes the white space of the other, the same but for that, in its tags as well."""
        del other
        return self

    def response_template(self, pattern: Callable[[str], str]) -> dict[str, Any] | None:
        """What the field of a `response_template` of transformers says of such arguments; None where it cannot.

        `pattern` makes the regular expression of a text.
        """
        del pattern
        return None
