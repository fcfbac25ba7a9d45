"""Canonical types: the sets of JSON values that schemas denote, as small frozen values.

Types are made with the functions in lower case, which keep them canonical: an impossible type is always `NEVER`.
A number is a decimal of any size and precision; 1 and 1.0 are the same number.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction

from toolgram.grammar.hashing import HashedOnce, found_once, value
from toolgram.grammar.regular import to_expr
from toolgram.grammar.regular.automata import (
    Automaton,
    TooLarge,
    difference,
    of_lengths,
    of_texts,
    universal,
)
from toolgram.schema.types.multiples import to_multiples

__all__ = ["TooLarge"]  # with what is defined here


class NoneKnown(TooLarge):
    """Strings of which there are none but perhaps some that an automaton leaves out."""


@value
class Anything:
    """Every JSON value."""


@value
class Word:
    """One of the values that JSON writes as a word: null, true or false."""

    text: str


@value
class Text:
    """Exactly this string."""

    value: str


@value
class String(HashedOnce):
    """Strings of `min` to `max` code points (None: of any length), of the language of the automaton if there is one.

    Where it is not `exact`, the automaton leaves out some strings that should be there.
    """

    min: int = 0
    max: int | None = None
    automaton: Automaton | None = None
    exact: bool = True

    def admits(self, text: str) -> bool:
        """Whether it is one of these strings."""
        fits = self.min <= len(text) and (self.max is None or len(text) <= self.max)
        return fits and (self.automaton is None or self.automaton.accepts(text))


@value
class Number:
    """Numbers, or integers only, between bounds that belong to the set unless they are open (None: no bound).

    With `multiple` only multiples of it, and bounds that are some too; with `broken` only those that are no integers.
    """

    integer: bool = False
    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False
    multiple: Decimal | None = None
    broken: bool = False

    def admits(self, value: Decimal) -> bool:
        """Whether it is one of these numbers."""
        above = self.low is None or value > self.low or (value == self.low and not self.low_open)
        below = self.high is None or value < self.high or (value == self.high and not self.high_open)
        whole = not (self.integer or self.broken) or (Fraction(value).denominator == 1) is self.integer
        return above and below and whole and (self.multiple is None or Fraction(value) % Fraction(self.multiple) == 0)


@value
class Array(HashedOnce):
    """Arrays of `min` to `max` items: the first ones of the types in `prefix`, the others of the type `rest`.

    With `unique` no two items are equal; its text is the place that says so.
    """

    prefix: tuple[Type, ...]
    rest: Type
    min: int = 0
    max: int | None = None
    unique: str | None = None


@value
class ItemState(HashedOnce):
    """Whether an array may end here, and the steps as (type of the next item, number of the next state)."""

    accepts: bool
    edges: tuple[tuple[Type, int], ...]


@value
class Items(HashedOnce):
    """Arrays by an automaton over the types of their items, which may overlap; the first state is the start.

    `unique` as in Array.
    """

    states: tuple[ItemState, ...]
    unique: str | None = None


@value
class Property:
    """A listed key of an object; where `value` is NEVER the key may not occur. `pointer` is where it is declared.

    One that is not `declared` is listed only because its value would make another type hold, which is not to. One that
    is required and `unplaced` is so in some of several types alone: no other key waits for it (`object_members`).
    """

    name: str
    value: Type
    required: bool
    pointer: str = field(default="", compare=False)
    declared: bool = True
    unplaced: bool = False


@value
class Keys(HashedOnce):
    """Keys of a language, which have values of one type."""

    automaton: Automaton
    value: Type


@value
class Object(HashedOnce):
    """Objects of `min` to `max` keys: these properties and any others, whose values are of the type `rest`.

    Where there are `keys`, they are all the other keys that may occur: of disjoint languages, none of them declared.
    Where there is `some`, one other key at least is of these. `silent` says that the schema did not speak of other
    keys, so that a caller may close the object, and `closed` that one did: it is an equal object still. `counted` is
    the place that states `min`.
    """

    properties: tuple[Property, ...]
    rest: Type
    silent: bool = False
    keys: tuple[Keys, ...] = ()
    min: int = 0
    max: int | None = None
    some: tuple[Keys, ...] = ()
    counted: str = field(default="", compare=False)
    closed: bool = field(default=False, compare=False)


@value
class Reference:
    """The type that `definitions` holds under this key."""

    key: str


@value
class Union(HashedOnce):
    """The values of any of these types; with no options it is the empty type."""

    options: tuple[Type, ...]


Type = Anything | Word | Text | String | Number | Array | Items | Object | Reference | Union

ANY = Anything()
NEVER = Union(())
NULL = Word("null")
BOOLEAN = Union((Word("true"), Word("false")))
_EVERY_STRING, _EVERY_NUMBER = String(), Number()
EVERY_KIND = Union((Object((), ANY, silent=True), Array((), ANY), _EVERY_STRING, _EVERY_NUMBER, *BOOLEAN.options, NULL))


@value
class Canonical:
    """A type with the definitions that its references point to."""

    root: Type
    definitions: Mapping[str, Type]

    def resolve(self, kind: Type) -> Type:
        """The type itself, or what it refers to."""
        while isinstance(kind, Reference):
            kind = self.definitions[kind.key]
        return kind


def union(options: Iterable[Type]) -> Type:
    """The union, flattened, without repeats and without the options that a wider one makes idle."""
    options = list(options)
    if len(options) == 1:
        return options[0]
    flat: dict[Type, None] = {}
    for option in options:
        if isinstance(option, Union):
            flat.update(dict.fromkeys(option.options))
        else:
            flat[option] = None
    if len(flat) > 1:
        if ANY in flat:
            return ANY
        if _EVERY_NUMBER in flat:
            flat = {each: None for each in flat if not isinstance(each, Number) or each == _EVERY_NUMBER}
        if _EVERY_STRING in flat:
            flat = {each: None for each in flat if not isinstance(each, Text | String) or each == _EVERY_STRING}
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def string(low: int, high: int | None, automaton: Automaton | None = None, *, exact: bool = True) -> Type:
    """Strings of `low` to `high` code points, of the language of the automaton.

    Raises TooLarge: NoneKnown where it is only for want of an exact automaton that there are none.
    """
    if high is not None and high < low:
        return NEVER
    if automaton is None or automaton == universal():
        return Text("") if high == 0 else String(low, high)
    if not automaton.has_length(low, high):
        if not exact:
            raise NoneKnown
        return NEVER
    if automaton.has_lengths_within(low, high):
        low, high = 0, None
    elif not to_expr.counts_apart(automaton, low, high):
        automaton, low, high = of_lengths(automaton, low, high), 0, None
    only = automaton.finite_texts(1) if exact else None
    return Text(only[0]) if only else String(low, high, automaton, exact)


def number(kind: Number) -> Type:
    """The same numbers with bounds that can be met, and that are closed, where only integers or multiples can occur.

    Raises TooLarge.
    """
    low, high, low_open, high_open = kind.low, kind.high, kind.low_open, kind.high_open
    multiple = kind.multiple
    if multiple is not None:
        whole, multiple, low, high = to_multiples(
            multiple, integer=kind.integer, low=low, high=high, low_open=low_open, high_open=high_open
        )
        low_open = high_open = False
        kind = replace(kind, integer=whole)
    if low is not None and low == high:
        multiple = None
        kind = replace(kind, integer=kind.integer or low == math.floor(low))
    if kind.integer:
        if low is not None:
            low = Decimal(math.floor(low) + 1 if low_open else math.ceil(low))
        if high is not None:
            high = Decimal(math.ceil(high) - 1 if high_open else math.floor(high))
        low_open = high_open = False
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return NEVER
    if kind.broken and kind.integer:
        return NEVER
    broken = kind.broken and (low is None or low != high)
    return Number(kind.integer, low, high, low_open, high_open, multiple, broken)


def array(prefix: Iterable[Type], rest: Type, low: int = 0, high: int | None = None, unique: str | None = None) -> Type:
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
    return Array(items, rest, low, high, None if high is not None and high < 2 else unique)


def object_type(
    properties: Iterable[Property],
    rest: Type,
    *,
    silent: bool = False,
    keys: Iterable[Keys] = (),
    low: int = 0,
    high: int | None = None,
    some: Iterable[Keys] | None = None,
    counted: str = "",
) -> Type:
    """Objects; a key that may not occur is kept in the list only where it must be kept out of the other keys.

    With `some` one key at least is of these, of those that are not listed.

    Raises TooLarge.
    """
    listed = tuple(properties)
    required = sum(item.required for item in listed)
    one = () if some is None else tuple(_undeclared(some, [item.name for item in listed]))
    needed = required + (some is not None)
    if (some is not None and not one) or (high is not None and (high < needed or high < low)):
        return NEVER
    if high == required:  # nothing else has a place
        listed, rest, keys, high = tuple(item for item in listed if item.required), NEVER, (), None
    kept: list[Property] = []
    for item in listed:
        if item.value == NEVER and item.required:
            return NEVER
        if item.value != NEVER or rest != NEVER:
            kept.append(item)
    languages = tuple(_undeclared(keys, [item.name for item in listed]))
    if rest == NEVER and not languages:
        if one:
            return NEVER
        if low > len(kept):
            return NEVER
        if low == len(kept):
            kept, low = [replace(item, required=True) for item in kept], 0
        high = None if high is None or high >= len(kept) else high
    return Object(tuple(kept), rest, silent, languages, 0 if low <= needed else low, high, one, counted)


def _undeclared(keys: Iterable[Keys], names: Collection[str]) -> Iterator[Keys]:
    for one in keys:
        automaton = one.automaton
        if declared := [name for name in names if automaton.accepts(name)]:
            automaton = difference(automaton, of_texts(declared))
        if one.value != NEVER and not automaton.is_empty:
            yield Keys(automaton, one.value)


def stands_alone(kind: Type) -> bool:
    """Whether it means the same in every document: it refers to no definition."""
    return _stands_alone(kind) if isinstance(kind, HashedOnce) else not isinstance(kind, Reference)


@found_once
def _stands_alone(kind: Type) -> bool:
    match kind:
        case Union(options):
            parts = options
        case Array(prefix, rest):
            parts = (*prefix, rest)
        case Items(states):
            parts = tuple(item for state in states for item, _ in state.edges)
        case Object():
            parts = (*(item.value for item in (*kind.properties, *kind.keys, *kind.some)), kind.rest)
        case _:
            parts = ()
    return all(map(stands_alone, parts))


def value_of(kind: Object, name: str) -> Type:
    """The type of the value under this key."""
    declared = next((item.value for item in kind.properties if item.name == name), None)
    return other_value_of(kind, name) if declared is None else declared


def other_value_of(kind: Object, name: str) -> Type:
    """The type of the value under this key, which is not declared."""
    return next((one.value for one in kind.keys if one.automaton.accepts(name)), kind.rest)


def item_at(kind: Array, index: int) -> Type:
    """The type of the item at this index."""
    return kind.prefix[index] if index < len(kind.prefix) else kind.rest


def point(value: Decimal) -> Type:
    """Exactly this number."""
    return number(Number(low=value, high=value))
