"""Intersections and complements of canonical types, and whether two have no value in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from toolgram.schema import automata, items
from toolgram.schema.languages import one_of_texts
from toolgram.schema.multiples import common_multiple
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
    item_at,
    number,
    object_type,
    string,
    union,
    value_of,
)

_MAX_CASES = 256
_MAX_ITEMS = 8  # of an array, to be told apart one by one
_MAX_LANGUAGES = 24  # of the keys of one object

Resolve = Callable[[str], Type]


def intersect(left: Type, right: Type, resolve: Resolve, fuel: int = 32) -> Type:
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
            least, most = max(left.min, right.min), _lower(left.max, right.max)
            unique = right.unique if left.unique is None else left.unique
            return array(prefix, both(left.rest, right.rest), least, most, unique)
        case ((Array() | Items()), (Array() | Items())):
            return items.both(left, right, both)
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
    for name in mine | theirs:
        declared = [item for item in (mine.get(name), theirs.get(name)) if item]
        value = both(value_of(left, name), value_of(right, name))
        required = any(item.required for item in declared)
        properties.append(Property(name, value, required, declared[0].pointer))
    keys = tuple(_both_keys(left.keys, right.keys, left.rest, right.rest, both))
    if len(keys) > _MAX_LANGUAGES:
        raise TooLarge
    rest = NEVER if left.keys or right.keys else both(left.rest, right.rest)

    def made(properties: Iterable[Property], some: Iterable[Keys] | None = None) -> Type:
        return object_type(
            properties,
            rest,
            silent=left.silent and right.silent,
            keys=keys,
            low=max(left.min, right.min),
            high=_lower(left.max, right.max),
            some=some,
            counted=left.counted if left.min >= right.min else right.counted,
        )

    if not left.some and not right.some:
        return made(properties)
    some = _both_some(left.some, right.some)
    options = [made(properties, _both_keys(some, keys, NEVER, rest, both))]
    for index, item in enumerate(properties):
        found = [both(item.value, one.value) for one in some if one.automaton.accepts(item.name)]
        if found:
            declared = replace(item, value=union(found), required=True)
            options.append(made([*properties[:index], declared, *properties[index + 1 :]]))
    return union(options)


def _both_some(left: tuple[Keys, ...], right: tuple[Keys, ...]) -> tuple[Keys, ...]:
    """What there must be some key of, where one of the two says as much as both."""
    if not right or (left and _implies(left, right)):
        return left
    if not left or _implies(right, left):
        return right
    raise TooLarge  # whether one key is both, or two keys differ, is not told apart


def _implies(left: Sequence[Keys], right: Sequence[Keys]) -> bool:
    def within(a: Keys, b: Keys) -> bool:
        return (b.value in (ANY, a.value)) and automata.difference(a.automaton, b.automaton).is_empty

    return all(any(within(a, b) for b in right) for a in left)


def _both_keys(
    left: Sequence[Keys],
    right: Sequence[Keys],
    left_rest: Type,
    right_rest: Type,
    both: Callable[[Type, Type], Type],
) -> Iterator[Keys]:
    """The keys of both; where there are none on one side, all keys are, with values of the type of its rest."""
    if left and right:
        for a in left:
            for b in right:
                yield Keys(automata.intersection(a.automaton, b.automaton), both(a.value, b.value))
    else:
        for one in left or right:
            yield Keys(one.automaton, both(one.value, right_rest if left else left_rest))


def disjoint(left: Type, right: Type, resolve: Resolve, fuel: int = 8) -> bool:
    """Whether it is certain that no value is of both types."""
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
            sure = range(max(left.min, right.min))
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
    texts = dict.fromkeys(option.value for option in options if isinstance(option, Text))
    return texts if len(texts) == len(options) else None


def _objects_apart(left: Object, right: Object, apart: Callable[[Type, Type], bool]) -> bool:
    for one, other in ((left, right), (right, left)):
        least = max(one.min, sum(item.required for item in one.properties))
        if other.max is not None and least > other.max:
            return True
        if any(item.required and apart(item.value, value_of(other, item.name)) for item in one.properties):
            return True
    return False


def complement(kind: Type, resolve: Resolve, fuel: int = 16) -> Type:
    """The values that are not of the type. Raises TooLarge where these are no type that can be said."""
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
            result = _others(String, [string(0, None, automata.complement(one_of_texts(texts)))]) if texts else ANY
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
                other = items.opposite(kind, but, lambda a, b: disjoint(a, b, resolve))
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
            found.append(object_type([replace(item, value=NEVER, required=False)], ANY, silent=True))
        if item.value != ANY:
            found.append(object_type([replace(item, value=but(item.value), required=True)], ANY, silent=True))
    return [*found, *_with_other_keys(kind, but)]


def _counting(low: int, high: int | None, kind: Object) -> Type:
    return object_type((), ANY, silent=True, low=low, high=high, counted=kind.counted)


def _with_other_keys(kind: Object, but: Callable[[Type], Type]) -> Iterator[Type]:
    """Objects with a key that is not declared and not as it should be, and those without one that should be there."""
    declared = [Property(item.name, ANY, required=False, pointer=item.pointer) for item in kind.properties]
    given = kind.keys or (Keys(automata.universal(), kind.rest),)
    wrong = [Keys(one.automaton, but(one.value)) for one in given if one.value != ANY]
    wrong += [Keys(language, ANY) for language in _outside_of(kind.keys) if kind.keys]
    if wrong:
        yield object_type(declared, ANY, some=wrong)
    if kind.some:
        languages = [Keys(language, ANY) for language in _outside_of(kind.some)]
        yield object_type(declared, NEVER, keys=[*languages, *(Keys(k.automaton, but(k.value)) for k in kind.some)])


def _outside_of(keys: Sequence[Keys]) -> Iterator[automata.Automaton]:
    """The keys of no language of these, as a language, if there are any."""
    left = automata.universal()
    for one in keys:
        left = automata.difference(left, one.automaton)
    if not left.is_empty:
        yield left


def subtract(left: Type, right: Type, resolve: Resolve, fuel: int = 16) -> Type:
    """The values of the first type that are not of the second. Raises TooLarge."""
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
    needed = [replace(item, value=NEVER, required=False) for item in right.properties if item.required]
    found.extend(object_type([item], ANY, silent=True) for item in needed)
    for name in dict.fromkeys(item.name for item in (*left.properties, *right.properties)):
        value = less(value_of(left, name), value_of(right, name))
        found.append(object_type([Property(name, value, required=True)], ANY, silent=True))
    return found


def _unlike_arrays(left: Array, right: Array, less: Callable[[Type, Type], Type]) -> list[Type]:
    """The same of arrays."""
    size = max(len(left.prefix), len(right.prefix))
    if right.rest != ANY and left.max is not None:
        size = max(size, left.max)
    lengths = [array((), ANY, low, high) for low, high in _outside(right.min, right.max)]
    different = [(index, less(item_at(left, index), item_at(right, index))) for index in range(size)]
    return [*lengths, *(array([*[ANY] * index, item], ANY, index + 1) for index, item in different)]
