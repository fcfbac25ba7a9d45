"""Types as a whole: what has no finite value is taken out, and every part can be changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from operator import is_

from toolgram.schema.types import (
    NEVER,
    Array,
    Canonical,
    Items,
    ItemState,
    Keys,
    Object,
    Property,
    Reference,
    Type,
    Union,
    array,
    item_at,
    object_type,
    union,
)
from toolgram.schema.types.item_states import item_states


def rebuild(kind: Type, change: Callable[[Type], Type]) -> Type:
    """The type with `change` applied to each part of it, innermost first, and made canonical again."""
    match kind:
        case Union(options):
            parts = [rebuild(option, change) for option in options]
            kind = kind if all(map(is_, parts, options)) else union(parts)
        case Array(prefix, rest, low, high, unique):
            parts = [rebuild(item, change) for item in prefix]
            others = rebuild(rest, change)
            same = others is rest and all(map(is_, parts, prefix))
            kind = kind if same else array(parts, others, low, high, unique)
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

    properties = [_with_value(item, rebuild(item.value, change)) for item in kind.properties]
    rest, keys, some = rebuild(kind.rest, change), of_keys(kind.keys), of_keys(kind.some)
    if rest is kind.rest and not keys and not some and all(map(is_, properties, kind.properties)):
        return kind
    return object_type(
        properties,
        rest,
        silent=kind.silent,
        keys=keys,
        low=kind.min,
        high=kind.max,
        some=some if kind.some else None,
        counted=kind.counted,
    )


def _with_value(item: Property, value: Type) -> Property:
    return item if value is item.value else Property(item.name, value, item.required, item.pointer, item.declared)


def closed(kind: Object) -> Type:
    """The objects that have no keys but the declared ones.

    A key that only keeps another type from holding is none of these, as for `unevaluatedProperties`: whoever wrote
    `oneOf` with `a` in one branch and `b` in another wants no `b` beside `a`, of whatever type that may be.
    """
    others = [item for item in kind.properties if not item.declared]
    if kind.some or any(item.required for item in others):
        return NEVER
    made = object_type([item for item in kind.properties if item.declared], NEVER, low=kind.min, high=kind.max)
    return replace(made, closed=True) if isinstance(made, Object) else made


def settled(kind: Object) -> Object:
    """The same objects, whether or not the schema spoke of other keys, and which of its parts spoke of a key."""
    properties = kind.properties
    if not all(item.declared for item in properties):
        properties = tuple(replace(item, declared=True) for item in properties)
    elif not kind.silent:
        return kind
    # not `replace`, which takes four times as long, for every object of a document
    return Object(
        properties,
        kind.rest,
        keys=kind.keys,
        min=kind.min,
        max=kind.max,
        some=kind.some,
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
            needed = [item_at(kind, index) for index in range(min(kind.min, len(kind.prefix) + 1))]
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
    if not waiting:
        return Canonical(root, definitions)

    def change(kind: Type) -> Type:
        return NEVER if isinstance(kind, Reference) and kind.key not in alive else kind

    live = {key: rebuild(kind, change) for key, kind in definitions.items() if key in alive}
    return Canonical(rebuild(root, change), live)
