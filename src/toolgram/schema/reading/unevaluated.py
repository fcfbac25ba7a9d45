"""unevaluatedProperties and unevaluatedItems: what may stand in the place of keys and items that nothing spoke of.

The more branches of a schema hold, the more is spoken of, and the less the keyword asks. So it is enough to go through
the ways in which branches are known to hold: a value for which others hold too is one of a further way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.regex import pattern
from toolgram.schema import types
from toolgram.schema.reading import by_type as kinds
from toolgram.schema.reading import conditions
from toolgram.schema.reading.conditions import Conditional
from toolgram.schema.reading.keywords import Schema, known
from toolgram.schema.reading.references import Place
from toolgram.schema.types import ANY, EVERY_KIND, NEVER, Property, TooLarge, Type
from toolgram.work import spend

KEYS, ITEMS = "unevaluatedProperties", "unevaluatedItems"
_MAX_WAYS = 64


@dataclass(frozen=True, slots=True)
class Seen:
    """The keys, or the items, that were spoken of: all of them, or by name and language, or by index and type."""

    everything: bool = False
    names: tuple[str, ...] = ()
    languages: tuple[Automaton, ...] = ()
    first: int = 0
    items: tuple[Type, ...] = ()

    def __or__(self, other: Seen) -> Seen:
        if self.everything or other.everything:
            return _EVERYTHING
        return Seen(
            names=tuple(sorted({*self.names, *other.names})),
            languages=tuple(dict.fromkeys((*self.languages, *other.languages))),
            first=max(self.first, other.first),
            items=tuple(dict.fromkeys((*self.items, *other.items))),
        )


_NOTHING, _EVERYTHING = Seen(), Seen(everything=True)
_Way = tuple[Type, Seen]
"""Values of a type, of which so much was spoken of at least."""
_UNKNOWN: _Way = ANY, _NOTHING


def others(n: Conditional, place: Place, schema: Schema, keyword: str) -> Type:
    """The type that the keyword, beside what the schema says otherwise, demands. Raises NotYet and TooLarge."""
    rest = n.schema(place.child(keyword))
    ways = _Survey(n, keyword).ways(place, schema, ())
    return types.union(n.meet(place, [(keyword, kind), (keyword, _where(seen, rest, keyword))]) for kind, seen in ways)


def _where(seen: Seen, rest: Type, keyword: str) -> Type:
    """The values whose keys, or items, are of the type `rest` as far as they were not spoken of."""
    if seen.everything:
        return ANY
    if keyword == ITEMS:
        limited = types.array([ANY] * seen.first, types.union([rest, *seen.items]))
    else:
        cells = kinds.cells((language, ANY) for language in seen.languages)
        keys = [types.Keys(automaton, ANY if values else rest) for automaton, values in cells]
        listed = [Property(name, ANY, required=False) for name in seen.names]
        limited = types.object_type(listed, NEVER if seen.languages else rest, keys=keys if seen.languages else ())
    kind = types.Array if keyword == ITEMS else types.Object
    return types.union([limited, *(option for option in EVERY_KIND.options if not isinstance(option, kind))])


@dataclass(frozen=True, slots=True)
class _Survey:
    """Goes through what applies to a value, for one of the two keywords."""

    n: Conditional
    keyword: str

    def ways(self, place: Place, schema: Schema, above: tuple[int, ...]) -> list[_Way]:
        """The ways in which the branches of a schema hold, `above` being the schemas that lead here."""
        found: list[_Way] = [(ANY, self._own(place, schema))]
        for applied in self._applied(place, schema, (*above, id(place.schema))):
            found = self._both(place, found, applied)
        return found

    def _inner(self, place: Place | None, above: tuple[int, ...]) -> list[_Way]:
        """The same of a schema that applies to the same value; one that cannot be had may speak of everything."""
        if place is None:
            return [(ANY, _EVERYTHING)]
        fields = place.fields
        if fields is None:
            return [_UNKNOWN]
        if id(fields) in above:
            raise TooLarge
        schema = known(fields, place.draft)
        return [(ANY, _EVERYTHING)] if self.keyword in schema else self.ways(place, schema, above)

    def _both(self, place: Place, left: Sequence[_Way], right: Sequence[_Way]) -> list[_Way]:
        """The ways in which two things hold together."""
        kinds_of: dict[Seen, list[Type]] = {}
        is_optional = _UNKNOWN in right
        spend(len(left) * len(right))
        for (a, seen), (b, also) in product(left, right):
            joined = seen | also
            if is_optional and joined == seen and (b, also) != _UNKNOWN:
                continue  # no more is spoken of than without it
            kinds_of.setdefault(joined, []).append(self.n.meet(place, [(self.keyword, a), (self.keyword, b)]))
        if len(kinds_of) > _MAX_WAYS:
            raise TooLarge
        return [(types.union(kinds), seen) for seen, kinds in kinds_of.items()]

    def _own(self, place: Place, schema: Schema) -> Seen:
        """What the keywords of the schema itself speak of."""
        if self.keyword == KEYS:
            try:
                languages = tuple(map(pattern, schema.get("patternProperties", ())))
            except kinds.BEYOND:  # which is refused, or reported, where it stands
                return _EVERYTHING
            everything = "additionalProperties" in schema
            return Seen(everything, names=tuple(schema.get("properties", ())), languages=languages)
        listed = schema.get("items", ())
        everything = "items" in schema and (not isinstance(listed, list) or "additionalItems" in schema)
        if everything:
            return _EVERYTHING
        contained = "contains" in schema and place.draft != 2019
        items = (self.n.schema(place.child("contains")),) if contained else ()
        return Seen(first=len(schema.get("prefixItems", listed)), items=items)

    def _applied(self, place: Place, schema: Schema, above: tuple[int, ...]) -> Iterator[list[_Way]]:
        """For each keyword that applies schemas to the same value, the ways in which they hold."""

        def ways(*path: str | int) -> list[_Way]:
            return self._inner(place.child(*path), above)

        def holding(*path: str | int) -> list[_Way]:
            return self._both(place, [(self.n.schema(place.child(*path)), _NOTHING)], ways(*path))

        for reference in ("$ref", "$dynamicRef", "$recursiveRef"):
            if reference in schema:
                yield self._inner(place.refer(reference, schema[reference]), above)
        for index in range(len(schema.get("allOf", ()))):
            yield ways("allOf", index)
        if "anyOf" in schema:
            yield from self._any_of([holding("anyOf", index) for index in range(len(schema["anyOf"]))])
        if "oneOf" in schema:
            yield [way for index in range(len(schema["oneOf"])) for way in holding("oneOf", index)]
        if "if" in schema and not ("then" in schema or "else" in schema):
            yield [_UNKNOWN, *holding("if")]
        elif "if" in schema:
            met = holding("if")
            inner = place.child("if")
            otherwise = [(conditions.opposite(self.n, inner, self.n.schema(inner)), _NOTHING)]
            yield [
                *(self._both(place, met, holding("then")) if "then" in schema else met),
                *(self._both(place, otherwise, holding("else")) if "else" in schema else otherwise),
            ]
        for key in schema.get("dependentSchemas", ()):
            having = types.object_type([Property(key, ANY, required=True)], ANY)
            yield [_UNKNOWN, *self._both(place, [(having, _NOTHING)], ways("dependentSchemas", key))]

    def _any_of(self, branches: list[list[_Way]]) -> Iterator[list[_Way]]:
        """Each branch that speaks of something may hold, and with it others, unless no value is of both."""
        speaking = [branch for branch in branches if any(seen != _NOTHING for _, seen in branch)]
        if conditions.are_disjoint(self.n, [types.union(kind for kind, _ in branch) for branch in speaking]):
            yield [_UNKNOWN, *(way for branch in speaking for way in branch)]
        else:
            yield from ([_UNKNOWN, *branch] for branch in speaking)
