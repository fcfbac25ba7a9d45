"""Intersections of canonical types, and whether two have no value in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from toolgram.grammar.regular import automata
from toolgram.schema.types import (
    ANY,
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
    array,
    arrays,
    item_at,
    number,
    object_type,
    other_value_of,
    string,
    union,
)
from toolgram.schema.types.multiples import common_multiple
from toolgram.work import spend

_MAX_CASES = 256
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
            texts = texts_of(left), texts_of(right)
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
            return arrays.both(left, right, both)
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
        declared = (one is not None and one.declared) or (other is not None and other.declared)
        properties.append(Property(name, value, required, (one or theirs[name]).pointer, declared))
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
    spend(len(properties) ** 2)
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
    raise TooLarge  # whether one key is both, or two keys differ, is not known


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
    spend(1)
    if fuel == 0:
        return False
    texts = texts_of(left), texts_of(right)
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


def texts_of(kind: Type) -> dict[str, None] | None:
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
        value_in = values_of(other)
        if any(item.required and apart(item.value, value_in(item.name)) for item in one.properties):
            return True
    return False


def values_of(kind: Object) -> Callable[[str], Type]:
    """The type of the value under each key."""
    declared = {item.name: item.value for item in kind.properties}
    spend(len(declared))
    return lambda name: declared[name] if name in declared else other_value_of(kind, name)
