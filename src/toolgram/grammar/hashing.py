"""Values that remember their hash, and expressions also what else was found of them.

A frozen dataclass hashes all that is in it, however deep, each time it is asked. Expressions and types are asked at
every level of what they are a part of, which without this takes a quarter of the time from a schema to a grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Value = TypeVar("_Value", bound="HashedOnce")
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


class HashedOnce:
    """What a class must derive from, so that `hash_once` has a place for the hash, and `found_once` for what is found;
    `walk.names_in` and `walk.kinds_in`, which are asked most, have places of their own.

    No fields: they are not compared, nor pickled, since hashes of texts differ between processes.
    """

    __slots__ = ("_facts", "_hash", "_kinds", "_names")
    _facts: dict[Callable[..., object], object]
    _hash: int
    _kinds: int
    _names: tuple[str, ...]


def hash_once(cls: type[_Value]) -> type[_Value]:
    """Decorates an immutable class, so that the hash of each value is computed once, when it is first asked for."""
    compute: Any = cls.__hash__

    def remembered(self: _Value) -> int:
        known = getattr(self, "_hash", None)  # half of the time of catching an AttributeError
        if known is None:
            known = compute(self)
            object.__setattr__(self, "_hash", known)  # the dataclass is frozen
        return known

    cls.__hash__ = remembered
    return cls


def found_once(find: Callable[[_Given], _Found]) -> Callable[[_Given], _Found]:
    """Decorates a function of one expression: what it finds is kept with the expression, and goes when that goes."""

    def found(expr: _Given) -> _Found:
        if not isinstance(expr, HashedOnce):
            return find(expr)
        facts = facts_of(expr)
        if find not in facts:
            facts[find] = find(expr)
        return facts[find]

    return found


def facts_of(expr: HashedOnce) -> dict[Callable[..., object], Any]:
    """What was found of an expression, by the function that found it."""
    facts: dict[Callable[..., object], Any] | None = getattr(expr, "_facts", None)
    if facts is None:
        facts = {}
        object.__setattr__(expr, "_facts", facts)
    return facts
