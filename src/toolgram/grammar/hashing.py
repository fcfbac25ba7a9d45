"""Values that remember their hash, and expressions also what else was found of them.

A frozen dataclass hashes all that is in it, however deep, each time it is asked. Expressions and types are asked at
every level of what they are a part of, which without this takes a quarter of the time from a schema to a grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

_Made = TypeVar("_Made")
_Hashed = TypeVar("_Hashed", bound="HashedOnce")
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def entity(cls: type[_Made]) -> type[_Made]:
    """Decorates an immutable class of which thousands are made: a dataclass, each of them equal to itself alone.

    Only the type checker sees to it that no field is changed: what does so itself takes twice as long to make.
    """
    return dataclass(slots=True, eq=False)(cls)


@entity
class HashedOnce:
    """What a class must derive from, so that there is a place for its hash (`value`), and for what is found of it
    (`found_once`). What is asked most has places of its own: of what kinds and how large it is, as one number, and what
    is in it (of expressions `walk` finds these, of a tree of lexemes `tree`).

    That is not compared, nor pickled, since hashes of texts differ between processes.
    """

    known_hash: int | None = field(init=False, default=None, compare=False, repr=False)
    known_facts: dict[Callable[..., object], Any] | None = field(init=False, default=None, compare=False, repr=False)
    known_look: int | None = field(init=False, default=None, compare=False, repr=False)
    known_inside: tuple[Any, ...] | None = field(init=False, default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[_Made]) -> type[_Made]:
    """As `entity`, where those of equal fields are equal; if it derives from HashedOnce, its hash is computed once."""
    made = dataclass(slots=True, unsafe_hash="__hash__" not in vars(cls))(cls)
    return _hashed_once(made) if issubclass(made, HashedOnce) else made


def _hashed_once(cls: type[_Hashed]) -> type[_Hashed]:
    compute: Any = cls.__hash__

    def remembered(self: _Hashed) -> int:
        known = self.known_hash
        if known is None:
            known = compute(self)
            object.__setattr__(self, "known_hash", known)
        return known

    cls.__hash__ = remembered
    return cls


def found_once(find: Callable[[_Given], _Found]) -> Callable[[_Given], _Found]:
    """Decorates a function of one expression: what it finds is kept with the expression, and goes when that goes."""

    def found(expr: _Given) -> _Found:
        if not isinstance(expr, HashedOnce):
            return find(expr)
        facts = expr.known_facts
        if facts is None:
            facts = facts_of(expr)
        elif found in facts:
            return facts[found]
        facts[found] = result = find(expr)  # under a function of its own: a method's object is no part of expressions
        return result

    return found


def kept_with(expr: object, make: Callable[..., _Found], *given: object) -> _Found:
    """What `make` makes of what is given, kept with an expression for as long as the same is given."""
    if not isinstance(expr, HashedOnce):
        return make(*given)
    facts = facts_of(expr)
    known: tuple[tuple[object, ...], _Found] | None = facts.get(make)
    if known is None or known[0] != given:
        facts[make] = known = given, make(*given)
    return known[1]


def facts_of(expr: HashedOnce) -> dict[Callable[..., object], Any]:
    """What was found of an expression, by the function that found it."""
    facts = expr.known_facts
    if facts is None:
        facts = {}
        object.__setattr__(expr, "known_facts", facts)
    return facts
