"""Intersections and complements of canonical types, and whether two have no value in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from toolgram.schema import automata
from toolgram.schema.effort import spend
from toolgram.schema.multiples import common_multiple
from toolgram.schema.types import (
    ANY,
    EVERY_KIND,
    NEVER,
    Anything,
    Array,
    Keys,
    Number,
    Object,
    Property,
    Reference,
    String,
    Text,
    TooLarge,
    Type,
    Union,
    Word,
    array,
    item_at,
    number,
    object_type,
    other_value_of,
    string,
    union,
)

_MAX_CASES = 256
_MAX_ITEMS = 8  # of an array, to be told apart one by one
_MAX_LANGUAGES = 24  # of the keys of one object

Resolve = Callable[[str], Type]


def intersect(left: Type, right: Type, resolve: Resolve, fuel: int = 32) -> Type:
    """The values of both types; keys in the order of `left`, then those that only `right` declares.

    Raises TooLarge where both are recursive, so that it would never end, or where their cases multiply.
    """
    spend(1)
    if fuel == 0:
        raise TooLarge

    def both(a: Type, b: Type) -> Type:
        return intersect(a, b, resolve, fuel - 1)

    match left, right:
        case (Anything(), kind) | (kind, Anything()):
            return kind
        case Union(mine), Union(theirs):
            texts = _texts(left), _texts(right)
            if texts[0] is not None and texts[1] is not None:
                return union(Text(text) for text in texts[0] if text in texts[1])
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
            if not limits.exact and not limits.admits(value):
                raise TooLarge
            return Text(value) if limits.admits(value) else NEVER
        case String(), String():
            return _both_strings(left, right)
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


def _both_strings(left: String, right: String) -> Type:
    languages = [kind.automaton for kind in (left, right) if kind.automaton is not None]
    automaton = automata.intersection(*languages) if len(languages) == 2 else next(iter(languages), None)
    return string(max(left.min, right.min), _lower(left.max, right.max), automaton, exact=left.exact and right.exact)


def _both_numbers(left: Number, right: Number) -> Type:
    lows = [(kind.low, kind.low_open) for kind in (left, right) if kind.low is not None]
    highs = [(kind.high, not kind.high_open) for kind in (left, right) if kind.high is not None]
    low, low_open = max(lows, default=(None, False))
    high, high_closed = min(highs, default=(None, True))
    multiple = common_multiple(left.multiple, right.multiple)
    integer, broken = left.integer or right.integer, left.broken or right.broken
    return number(Number(integer, low, high, low_open, not high_closed, multiple, broken))


def _both_objects(left: Object, right: Object, both: Callable[[Type, Type], Type]) -> Type:
    mine = {item.name: item for item in left.properties}
    theirs = {item.name: item for item in right.properties}
    properties: list[Property] = []
    spend(len(mine) + len(theirs))
    for name in mine | theirs:
        one, other = mine.get(name), theirs.get(name)
        value = both(
            one.value if one else other_value_of(left, name), other.value if other else other_value_of(right, name)
        )
        required = (one is not None and one.required) or (other is not None and other.required)
        properties.append(Property(name, value, required, (one or theirs[name]).pointer))
    keys = tuple(_both_keys(left, right, both))
    if len(keys) > _MAX_LANGUAGES:
        raise TooLarge
    return object_type(
        properties,
        NEVER if left.keys or right.keys else both(left.rest, right.rest),
        silent=left.silent and right.silent,
        keys=keys,
        low=max(left.min, right.min),
        high=_lower(left.max, right.max),
    )


def _both_keys(left: Object, right: Object, both: Callable[[Type, Type], Type]) -> Iterator[Keys]:
    if left.keys and right.keys:
        for a in left.keys:
            for b in right.keys:
                yield Keys(automata.intersection(a.automaton, b.automaton), both(a.value, b.value))
    else:
        for one in left.keys or right.keys:
            yield Keys(one.automaton, both(one.value, right.rest if left.keys else left.rest))


def disjoint(left: Type, right: Type, resolve: Resolve, fuel: int = 8) -> bool:
    """Whether it is certain that no value is of both types."""
    spend(1)
    if fuel == 0:
        return False
    texts = _texts(left), _texts(right)
    if texts[0] is not None and texts[1] is not None:
        return texts[0].keys().isdisjoint(texts[1])

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
            sure = range(min(max(left.min, right.min), max(len(left.prefix), len(right.prefix)) + 1))
            return any(apart(item_at(left, index), item_at(right, index)) for index in sure) or (
                intersect(Array((), ANY, left.min, left.max), Array((), ANY, right.min, right.max), resolve) == NEVER
            )
        case Object(), Object():
            return _objects_apart(left, right, apart)
        case _:
            try:
                return intersect(left, right, resolve) == NEVER
            except TooLarge:
                return False


def _texts(kind: Type) -> dict[str, None] | None:
    """The only values of a type, where these are texts."""
    options = kind.options if isinstance(kind, Union) else (kind,)
    if not isinstance(options[0] if options else None, Text):
        return None if options else {}
    spend(len(options))
    texts = dict.fromkeys(option.value for option in options if isinstance(option, Text))
    return texts if len(texts) == len(options) else None


def _objects_apart(left: Object, right: Object, apart: Callable[[Type, Type], bool]) -> bool:
    for one, other in ((left, right), (right, left)):
        least = max(one.min, sum(item.required for item in one.properties))
        if other.max is not None and least > other.max:
            return True
        value_in = _values(other)
        if any(item.required and apart(item.value, value_in(item.name)) for item in one.properties):
            return True
    return False


def _values(kind: Object) -> Callable[[str], Type]:
    """The type of the value under each key."""
    declared = {item.name: item.value for item in kind.properties}
    spend(len(declared))
    return lambda name: declared[name] if name in declared else other_value_of(kind, name)


def complement(kind: Type, resolve: Resolve, fuel: int = 16) -> Type:
    """The values that are not of the type. Raises TooLarge where these are no type that can be said."""
    spend(1)
    if fuel == 0:
        raise TooLarge

    def but(inner: Type) -> Type:
        return complement(inner, resolve, fuel - 1)

    match kind:
        case Anything():
            return NEVER
        case Reference(key):
            return but(resolve(key))
        case Union(options):
            texts = [option.value for option in options if isinstance(option, Text)]
            result = _others(String, [string(0, None, automata.complement(automata.of_texts(texts)))]) if texts else ANY
            for option in options:
                if not isinstance(option, Text):
                    result = intersect(result, but(option), resolve)
            return result
        case Word():
            return union(other for other in EVERY_KIND.options if other != kind)
        case Text(value):
            return _others(String, [string(0, None, automata.complement(automata.of_text(value)))])
        case String(low, high, automaton, exact):
            if not exact:
                raise TooLarge
            outside = [] if automaton is None else [string(0, None, automata.complement(automaton))]
            return _others(String, [*outside, *(string(*limits) for limits in _outside(low, high))])
        case Number():
            return _others(Number, _other_numbers(kind))
        case Array():
            return _others(Array, _other_arrays(kind, but))
        case Object():
            return _others(Object, _other_objects(kind, but))


def _others(kind: type[Type], same: list[Type]) -> Type:
    """The values of other kinds, and some of the same."""
    return union([*same, *(option for option in EVERY_KIND.options if not isinstance(option, kind))])


def _outside(low: int, high: int | None) -> Iterator[tuple[int, int | None]]:
    if low:
        yield 0, low - 1
    if high is not None:
        yield high + 1, None


def _other_numbers(kind: Number) -> list[Type]:
    if kind.multiple is not None:
        raise TooLarge
    within: list[Type] = []
    if kind.integer and (kind.low is None or kind.low != kind.high):
        within = [replace(kind, integer=False, broken=True)]
    elif kind.broken:
        within = [number(replace(kind, integer=True, broken=False))]
    below = [] if kind.low is None else [number(Number(high=kind.low, high_open=not kind.low_open))]
    above = [] if kind.high is None else [number(Number(low=kind.high, low_open=not kind.high_open))]
    return [*below, *within, *above]


def _other_arrays(kind: Array, but: Callable[[Type], Type]) -> list[Type]:
    """Arrays of other lengths, and those with a first item that is none of its type."""
    if kind.rest != ANY and (kind.max is None or kind.max > len(kind.prefix)):
        raise TooLarge
    lengths = [array((), ANY, low, high) for low, high in _outside(kind.min, kind.max)]
    items = [
        array([*[ANY] * index, but(item)], ANY, index + 1) for index, item in enumerate(kind.prefix) if item != ANY
    ]
    return [*lengths, *items]


def _other_objects(kind: Object, but: Callable[[Type], Type]) -> list[Type]:
    """Objects without a required key, with a value that is none of its type, or with another number of keys."""
    if kind == Object((), NEVER, kind.silent):
        return [object_type((), ANY, silent=True, low=1)]
    if kind.rest != ANY or kind.keys or kind.max is not None:
        raise TooLarge
    found: list[Type] = [object_type((), ANY, silent=True, high=kind.min - 1)] if kind.min else []
    for item in kind.properties:
        if item.required:
            found.append(object_type([replace(item, value=NEVER, required=False)], ANY, silent=True))
        if item.value != ANY:
            found.append(object_type([replace(item, value=but(item.value), required=True)], ANY, silent=True))
    return found


def subtract(left: Type, right: Type, resolve: Resolve, fuel: int = 16) -> Type:
    """The values of the first type that are not of the second. Raises TooLarge."""
    spend(1)
    if fuel == 0:
        raise TooLarge

    def less(a: Type, b: Type) -> Type:
        return subtract(a, b, resolve, fuel - 1)

    if left == right:
        return NEVER
    texts = _texts(left), _texts(right)
    if texts[0] is not None and texts[1] is not None:
        return union(Text(text) for text in texts[0] if text not in texts[1])
    if disjoint(left, right, resolve):
        return left
    match left, right:
        case Reference(key), _:
            return less(resolve(key), right)
        case _, Reference(key):
            return less(left, resolve(key))
        case Union(options), _:
            return union(less(option, right) for option in options)
        case _, Union(options):
            for option in options:
                left = less(left, option)
            return left
        case Object(), Object():
            return union(intersect(left, part, resolve) for part in _unlike_objects(left, right, less))
        case Array(), Array():
            return union(intersect(left, part, resolve) for part in _unlike_arrays(left, right, less))
        case _:
            return intersect(left, complement(right, resolve), resolve)


def _unlike_objects(left: Object, right: Object, less: Callable[[Type, Type], Type]) -> list[Type]:
    """What an object of the first type may be so as not to be of the second."""
    is_closed = left.rest == NEVER and not left.keys
    if not is_closed and (right.rest != ANY or right.keys or right.max is not None):
        raise TooLarge
    found: list[Type] = []
    if right.min:
        found.append(object_type((), ANY, silent=True, high=right.min - 1))
    if right.max is not None:
        found.append(object_type((), ANY, silent=True, low=right.max + 1))
    needed = [replace(item, value=NEVER, required=False) for item in right.properties if item.required]
    found.extend(object_type([item], ANY, silent=True) for item in needed)
    in_left, in_right = _values(left), _values(right)
    for name in dict.fromkeys(item.name for item in (*left.properties, *right.properties)):
        value = less(in_left(name), in_right(name))
        found.append(object_type([Property(name, value, required=True)], ANY, silent=True))
    return found


def _unlike_arrays(left: Array, right: Array, less: Callable[[Type, Type], Type]) -> list[Type]:
    """The same of arrays."""
    size = max(len(left.prefix), len(right.prefix))
    if right.rest != ANY and (left.max is None or left.max > size):
        if left.max is None or left.max > _MAX_ITEMS:
            raise TooLarge
        size = left.max
    lengths = [array((), ANY, low, high) for low, high in _outside(right.min, right.max)]
    items = [(index, less(item_at(left, index), item_at(right, index))) for index in range(size)]
    return [*lengths, *(array([*[ANY] * index, item], ANY, index + 1) for index, item in items)]
