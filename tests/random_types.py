"""Random canonical types, the values that they hold by their definition, and values that are near to them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from random_schemas import KEYS, NUMBERS, TEXTS, VALUES
from toolgram.grammar.regular.regex import pattern
from toolgram.schema import types
from toolgram.schema.types import ANY, BOOLEAN, NEVER, NULL, Canonical, Type, arrays
from toolgram.schema.types.rebuild import without_dead_ends

LANGUAGES = tuple(map(pattern, ("^a", "b$", "^[ab]*$", "^a{1,3}$", "^(a|b1)$", "^.?$")))
KEY_LANGUAGES = (pattern("^a"), pattern("^[^a]"))  # which have no text in common


def _limits(longest: int) -> st.SearchStrategy[tuple[int, int | None]]:
    return st.tuples(st.integers(0, longest), st.none() | st.integers(0, longest))


@st.composite
def _strings(draw: st.DrawFn) -> Type:
    return types.string(*draw(_limits(3)), draw(st.none() | st.sampled_from(LANGUAGES)))


@st.composite
def _numbers(draw: st.DrawFn) -> Type:
    bounds = st.none() | st.sampled_from([Decimal(n) / 4 for n in range(-16, 17)])
    steps = st.sampled_from([None, None, Decimal(3), Decimal("0.5"), Decimal("1.5"), Decimal("0.1")])
    integer, low, high = draw(st.booleans()), draw(bounds), draw(bounds)
    low_open, high_open = low is not None and draw(st.booleans()), high is not None and draw(st.booleans())
    broken = not integer and draw(st.integers(0, 3)) == 0
    return types.number(types.Number(integer, low, high, low_open, high_open, draw(steps), broken))


@st.composite
def _arrays(draw: st.DrawFn, inner: st.SearchStrategy[Type]) -> Type:
    if draw(st.integers(0, 3)) == 0:
        return arrays.containing(draw(inner), draw(st.none() | inner), draw(st.integers(0, 2)), None)
    rest = draw(st.sampled_from([ANY, NEVER]) | inner)
    return types.array(draw(st.lists(inner, max_size=2)), rest, *draw(_limits(3)))


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Type]) -> Type:
    names = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3))
    properties = [types.Property(name, draw(inner), draw(st.booleans())) for name in names]
    rest = draw(st.sampled_from([ANY, ANY, NEVER]) | inner)
    keys = [types.Keys(one, draw(inner)) for one in KEY_LANGUAGES] if draw(st.integers(0, 4)) == 0 else []
    low, high = draw(_limits(3)) if draw(st.booleans()) else (0, None)
    some = [types.Keys(draw(st.sampled_from(KEY_LANGUAGES)), draw(inner))] if draw(st.integers(0, 4)) == 0 else []
    if some and keys:
        some = [keys[0]]  # which have to be among the other keys
    elif some:
        rest = ANY
    if keys or rest != NEVER:
        low = min(low, sum(item.required for item in properties) + 1)  # beyond, keys would have to be told apart
    rest = NEVER if keys else rest
    return types.object_type(properties, rest, keys=keys, low=low, high=high, some=some or None)


def _composed(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return _arrays(inner) | _objects(inner) | st.lists(inner, max_size=3).map(types.union)


_LEAVES = st.one_of(
    st.sampled_from([ANY, NEVER, NULL, BOOLEAN, types.Word("true")]),
    TEXTS.map(types.Text),
    _strings(),
    _numbers(),
)
TYPES: st.SearchStrategy[Type] = st.recursive(_LEAVES, _composed, max_leaves=5)


@st.composite
def recursive_types(draw: st.DrawFn) -> Canonical:
    """A type with definitions that may refer to themselves, inside of objects and arrays alone."""
    references = st.sampled_from([types.Reference("x"), types.Reference("y")])
    inner = TYPES | references
    definitions = {key: draw(_objects(inner) | _arrays(inner)) for key in "xy"}
    return without_dead_ends(draw(st.recursive(_LEAVES | references, _composed, max_leaves=4)), definitions)


def holds(canonical: Canonical, value: Any) -> bool:
    """Whether the value is of the type: what each type says, word for word."""

    def of(kind: Type, value: Any) -> bool:
        match kind:
            case types.Anything():
                return True
            case types.Reference(key):
                return of(canonical.definitions[key], value)
            case types.Union(options):
                return any(of(option, value) for option in options)
            case types.Word(text):
                return {"null": None, "true": True, "false": False}[text] is value
            case types.Text(text):
                return isinstance(value, str) and value == text
            case types.String(low, high, automaton):
                fits = isinstance(value, str) and low <= len(value) and (high is None or len(value) <= high)
                return fits and (automaton is None or automaton.accepts(value))
            case types.Number():
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return is_number and _number_holds(kind, Fraction(Decimal(repr(value))))
            case types.Array(prefix, rest, low, high):
                fits = isinstance(value, list) and low <= len(value) and (high is None or len(value) <= high)
                return fits and all(
                    of(prefix[index] if index < len(prefix) else rest, item) for index, item in enumerate(value)
                )
            case types.Items(states):
                return isinstance(value, list) and any(states[number].accepts for number in _reached(states, value))
            case types.Object():
                return isinstance(value, dict) and _object_holds(kind, value)

    def _reached(states: Sequence[types.ItemState], items: list[Any]) -> set[int]:
        reached = {0}
        for item in items:
            reached = {to for number in reached for expected, to in states[number].edges if of(expected, item)}
        return reached

    def _object_holds(kind: types.Object, value: dict[str, Any]) -> bool:
        declared = {item.name: item.value for item in kind.properties}
        if len(value) < kind.min or (kind.max is not None and len(value) > kind.max):
            return False
        if any(item.required and item.name not in value for item in kind.properties):
            return False
        for key, item in value.items():
            languages = [one.value for one in kind.keys if one.automaton.accepts(key)]
            if not of(declared[key] if key in declared else languages[0] if languages else kind.rest, item):
                return False
        others = [(key, item) for key, item in value.items() if key not in declared]
        found = (of(one.value, item) for key, item in others for one in kind.some if one.automaton.accepts(key))
        return not kind.some or any(found)

    return of(canonical.root, value)


def _number_holds(kind: types.Number, value: Fraction) -> bool:
    if (kind.integer and value.denominator != 1) or (kind.broken and value.denominator == 1):
        return False
    if kind.low is not None and (value < Fraction(kind.low) or (kind.low_open and value == Fraction(kind.low))):
        return False
    if kind.high is not None and (value > Fraction(kind.high) or (kind.high_open and value == Fraction(kind.high))):
        return False
    return kind.multiple is None or value % Fraction(kind.multiple) == 0


@st.composite
def near_type(draw: st.DrawFn, kind: Type, definitions: Any, depth: int = 0) -> Any:
    """A value of the type, more or less."""

    def of(inner: Type) -> Any:
        return draw(near_type(inner, definitions, depth + 1))

    if depth > 4 or draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    match kind:
        case types.Reference(key):
            return of(definitions[key])
        case types.Union(options) if options:
            return of(draw(st.sampled_from(options)))
        case types.Word(text):
            return {"null": None, "true": True, "false": False}[text]
        case types.Text(text):
            return text
        case types.String():
            return draw(TEXTS)
        case types.Number():
            return draw(NUMBERS)
        case types.Array(prefix, rest, low, high):
            size = draw(st.integers(max(low - 1, 0), min(low + 3, 4 if high is None else high + 1)))
            return [of(prefix[index] if index < len(prefix) else rest) for index in range(size)]
        case types.Items(states):
            items: list[Any] = []
            state = states[0]
            while state.edges and len(items) < 5 and draw(st.integers(0, 3)):
                item, target = draw(st.sampled_from(state.edges))
                items.append(of(item))
                state = states[target]
            return items
        case types.Object(properties, rest):
            chosen = {item.name: of(item.value) for item in properties if item.required or draw(st.booleans())}
            other = rest if not kind.keys else kind.keys[0].value
            return chosen | {key: of(other) for key in draw(st.lists(TEXTS, max_size=2)) if key not in chosen}
        case _:
            return draw(VALUES)
