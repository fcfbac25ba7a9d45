"""Arrays by an automaton over the types of their items, kept small."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from toolgram.schema.types import NEVER, Items, ItemState, Type, union
from toolgram.work import spend


def item_states(states: Sequence[ItemState], unique: str | None = None) -> Type:
    """Arrays by an automaton, with only those states through which a way leads to an end, each once."""
    live = {number for number, state in enumerate(states) if state.accepts}
    waiting = list(live)
    before: dict[int, list[int]] = {}
    for number, state in enumerate(states):
        for kind, target in state.edges:
            if kind != NEVER:
                before.setdefault(target, []).append(number)
    for target in waiting:
        found = [number for number in before.get(target, ()) if number not in live]
        live.update(found)
        waiting.extend(found)
    if 0 not in live:
        return NEVER
    alike = _alike(states, live)
    numbers = {alike[0]: 0}
    order = [0]
    result: list[ItemState] = []
    for at in order:  # breadth first
        steps: dict[int, list[Type]] = {}
        for kind, target in states[at].edges:
            if kind != NEVER and target in live:
                steps.setdefault(alike[target], []).append(kind)
        order.extend(target for target in steps if target not in numbers)
        for target in steps:
            numbers.setdefault(target, len(numbers))
        result.append(ItemState(states[at].accepts, tuple((union(of), numbers[to]) for to, of in steps.items())))
    return Items(tuple(result), unique)


def _alike(states: Sequence[ItemState], live: Collection[int]) -> dict[int, int]:
    """For each live state the first that has the same continuations."""
    kinds: dict[Type, int] = {}
    edges = {
        number: [
            (kinds.setdefault(kind, len(kinds)), target) for kind, target in states[number].edges if target in live
        ]
        for number in sorted(live)
    }
    alike = {number: int(states[number].accepts) for number in edges}
    while True:
        first: dict[object, int] = {}
        again: dict[int, int] = {}
        spend(len(edges))
        for number, steps in edges.items():
            ways = frozenset((kind, alike[target]) for kind, target in steps)
            again[number] = first.setdefault((alike[number], ways), number)
        if len(first) == len(set(alike.values())):
            return again
        alike = again
