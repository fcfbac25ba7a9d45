"""Canonical types: the sets of JSON values that schemas denote, as small frozen values.

Types are made with the functions in lower case, which keep them canonical: an impossible type is always `NEVER`.
A number is a decimal of any size and precision; 1 and 1.0 are the same number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Anything:
    """Every JSON value."""


@dataclass(frozen=True, slots=True)
class Word:
    """One of the values that JSON writes as a word: null, true or false."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this string."""

    value: str


@dataclass(frozen=True, slots=True)
class String:
    """Strings of `min` to `max` code points (None: of any length)."""

    min: int = 0
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers, or integers only, between bounds that belong to the set unless they are open (None: no bound)."""

    integer: bool = False
    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """Arrays of `min` to `max` items: the first ones of the types in `prefix`, the others of the type `rest`."""

    prefix: tuple[Type, ...]
    rest: Type
    min: int = 0
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Property:
    """A declared key of an object; where `value` is NEVER the key may not occur. `pointer` is where it is declared."""

    name: str
    value: Type
    required: bool
    pointer: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Object:
    """Objects with these properties and any other keys, whose values are of the type `rest`.

    `silent` says that the schema did not speak of other keys, so that a caller may close the object.
    """

    properties: tuple[Property, ...]
    rest: Type
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """The type that `definitions` holds under this key."""

    key: str


@dataclass(frozen=True, slots=True)
class Union:
    """The values of any of these types; with no options it is the empty type."""

    options: tuple[Type, ...]


Type = Anything | Word | Text | String | Number | Array | Object | Reference | Union

ANY = Anything()
NEVER = Union(())
NULL = Word("null")
BOOLEAN = Union((Word("true"), Word("false")))
EVERY_KIND = Union((Object((), ANY), Array((), ANY), String(), Number(), *BOOLEAN.options, NULL))


@dataclass(frozen=True, slots=True)
class Canonical:
    """A type with the definitions that its references point to."""

    root: Type
    definitions: Mapping[str, Type]

    def resolve(self, kind: Type) -> Type:
        """The type itself, or what it refers to."""
        while isinstance(kind, Reference):
            kind = self.definitions[kind.key]
        return kind


_MAX_CASES = 256


class TooLarge(Exception):
    """Two recursive types were to be intersected."""


def union(options: Iterable[Type]) -> Type:
    """The union, flattened, without repeats and without the options that a wider one makes idle."""
    flat: dict[Type, None] = {}
    for option in options:
        flat.update(dict.fromkeys(option.options if isinstance(option, Union) else (option,)))
    if ANY in flat:
        return ANY
    if Number() in flat:
        flat = {option: None for option in flat if not isinstance(option, Number) or option == Number()}
    if String() in flat:
        flat = {option: None for option in flat if not isinstance(option, Text)}
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def string(low: int, high: int | None) -> Type:
    """Strings of `low` to `high` code points."""
    if high is not None and high < low:
        return NEVER
    return Text("") if high == 0 else String(low, high)


def number(kind: Number) -> Type:
    """The same numbers with bounds that are integers and closed where only integers can occur."""
    low, high, low_open, high_open = kind.low, kind.high, kind.low_open, kind.high_open
    if low is not None and low == high and low == math.floor(low):
        kind = replace(kind, integer=True)
    if kind.integer:
        if low is not None:
            low = Decimal(math.floor(low) + 1 if low_open else math.ceil(low))
        if high is not None:
            high = Decimal(math.ceil(high) - 1 if high_open else math.floor(high))
        low_open = high_open = False
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return NEVER
    return Number(kind.integer, low, high, low_open, high_open)


def array(prefix: Iterable[Type], rest: Type, low: int = 0, high: int | None = None) -> Type:
    """Arrays; those parts of `prefix` and `rest` that cannot occur are cut off."""
    items = tuple(prefix)
    dead = next((index for index, item in enumerate(items) if item == NEVER), None)
    if dead is None and rest == NEVER:
        dead = len(items)
    if dead is not None:
        high = dead if high is None else min(high, dead)
    if high is not None:
        items = items[:high]
        rest = NEVER if high <= len(items) else rest
        if high < low:
            return NEVER
    return Array(items, rest, low, high)


def object_type(properties: Iterable[Property], rest: Type, *, silent: bool = False) -> Type:
    """Objects; a key that may not occur is kept in the list only where it must be kept out of the other keys."""
    kept: list[Property] = []
    for item in properties:
        if item.value == NEVER and item.required:
            return NEVER
        if item.value != NEVER or rest != NEVER:
            kept.append(item)
    return Object(tuple(kept), rest, silent)


def item_at(kind: Array, index: int) -> Type:
    """The type of the item at this index."""
    return kind.prefix[index] if index < len(kind.prefix) else kind.rest


def intersect(left: Type, right: Type, resolve: Callable[[str], Type], fuel: int = 32) -> Type:
    """The values of both types; keys in the order of `left`, then those that only `right` declares.

    Raises TooLarge where both are recursive, so that it would never end, or where their cases multiply.
    """
    if fuel == 0:
        raise TooLarge

    def both(a: Type, b: Type) -> Type:
        return intersect(a, b, resolve, fuel - 1)

    match left, right:
        case (Anything(), kind) | (kind, Anything()):
            return kind
        case Union(mine), Union(theirs):
            product = union(both(a, b) for a in mine for b in theirs)
            if isinstance(product, Union) and len(product.options) > max(len(mine), len(theirs), _MAX_CASES):
                raise TooLarge
            return product
        case Union(options), _:
            return union(both(option, right) for option in options)
        case _, Union(options):
            return union(both(left, option) for option in options)
        case (Reference(a), Reference(b)) if a == b:
            return left
        case Reference(key), _:
            return both(resolve(key), right)
        case _, Reference(key):
            return both(left, resolve(key))
        case (Text(value), String() as limits) | (String() as limits, Text(value)):
            fits = limits.min <= len(value) and (limits.max is None or len(value) <= limits.max)
            return Text(value) if fits else NEVER
        case String(), String():
            return string(max(left.min, right.min), _lower(left.max, right.max))
        case Number(), Number():
            return _both_numbers(left, right)
        case Array(), Array():
            size = max(len(left.prefix), len(right.prefix))
            prefix = [both(item_at(left, index), item_at(right, index)) for index in range(size)]
            return array(prefix, both(left.rest, right.rest), max(left.min, right.min), _lower(left.max, right.max))
        case Object(), Object():
            return _both_objects(left, right, both)
        case _:
            return left if left == right else NEVER


def _lower(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else min(left, right)


def _both_numbers(left: Number, right: Number) -> Type:
    lows = [(kind.low, kind.low_open) for kind in (left, right) if kind.low is not None]
    highs = [(kind.high, not kind.high_open) for kind in (left, right) if kind.high is not None]
    low, low_open = max(lows, default=(None, False))
    high, high_closed = min(highs, default=(None, True))
    return number(Number(left.integer or right.integer, low, high, low_open, not high_closed))


def _both_objects(left: Object, right: Object, both: Callable[[Type, Type], Type]) -> Type:
    mine = {item.name: item for item in left.properties}
    theirs = {item.name: item for item in right.properties}
    properties: list[Property] = []
    for name in mine | theirs:
        a, b = mine.get(name), theirs.get(name)
        value = both(a.value if a else left.rest, b.value if b else right.rest)
        declared = [item for item in (a, b) if item]
        required = any(item.required for item in declared)
        properties.append(Property(name, value, required, declared[0].pointer))
    return object_type(properties, both(left.rest, right.rest), silent=left.silent and right.silent)


def disjoint(left: Type, right: Type, resolve: Callable[[str], Type], fuel: int = 8) -> bool:
    """Whether it is certain that no value is of both types."""
    if fuel == 0:
        return False

    def apart(a: Type, b: Type) -> bool:
        return disjoint(a, b, resolve, fuel - 1)

    match left, right:
        case (Union(options), other) | (other, Union(options)):
            return all(apart(option, other) for option in options)
        case (Anything(), _) | (_, Anything()):
            return False
        case (Reference(key), other) | (other, Reference(key)):
            return apart(resolve(key), other)
        case Array(), Array():
            sure = range(max(left.min, right.min))
            return any(apart(item_at(left, index), item_at(right, index)) for index in sure) or (
                intersect(Array((), ANY, left.min, left.max), Array((), ANY, right.min, right.max), resolve) == NEVER
            )
        case Object(), Object():
            return _objects_apart(left, right, apart)
        case _:
            return intersect(left, right, resolve) == NEVER


def _objects_apart(left: Object, right: Object, apart: Callable[[Type, Type], bool]) -> bool:
    for one, other in ((left, right), (right, left)):
        theirs = {item.name: item.value for item in other.properties}
        for item in one.properties:
            if item.required and apart(item.value, theirs.get(item.name, other.rest)):
                return True
    return False


def rebuild(kind: Type, change: Callable[[Type], Type]) -> Type:
    """The type with `change` applied to each part of it, innermost first, and made canonical again."""
    match kind:
        case Union(options):
            kind = union(rebuild(option, change) for option in options)
        case Array(prefix, rest, low, high):
            kind = array([rebuild(item, change) for item in prefix], rebuild(rest, change), low, high)
        case Object(properties, rest, silent):
            changed = [replace(item, value=rebuild(item.value, change)) for item in properties]
            kind = object_type(changed, rebuild(rest, change), silent=silent)
        case _:
            pass
    return change(kind)


def inhabited(kind: Type, alive: Collection[str]) -> bool:
    """Whether the type has a finite value, where the references in `alive` are known to have one."""
    match kind:
        case Reference(key):
            return key in alive
        case Union(options):
            return any(inhabited(option, alive) for option in options)
        case Array():
            needed = {item_at(kind, index) for index in range(min(kind.min, len(kind.prefix) + 1))}
            return all(inhabited(item, alive) for item in needed)
        case Object(properties):
            return all(inhabited(item.value, alive) for item in properties if item.required)
        case _:
            return True


def without_dead_ends(root: Type, definitions: Mapping[str, Type]) -> Canonical:
    """The same type, where what can have no finite value is NEVER, and with the definitions that it uses."""
    alive: set[str] = set()
    waiting = list(definitions)[::-1]  # what is referred to comes after what refers to it
    while True:
        left: list[str] = []
        for key in waiting:
            if inhabited(definitions[key], alive):
                alive.add(key)
            else:
                left.append(key)
        if len(left) == len(waiting):
            break
        waiting = left

    def change(kind: Type) -> Type:
        return NEVER if isinstance(kind, Reference) and kind.key not in alive else kind

    live = {key: rebuild(kind, change) for key, kind in definitions.items() if key in alive}
    return Canonical(rebuild(root, change), live)


def point(value: Decimal) -> Type:
    """Exactly this number."""
    return number(Number(low=value, high=value))
