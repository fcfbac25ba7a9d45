"""Values that remember their hash, and expressions also the names in them.

A frozen dataclass hashes all that is in it, however deep, each time it is asked. Expressions and types are asked at
every level of what they are a part of, which without this takes a quarter of the time from a schema to a grammar.
"""

from __future__ import annotations

from typing import Any, TypeVar

_Value = TypeVar("_Value", bound="HashedOnce")


class HashedOnce:
    """What a class must derive from, so that `hash_once` has a place for the hash, and `walk.names_in` one for names.

    No fields: they are not compared, nor pickled, since hashes of texts differ between processes.
    """

    __slots__ = ("_hash", "_names")
    _hash: int
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
