"""What a grammar in Lark says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """A string, a range of characters or a regular expression, as a regular expression of ECMA-262."""

    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """A rule, or in capitals a terminal."""

    name: str
    at: int
    """The offset where it is used."""

    @property
    def is_terminal(self) -> bool:
        """Whether what it names is matched without what is ignored in between."""
        return self.name.isupper()


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of these."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`item`, at least `low` times and at most `high` times (None: any number)."""

    item: Node
    low: int
    high: int | None


Node = Pattern | Name | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class LarkGrammar:
    """The definitions by their names, and what may stand between any two terminals of a rule."""

    definitions: Mapping[str, Node]
    ignored: tuple[Node, ...]
