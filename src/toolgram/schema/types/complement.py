"""Complements and differences of canonical types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from toolgram.grammar.regular import automata
from toolgram.schema.types import (
    ANY,
    EVERY_KIND,
    NEVER,
    Anything,
    Array,
    Items,
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
    arrays,
    item_at,
    number,
    object_type,
    string,
    union,
)
from toolgram.schema.types.intersect import Resolve, disjoint, intersect, texts_of, values_of
from toolgram.work import spend

_MAX_ITEMS = 8  # of an array, to be distinguished one by one


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
        case Array() | Items():
            if isinstance(kind, Items) or kind.unique is not None or _repeats(kind):
                other = arrays.opposite(kind, but, lambda a, b: disjoint(a, b, resolve))
                return _others(Array, [other])
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


def _repeats(kind: Array) -> bool:
    """Whether there is a limit on each of the items after the first ones."""
    return kind.rest != ANY and (kind.max is None or kind.max > len(kind.prefix))


def _is_short(kind: Array) -> bool:
    return kind.max is not None and kind.max <= _MAX_ITEMS


def _other_arrays(kind: Array, but: Callable[[Type], Type]) -> list[Type]:
    """Arrays of other lengths, and those with a first item that is none of its type."""
    lengths = [array((), ANY, low, high) for low, high in _outside(kind.min, kind.max)]
    first = [
        array([*[ANY] * index, but(item)], ANY, index + 1) for index, item in enumerate(kind.prefix) if item != ANY
    ]
    return [*lengths, *first]


def _other_objects(kind: Object, but: Callable[[Type], Type]) -> list[Type]:
    """Objects without a required key, with a value that is none of its type, or with another number of keys."""
    found = [_counting(low, high, kind) for low, high in _outside(kind.min, kind.max)]
    for item in kind.properties:
        if item.required:
            found.append(object_type([_without(item)], ANY, silent=True))
        if item.value != ANY:
            other = replace(item, value=but(item.value), required=True, declared=False)
            found.append(object_type([other], ANY, silent=True))
    return [*found, *_with_other_keys(kind, but)]


def _without(item: Property) -> Property:
    """The key as one that does not occur."""
    return replace(item, value=NEVER, required=False, declared=False)


def _counting(low: int, high: int | None, kind: Object) -> Type:
    return object_type((), ANY, silent=True, low=low, high=high, counted=kind.counted)


def _with_other_keys(kind: Object, but: Callable[[Type], Type]) -> Iterator[Type]:
    """Objects with a key that is not declared and not as it should be, and those without one that should be there."""
    listed = [replace(item, value=ANY, required=False, declared=False) for item in kind.properties]
    given = kind.keys or (Keys(automata.universal(), kind.rest),)
    wrong = [Keys(one.automaton, but(one.value)) for one in given if one.value != ANY]
    wrong += [Keys(language, ANY) for language in _outside_of(kind.keys) if kind.keys]
    if wrong:
        yield object_type(listed, ANY, silent=True, some=wrong)
    if kind.some:
        languages = [Keys(language, ANY) for language in _outside_of(kind.some)]
        keys = [*languages, *(Keys(one.automaton, but(one.value)) for one in kind.some)]
        yield object_type(listed, NEVER, silent=True, keys=keys)


def _outside_of(keys: Sequence[Keys]) -> Iterator[automata.Automaton]:
    """The keys of no language of these, as a language, if there are any."""
    left = automata.universal()
    for one in keys:
        left = automata.difference(left, one.automaton)
    if not left.is_empty:
        yield left


def subtract(left: Type, right: Type, resolve: Resolve, fuel: int = 16) -> Type:
    """The values of the first type that are not of the second. Raises TooLarge."""
    spend(1)
    if fuel == 0:
        raise TooLarge

    def less(a: Type, b: Type) -> Type:
        return subtract(a, b, resolve, fuel - 1)

    if left == right:
        return NEVER
    texts = texts_of(left), texts_of(right)
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
            listed = [option for option in options if isinstance(option, Text)]
            if len(listed) > 1:  # one automaton of all of them is less work than one after the other
                left = intersect(left, complement(union(listed), resolve, fuel - 1), resolve)
                options = tuple(option for option in options if not isinstance(option, Text))
            for option in options:
                left = less(left, option)
            return left
        case Object(), Object():
            return union(intersect(left, part, resolve) for part in _unlike_objects(left, right, less))
        case Array(), Array() if right.unique is None and (not _repeats(right) or _is_short(left)):
            return union(intersect(left, part, resolve) for part in _unlike_arrays(left, right, less))
        case _:
            return intersect(left, complement(right, resolve), resolve)


def _unlike_objects(left: Object, right: Object, less: Callable[[Type, Type], Type]) -> list[Type]:
    """What an object of the first type may be so as not to be of the second."""
    is_closed = left.rest == NEVER and not left.keys
    found = [_counting(low, high, right) for low, high in _outside(right.min, right.max)]
    if right.some or not is_closed:
        found.extend(_with_other_keys(right, lambda kind: less(ANY, kind)))
    needed = [_without(item) for item in right.properties if item.required]
    found.extend(object_type([item], ANY, silent=True) for item in needed)
    in_left, in_right = values_of(left), values_of(right)
    for name in dict.fromkeys(item.name for item in (*left.properties, *right.properties)):
        value = less(in_left(name), in_right(name))
        found.append(object_type([Property(name, value, required=True, declared=False)], ANY, silent=True))
    return found


def _unlike_arrays(left: Array, right: Array, less: Callable[[Type, Type], Type]) -> list[Type]:
    """The same of arrays."""
    size = max(len(left.prefix), len(right.prefix))
    if right.rest != ANY and left.max is not None:
        size = max(size, left.max)
    lengths = [array((), ANY, low, high) for low, high in _outside(right.min, right.max)]
    different = [(index, less(item_at(left, index), item_at(right, index))) for index in range(size)]
    return [*lengths, *(array([*[ANY] * index, item], ANY, index + 1) for index, item in different)]
