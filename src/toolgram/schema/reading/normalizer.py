"""The schemas of one document to types, one by one; what they refer to is put off until all are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from toolgram.errors import InvalidSchema, Relaxation, UnsupportedSchema
from toolgram.schema import types
from toolgram.schema.reading import by_type, conditions, keywords, unevaluated
from toolgram.schema.reading.by_type import NotYet
from toolgram.schema.reading.references import Place
from toolgram.schema.types import ANY, BOOLEAN, NEVER, NULL, Property, Reference, Type, arrays
from toolgram.schema.types.intersect import disjoint, intersect
from toolgram.schema.writing.json_style import writable
from toolgram.schema.writing.notation import Encoding
from toolgram.schema.writing.number_style import decimal_of

MAX_DEPTH = 50
MAX_SIZE = 120_000
"""Of a document: its values count one each, its schemas four."""
_BARE = types.Object((), ANY, silent=True)


@dataclass(slots=True)
class Normalizer:
    """One document on its way from schemas to types.

    `schema` gives the type of a place in the document, and `settle` then makes the definitions that were referred to;
    both collect `definitions` by key, `relaxations` (in exact mode they raise UnsupportedSchema instead), and in
    `found_overlapping` the branches of a `oneOf` that have to be cut apart, for which the document is read once more.
    """

    exact: bool
    encoding: Encoding
    overlapping: frozenset[str] = frozenset()
    found_overlapping: set[str] = field(default_factory=set[str])
    definitions: dict[str, Type] = field(default_factory=dict[str, Type])
    relaxations: dict[Relaxation, None] = field(default_factory=dict[Relaxation, None])
    _waiting: dict[str, Callable[[], Type]] = field(default_factory=dict[str, Callable[[], Type]])
    _keys: dict[tuple[int, ...], str] = field(default_factory=dict[tuple[int, ...], str])
    _pointers: dict[str, str] = field(default_factory=dict[str, str])
    _referring: dict[str, str] = field(default_factory=dict[str, str])  # the keyword that led to a definition last
    one_ofs: list[tuple[Place, list[Type]]] = field(default_factory=list[tuple[Place, list[Type]]])
    _depth: int = 0
    _size: int = 0
    _making: int = 0
    _settling: bool = False

    def settle(self) -> None:
        """Makes what was put off: the definitions, then the checks that need them."""
        self._settling = True
        while self._waiting:
            self.definition(next(iter(self._waiting)))
        for place, branches in self.one_ofs:
            try:
                apart = conditions.are_disjoint(self, branches)
            except types.TooLarge:
                apart = False
            if not apart:
                self.found_overlapping.add(place.pointer)
        self._check_grounded()

    def definition(self, key: str) -> Type:
        """The definition under this key, made now if need be; raises NotYet where it or what it needs is being made."""
        if key not in self.definitions:
            if not self._settling or key not in self._waiting:
                raise NotYet
            make = self._waiting.pop(key)
            self._making += 1
            try:
                self.definitions[key] = self._deeper(self._pointers[key], make)
            except NotYet:
                self._waiting[key] = make
                raise
            finally:
                self._making -= 1
        return self.definitions[key]

    def counted(self, kind: Type) -> Type:
        """The type, where what has to be compared or counted can be."""
        if isinstance(kind, types.Array | types.Items) and kind.unique is not None:
            try:
                return arrays.distinct(kind, self.definition, lambda a, b: disjoint(a, b, self.definition))
            except types.TooLarge:
                reason = "for items that are not finitely many"
                self.unsupported(kind.unique, "uniqueItems", reason, "items may be equal")
                return replace(kind, unique=None)
        if isinstance(kind, types.Object) and (kind.rest != NEVER or kind.keys):
            least = sum(item.required for item in kind.properties) + 1
            if kind.min > least:
                reason = "whether keys that are not declared repeat is not counted"
                self.unsupported(kind.counted, "minProperties", reason, "one key more than the required ones")
                return replace(kind, min=least)
        return kind

    def _check_grounded(self) -> None:
        grounded: set[str] = set()
        circular: list[str] = []
        for key in reversed(self.definitions):  # what is referred to mostly comes later, and need not be walked again
            if self._leads_to_itself(key, grounded):
                circular.append(key)
            else:
                grounded.add(key)
        if circular:
            first = circular[-1]
            keyword = self._referring.get(first, "$ref")
            raise InvalidSchema(self._pointers[first], keyword, "refers to itself and to nothing else")

    def _leads_to_itself(self, key: str, grounded: set[str]) -> bool:
        seen: set[str] = set()
        ahead = [self.definitions[key]]
        while ahead:
            match ahead.pop():
                case types.Union(options):
                    ahead.extend(options)
                case Reference(other) if other == key:
                    return True
                case Reference(other) if other not in seen and other not in grounded:
                    seen.add(other)
                    ahead.append(self.definitions[other])
                case _:
                    pass
        return False

    def _deeper(self, pointer: str, make: Callable[[], Type]) -> Type:
        """What `make` makes, one level down."""
        if self._depth >= MAX_DEPTH:
            self.unsupported(pointer, "nesting", f"more than {MAX_DEPTH} schemas inside each other", "any value")
            return ANY
        self._depth += 1
        try:
            return make()
        finally:
            self._depth -= 1

    def unsupported(self, pointer: str, keyword: str, reason: str, enforced: str, *, stricter: bool = False) -> None:
        """Refuses the keyword, or in relaxed mode notes what is enforced instead."""
        if self.exact:
            raise UnsupportedSchema(pointer, keyword, reason)
        kind = "stricter" if stricter else "not enforced"
        self.relaxations[Relaxation(pointer, keyword, enforced, kind)] = None

    def _grow(self, place: Place, keyword: str, size: int) -> None:
        """Raises UnsupportedSchema, in any mode, where there is more than can be a grammar."""
        self._size += size
        if self._size > MAX_SIZE:
            raise UnsupportedSchema(place.pointer, keyword, "the schema has too many parts for a grammar")

    # Schemas

    def schema(self, place: Place) -> Type:
        """The type of a schema."""
        self._grow(place, "size", 4)
        fields = place.fields
        if isinstance(place.schema, bool):
            return ANY if place.schema else NEVER
        if fields is None:
            raise InvalidSchema(place.pointer, "", "a schema is an object or a boolean")
        return self._deeper(place.pointer, lambda: self._object_schema(place, fields))

    def _object_schema(self, place: Place, schema: keywords.Schema) -> Type:
        schema = keywords.known(schema, place.draft)
        keywords.check_shapes(schema, place.pointer)
        if not place.strings and not keywords.BESIDES_KINDS.isdisjoint(schema) and place.states_strings():
            place = replace(place, strings=True)
        if "$ref" in schema and place.draft in (4, 6, 7):
            return self._reference(place, "$ref", schema["$ref"])  # where siblings of $ref say nothing
        if keywords.BESIDES_KINDS.isdisjoint(schema):
            made = self._by_kind(place, schema)
        else:
            made = self.meet(place, list(self._parts(place, schema)))
        return made if self.exact or schema.get("nullable") is not True else self._or_null(place, schema, made)

    def _or_null(self, place: Place, schema: keywords.Schema, made: Type) -> Type:
        """The type with null, whatever else the schema says: generators write `nullable` beside `allOf` and `enum`."""
        stated = schema.get("type", ())
        if made == ANY or "null" in ([stated] if isinstance(stated, str) else stated):
            return made
        enforced = "null is a value too, as OpenAPI 3.0 has it"
        self.relaxations[Relaxation(place.pointer, "nullable", enforced)] = None
        return types.union([made, NULL])

    def _parts(self, place: Place, schema: keywords.Schema) -> Iterator[tuple[str, Type]]:
        """The types that a value must be of, all of them, each with the keyword that says so."""
        if "const" in schema:
            yield "const", self._constant(place, "const", schema["const"])
        if "enum" in schema:
            yield "enum", types.union(self._constant(place, "enum", value) for value in schema["enum"])
        own = self._by_kind(place, schema)
        yield "type", own
        if "$ref" in schema:
            yield "$ref", self._reference(place, "$ref", schema["$ref"])
        for index in range(len(schema.get("allOf", ()))):
            yield "allOf", self.schema(place.child("allOf", index))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = [self._branch(place.child(keyword, n), schema) for n in range(len(schema[keyword]))]
                yield (
                    keyword,
                    conditions.one_of(self, place, branches, own) if keyword == "oneOf" else types.union(branches),
                )
        yield from conditions.parts(self, place, schema)
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                yield keyword, self._reference(place, keyword, schema[keyword])
        for keyword in keywords.UNEVALUATED:
            if schema.get(keyword, True) not in (True, {}) and keywords.applies_others(schema):
                yield keyword, self.soon(place, keyword, partial(unevaluated.others, self, place, schema, keyword))

    def _branch(self, place: Place, schema: keywords.Schema) -> Type:
        """One of the schemas to choose from; OpenAPI's `discriminator` has its key in each.

        Generators leave it out of `required` where it has a default, and those who read the value refuse it then.
        """
        branch, discriminator = self.schema(place), schema.get("discriminator")
        name = cast("dict[str, object]", discriminator).get("propertyName") if isinstance(discriminator, dict) else None
        if self.exact or not isinstance(name, str) or not place.may_lack(name):
            return branch
        enforced = f"the key {name!r} is there, as OpenAPI has it"
        self.relaxations[Relaxation(place.pointer, "discriminator", enforced, "stricter")] = None
        required = types.object_type([Property(name, ANY, required=True, pointer=place.pointer)], ANY, silent=True)
        return self.meet(place, [("oneOf", branch), ("discriminator", required)])

    def meet(self, place: Place, stated: list[tuple[str, Type]]) -> Type:
        """The intersection, put off until there are the definitions that it needs."""
        parts = [(keyword, part) for keyword, part in stated if not isinstance(part, types.Anything)]

        def meet() -> Type:
            result: Type = ANY
            for keyword, part in parts:
                try:
                    result = intersect(result, part, self.definition)
                except types.TooLarge:
                    reason = "what has to hold with it is recursive too, or the cases are too many"
                    self.unsupported(place.pointer, keyword, reason, "what has to hold with it")
            return result

        if len(parts) == 1:
            return parts[0][1]
        return self.soon(place, "allOf", meet)

    def soon(self, place: Place, keyword: str, make: Callable[[], Type], otherwise: Type = ANY) -> Type:
        """What `make` makes, put off until there are the definitions that it needs."""

        def refused() -> Type:
            reason = "it depends on itself, or there are too many cases"
            enforced = "any of them, or several" if keyword == "oneOf" else "any value of that kind"
            self.unsupported(place.pointer, keyword, reason, enforced)
            return otherwise

        def limited() -> Type:
            try:
                return make()
            except (types.TooLarge, NotYet) as error:
                if isinstance(error, NotYet) and self._making > 1:
                    raise  # for what needs this: perhaps it can be made when that is
                return refused()

        try:
            return make()
        except NotYet:
            return self._later(f"{place.pointer}+", place.pointer, limited)
        except types.TooLarge:
            return refused()

    def is_certain(self, places: Iterable[Place], keys: Iterable[str]) -> bool:
        """Whether nothing of these places and definitions was relaxed."""
        doubtful = {each.pointer for each in self.relaxations}
        within = [*(place.pointer for place in places), *(self._pointers[key] for key in keys)]
        return not any(one == pointer or one.startswith(f"{pointer}/") for one in doubtful for pointer in within)

    def _later(self, hint: str, pointer: str, make: Callable[[], Type]) -> Reference:
        key, count = hint, 1
        while key in self._pointers:
            count += 1
            key = f"{hint}-{count}"
        self._pointers[key] = pointer
        self._waiting[key] = make
        return Reference(key)

    def _reference(self, place: Place, keyword: str, reference: str) -> Type:
        target = place.refer(keyword, reference)
        if target is None:
            self.unsupported(place.pointer, keyword, f"there is no document for {reference!r}", "any value")
            return ANY
        if isinstance(target.schema, bool):
            return self.schema(target)
        identity = (id(target.schema), target.strings, *(id(document.schema) for document in target.scope or ()))
        known = self._keys.get(identity)
        if known is not None:
            self._referring[known] = keyword
            return Reference(known)
        made = self._later(target.pointer, target.pointer, lambda: self.schema(target))
        self._keys[identity] = made.key
        self._referring[made.key] = keyword
        return made

    def _constant(self, place: Place, keyword: str, value: object) -> Type:
        """The type of one value."""
        self._grow(place, keyword, 1)
        if value is None:
            return NULL
        if isinstance(value, bool):
            return types.Word("true" if value else "false")
        if isinstance(value, int | float):
            if (number := decimal_of(value)) is None:
                raise InvalidSchema(place.pointer, keyword, "is not a finite number")
            return types.point(number)
        if isinstance(value, str):
            self.check_text(place, keyword, value)
            if not self.encoding.can_quote(value):
                reason = f"{value!r} holds the quote of a notation without escapes"
                self.unsupported(place.pointer, keyword, reason, "what cannot be written is left out", stricter=True)
            return types.Text(value)
        if isinstance(value, list | dict):
            members = cast("list[object] | dict[str, object]", value)
            return self._deeper(place.pointer, lambda: self._container(place, keyword, members))
        raise InvalidSchema(place.pointer, keyword, f"{type(value).__name__} is no JSON value")

    def _container(self, place: Place, keyword: str, value: list[object] | dict[str, object]) -> Type:
        if isinstance(value, list):
            items = [self._constant(place, keyword, item) for item in value]
            return types.array(items, NEVER, len(items), len(items))
        for name in value:
            self.check_text(place, keyword, name)
        members = ((name, self._constant(place, keyword, item)) for name, item in value.items())
        return types.object_type([Property(*member, required=True, pointer=place.pointer) for member in members], NEVER)

    def check_text(self, place: Place, keyword: str, text: object) -> None:
        if not isinstance(text, str):
            raise InvalidSchema(place.pointer, keyword, f"{text!r} is not a string")
        if not writable(text):
            reason = f"{text!a} holds half of a surrogate pair"
            self.unsupported(place.pointer, keyword, reason, "what cannot be written is left out", stricter=True)

    # Keywords by the kind of value that they speak of

    def _by_kind(self, place: Place, schema: keywords.Schema) -> Type:
        stated = schema.get("type")
        if stated is None and keywords.OF_ONE_KIND.isdisjoint(schema) and not (place.strings and "format" in schema):
            return ANY  # a format alone, where nothing says that a string is meant, is an annotation
        named: list[str] = [stated] if isinstance(stated, str) else list(stated or keywords.KINDS)
        if "number" in named and "integer" in named:
            named.remove("integer")
        options = [self._kind(place, schema, kind) for kind in named]
        return types.union(options)

    def _kind(self, place: Place, schema: keywords.Schema, kind: str) -> Type:
        match kind:
            case "null":
                return NULL
            case "boolean":
                return BOOLEAN
            case "string":
                return by_type.string(self, place, schema)
            case "array":
                return by_type.array(self, place, schema)
            case "object":
                keyword = next(
                    (each for each in ("patternProperties", "propertyNames") if each in schema), "properties"
                )
                return self.soon(place, keyword, lambda: by_type.objects(self, place, schema), _BARE)
            case _:
                return by_type.number(self, place, schema, integer=kind == "integer")
