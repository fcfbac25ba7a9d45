"""The keywords of JSON Schema that choose between schemas, as types: oneOf, not, if, and what depends on a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Protocol, cast

from toolgram.schema import types
from toolgram.schema.reading import keywords
from toolgram.schema.reading.by_type import Normalizer, NotYet
from toolgram.schema.reading.references import Place
from toolgram.schema.types import ANY, EVERY_KIND, NEVER, Property, TooLarge, Type, arrays
from toolgram.schema.types.complement import complement, subtract
from toolgram.schema.types.intersect import disjoint

OVERLAP = "two of its branches may hold at once"
_MAX_CASES = 32  # of one branch without the others
_NO_COMPLEMENT = "the complement is not a type that can be said"


class Conditional(Normalizer, Protocol):
    """What these keywords need besides.

    `one_ofs` are the branches that have yet to be found disjoint, `overlapping` the places of those that are not.
    `definition` raises NotYet.
    """

    overlapping: frozenset[str]

    one_ofs: list[tuple[Place, list[Type]]]

    def soon(self, place: Place, keyword: str, make: Callable[[], Type], otherwise: Type = ANY) -> Type:
        """What `make` makes, as soon as there are the definitions that it needs."""
        ...

    def definition(self, key: str) -> Type:
        """What a reference refers to."""
        ...

    def is_certain(self, places: Iterable[Place], keys: Iterable[str]) -> bool:
        """Whether nothing of these places and definitions was relaxed."""
        ...


def parts(n: Conditional, place: Place, schema: keywords.Schema) -> Iterator[tuple[str, Type]]:
    """The types that a value must be of, each with the keyword that says so."""
    if "not" in schema:
        inner = n.schema(place.child("not"))
        yield "not", n.soon(place, "not", lambda: _not(n, place, inner))
    if "if" in schema and ("then" in schema or "else" in schema):
        condition, then, otherwise = (
            n.schema(place.child(each)) if each in schema else ANY for each in ("if", "then", "else")
        )
        yield "if", n.soon(place, "if", lambda: _if(n, place, condition, then, otherwise))
    if "contains" in schema:
        inside = n.schema(place.child("contains"))
        yield "contains", n.soon(place, "contains", lambda: _contains(n, place, schema, inside))
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        for key, needed in schema.get(keyword, {}).items():
            if needed not in (True, [], {}):
                yield keyword, _depends(n, place, keyword, key, needed)


def _not(n: Conditional, place: Place, inner: Type) -> Type:
    try:
        return opposite(n, place.child("not"), inner)
    except TooLarge:
        n.unsupported(place.pointer, "not", _NO_COMPLEMENT, "the value may be of that type")
        return ANY


def opposite(n: Conditional, place: Place, kind: Type) -> Type:
    """The complement of the type of the schema at `place`. Raises TooLarge also where that was relaxed."""
    followed: set[str] = set()

    def resolve(key: str) -> Type:
        followed.add(key)
        return n.definition(key)

    result = complement(kind, resolve)
    if not n.is_certain([place], followed):
        raise TooLarge
    return result


def _contains(n: Conditional, place: Place, schema: keywords.Schema, inside: Type) -> Type:
    """Arrays with so many items of a type, and values of other kinds."""
    low, high = int(schema.get("minContains", 1)), schema.get("maxContains")
    if low == 0 and high is None:
        return ANY
    try:
        outside = opposite(n, place.child("contains"), inside)
    except TooLarge:
        outside = None
    try:
        counted = arrays.containing(inside, outside, low, None if high is None else int(high))
    except TooLarge:
        n.unsupported(place.pointer, "contains", _NO_COMPLEMENT, "nothing need be contained")
        return ANY
    return types.union([counted, *(kind for kind in EVERY_KIND.options if not isinstance(kind, types.Array))])


def _if(n: Conditional, place: Place, condition: Type, then: Type, otherwise: Type) -> Type:
    try:
        unmet = opposite(n, place.child("if"), condition)
    except TooLarge:
        n.unsupported(place.pointer, "if", _NO_COMPLEMENT, "neither branch is required")
        return ANY
    return types.union(
        [
            n.meet(place, [("if", condition), ("then", then)]),
            n.meet(place, [("if", unmet), ("else", otherwise)]),
        ]
    )


def _depends(n: Conditional, place: Place, keyword: str, key: str, needed: object) -> Type:
    """Values that are no object, objects without the key, and objects with it and with what it needs."""
    n.check_text(place, keyword, key)
    others = [kind for kind in EVERY_KIND.options if not isinstance(kind, types.Object)]
    without = types.object_type([Property(key, NEVER, required=False, pointer=place.pointer)], ANY, silent=True)
    names = [key, *cast("list[str]", needed)] if isinstance(needed, list) else [key]
    for name in names:
        n.check_text(place, keyword, name)
    listed = [Property(name, ANY, required=True, pointer=place.pointer) for name in dict.fromkeys(names)]
    having = types.object_type(listed, ANY, silent=True)
    if not isinstance(needed, list):
        having = n.meet(place, [(keyword, having), (keyword, n.schema(place.child(keyword, key)))])
    return types.union([without, having, *others])


def one_of(n: Conditional, place: Place, branches: list[Type], own: Type) -> Type:
    """The values of just one of the branches, or only those of them that are of the schema's `own` type."""
    if len(branches) == 1:
        return branches[0]
    if place.pointer in n.overlapping:
        return n.soon(place, "oneOf", lambda: _just_one(n, place, branches, own), types.union(branches))
    try:
        if are_disjoint(n, branches):
            return types.union(branches)
        return _just_one(n, place, branches, own)
    except NotYet:
        n.one_ofs.append((place, branches))
        return types.union(branches)
    except TooLarge:
        n.unsupported(place.pointer, "oneOf", OVERLAP, "any of them, or several")
        return types.union(branches)


def _just_one(n: Conditional, place: Place, branches: list[Type], own: Type) -> Type:
    options: list[Type] = []
    met = [n.meet(place, [("type", own), ("oneOf", branch)]) for branch in branches]
    for index, branch in enumerate(met):
        option = branch
        for other, kind in enumerate(met):
            if other != index and not disjoint(branch, kind, n.definition):
                option = _less(n, place.child("oneOf", other), option, kind)
                if isinstance(option, types.Union) and len(option.options) > _MAX_CASES:
                    raise TooLarge
        options.append(option)
    return types.union(options)


def _less(n: Conditional, place: Place, kind: Type, other: Type) -> Type:
    """The values that are not of the other type, which stands at `place`. Raises TooLarge also where it was relaxed."""
    followed: set[str] = set()

    def resolve(key: str) -> Type:
        followed.add(key)
        return n.definition(key)

    result = subtract(kind, other, resolve)
    if not n.is_certain([place], followed):
        raise TooLarge
    return result


def are_disjoint(n: Conditional, branches: list[Type]) -> bool:
    """Whether no value is of two of the branches. Raises NotYet."""
    return all(disjoint(left, right, n.definition) for left, right in combinations(branches, 2))
