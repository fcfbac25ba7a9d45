"""Arrays by automata over the types of their items: products, complements, counts of items, items that all differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import combinations
from typing import TypeVar

from toolgram.grammar.regular.automata import Automaton
from toolgram.schema.types import (
    ANY,
    EVERY_KIND,
    NEVER,
    Anything,
    Array,
    Items,
    ItemState,
    Number,
    Object,
    Reference,
    String,
    Text,
    TooLarge,
    Type,
    Union,
    Word,
    array,
    item_at,
    point,
    union,
)
from toolgram.schema.types.item_states import item_states
from toolgram.work import spend

_MAX_STATES = 300
_MAX_VALUES = 16
_State = TypeVar("_State", bound=Hashable)


def states_of(kind: Array | Items) -> Sequence[ItemState]:
    """The automaton of these arrays, whether or not their items may be equal. Raises TooLarge."""
    if isinstance(kind, Items):
        return kind.states
    last = max(len(kind.prefix), kind.min) if kind.max is None else kind.max
    if last > _MAX_STATES:
        raise TooLarge
    steps = [((item_at(kind, index), index + 1),) for index in range(last)]
    end = () if kind.max is not None else ((kind.rest, last),)
    return [ItemState(index >= kind.min, edges) for index, edges in enumerate([*steps, end])]


def explored(
    start: _State, step: Callable[[_State], Iterable[tuple[Type, _State]]], accepts: Callable[[_State], bool]
) -> list[ItemState]:
    """The automaton of all that `step` leads to. Raises TooLarge."""
    numbers = {start: 0}
    order = [start]
    found: list[ItemState] = []
    for state in order:
        edges: list[tuple[Type, int]] = []
        for kind, target in step(state):
            spend(1)
            if kind == NEVER:
                continue
            if target not in numbers:
                if len(order) == _MAX_STATES:
                    raise TooLarge
                numbers[target] = len(order)
                order.append(target)
            edges.append((kind, numbers[target]))
        found.append(ItemState(accepts(state), tuple(edges)))
    return found


def both(left: Array | Items, right: Array | Items, meet: Callable[[Type, Type], Type]) -> Type:
    """The arrays of both types. Raises TooLarge."""
    mine, theirs = states_of(left), states_of(right)

    def step(state: tuple[int, int]) -> Iterator[tuple[Type, tuple[int, int]]]:
        for a, to in mine[state[0]].edges:
            for b, there in theirs[state[1]].edges:
                yield meet(a, b), (to, there)

    found = explored((0, 0), step, lambda state: mine[state[0]].accepts and theirs[state[1]].accepts)
    return item_states(found, right.unique if left.unique is None else left.unique)


def opposite(kind: Array | Items, but: Callable[[Type], Type], apart: Callable[[Type, Type], bool]) -> Type:
    """The other arrays. Raises TooLarge, also where it is not certain which way an item leads."""
    states = states_of(kind)
    if kind.unique is not None:
        raise TooLarge
    result: list[ItemState] = []
    for state in states:
        kinds = [item for item, _ in state.edges]
        if not all(apart(a, b) for a, b in combinations(kinds, 2)):
            raise TooLarge
        result.append(ItemState(not state.accepts, (*state.edges, (but(union(kinds)), len(states)))))
    return item_states([*result, ItemState(accepts=True, edges=((ANY, len(states)),))])


def loosened(kind: Array | Items) -> Array:
    """Arrays of the items that these arrays hold, without an automaton: any number of each."""
    if isinstance(kind, Array):
        return kind
    every = union(item for state in kind.states for item, _ in state.edges)
    return Array((), every, 0 if kind.states[0].accepts else 1, 0 if every == NEVER else None)


def containing(inside: Type, outside: Type | None, low: int, high: int | None) -> Type:
    """Arrays of which `low` to `high` items are of one type; the others are of type `outside`, if it is known.

    Raises TooLarge, also for want of `outside` where there is an upper limit.
    """
    if outside is None and high is not None:
        raise TooLarge
    last = low if high is None else high

    def step(count: int) -> Iterator[tuple[Type, int]]:
        if count == last and high is None:
            yield ANY, count
            return
        yield ANY if outside is None else outside, count
        if count < last:
            yield inside, count + 1

    if inside == ANY:
        return array((), ANY, low, high)
    return item_states(explored(0, step, lambda count: count >= low))


def distinct(kind: Array | Items, resolve: Callable[[str], Type], apart: Callable[[Type, Type], bool]) -> Type:
    """Those of the arrays whose items all differ.

    Raises TooLarge, also where two items may both be of a type with many values.
    """
    states = states_of(kind)
    parts: dict[Type, list[Type]] = {}
    numbers: dict[Type, int] = {}

    def number_of(part: Type) -> int:
        if part not in numbers and not all(apart(part, other) for other in numbers):
            raise TooLarge
        return numbers.setdefault(part, len(numbers))

    def step(state: tuple[int, frozenset[int]]) -> Iterator[tuple[Type, tuple[int, frozenset[int]]]]:
        for item, target in states[state[0]].edges:
            if item not in parts:
                parts[item] = list(_parts(item, resolve))
            for part in parts[item]:
                number = number_of(part)
                if number not in state[1]:
                    yield part, (target, state[1] | {number})
                elif not _is_single(part, resolve):
                    raise TooLarge

    start = 0, frozenset[int]()
    return item_states(explored(start, step, lambda state: states[state[0]].accepts))


def _parts(kind: Type, resolve: Callable[[str], Type]) -> Iterator[Type]:
    """The type cut up, as far as it has few values into these."""
    match kind:
        case Reference(key):
            parts = list(_parts(resolve(key), resolve))
            yield from [kind] if any(isinstance(part, Array | Items | Object) for part in parts) else parts
        case Union(options):
            for option in options:
                yield from _parts(option, resolve)
        case Anything():
            yield from EVERY_KIND.options
        case String(low, high, Automaton() as automaton, True) if texts := automaton.finite_texts(_MAX_VALUES):
            yield from (Text(text) for text in texts if low <= len(text) and (high is None or len(text) <= high))
        case Number(True, Decimal() as low, Decimal() as high, multiple=None) if high - low < _MAX_VALUES:
            yield from (point(low + index) for index in range(int(high - low) + 1))
        case _:
            yield kind


def _is_single(kind: Type, resolve: Callable[[str], Type]) -> bool:
    """Whether the type is known to have one value."""
    match kind:
        case Reference(key):
            return _is_single(resolve(key), resolve)
        case Word() | Text():
            return True
        case Number(_, low, high):
            return low is not None and low == high
        case Array(prefix, _, low, high):
            return low == high == len(prefix) and all(_is_single(item, resolve) for item in prefix)
        case Object(properties, rest, _, keys):
            known = all(item.required and _is_single(item.value, resolve) for item in properties)
            return known and rest == NEVER and not keys
        case _:
            return False
