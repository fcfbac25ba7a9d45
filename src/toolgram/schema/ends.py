"""Types as a whole: what has no finite value is taken out, and every part can be changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from toolgram.schema.types import (
    NEVER,
    Array,
    Canonical,
    Items,
    ItemState,
    Keys,
    Object,
    Reference,
    Type,
    Union,
    array,
    item_at,
    item_states,
    object_type,
    union,
)


def rebuild(kind: Type, change: Callable[[Type], Type]) -> Type:
    """The type with `change` applied to each part of it, innermost first, and made canonical again."""
    match kind:
        case Union(options):
            kind = union(rebuild(option, change) for option in options)
        case Array(prefix, rest, low, high, unique):
            kind = array([rebuild(item, change) for item in prefix], rebuild(rest, change), low, high, unique)
        case Items(states, unique):
            changed = [
                ItemState(state.accepts, tuple((rebuild(item, change), target) for item, target in state.edges))
                for state in states
            ]
            kind = item_states(changed, unique)
        case Object():
            kind = _rebuilt_object(kind, change)
        case _:
            pass
    return change(kind)


def _rebuilt_object(kind: Object, change: Callable[[Type], Type]) -> Type:
    def of_keys(keys: tuple[Keys, ...]) -> list[Keys]:
        return [Keys(one.automaton, rebuild(one.value, change)) for one in keys]

    return object_type(
        [replace(item, value=rebuild(item.value, change)) for item in kind.properties],
        rebuild(kind.rest, change),
        silent=kind.silent,
        keys=of_keys(kind.keys),
        low=kind.min,
        high=kind.max,
        some=of_keys(kind.some) if kind.some else None,
        counted=kind.counted,
    )


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
        case Items(states):
            steps = {
                number: [to for item, to in state.edges if inhabited(item, alive)]
                for number, state in enumerate(states)
            }
            reached = [0]
            for number in reached:
                reached.extend(to for to in dict.fromkeys(steps[number]) if to not in reached)
            return any(states[number].accepts for number in reached)
        case Object(properties, rest, _, keys, low, _, some):
            able = [item.required for item in properties if inhabited(item.value, alive)]
            others = inhabited(rest, alive) or any(inhabited(one.value, alive) for one in keys)
            needed = sum(item.required for item in properties)
            has_some = not some or any(inhabited(one.value, alive) for one in some)
            return has_some and sum(able) == needed and (others or len(able) >= low)
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
