"""The laws of sets hold for canonical types: by the values that they hold, and by what is found to be empty."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from random_types import TYPES, holds, near_type, recursive_types
from toolgram.errors import GrammarError
from toolgram.grammar.grammar import Grammar
from toolgram.schema import RuleNames, Spelling, compile_type
from toolgram.schema.types import ANY, EVERY_KIND, NEVER, Canonical, TooLarge, Type, union
from toolgram.schema.types.complement import complement, subtract
from toolgram.schema.types.intersect import disjoint, intersect
from toolgram.schema.types.rebuild import without_dead_ends
from toolgram.schema.writing.values import spell_as

SHORT = Spelling(integer_digits=7, fraction_digits=4)
laws = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])


def no_reference(key: str) -> Type:
    raise KeyError(key)


def both(a: Type, b: Type) -> Type:
    return said(lambda: intersect(a, b, no_reference))


def without(a: Type) -> Type:
    return said(lambda: complement(a, no_reference))


def less(a: Type, b: Type) -> Type:
    return said(lambda: subtract(a, b, no_reference))


def said(make: Any) -> Type:
    """What it makes; a type that cannot be said is no example of a law."""
    try:
        return make()
    except TooLarge:
        assume(condition=False)
        raise


def member(kind: Type, value: Any) -> bool:
    return holds(Canonical(kind, {}), value)


def is_empty(kind: Type) -> bool:
    return without_dead_ends(kind, {}).root == NEVER


def check_same(a: Type, b: Type, data: st.DataObject) -> None:
    """Both hold the same values, drawn near either."""
    for kind in (a, b):
        for _ in range(3):
            value = data.draw(near_type(kind, {}))
            assert member(a, value) == member(b, value), (value, a, b)


@laws
@given(TYPES, TYPES, st.data())
def test_intersection_union_and_difference_hold_what_they_should(a: Type, b: Type, data: st.DataObject) -> None:
    meet, join, rest = both(a, b), union([a, b]), less(a, b)
    for kind in (a, b, join):
        for _ in range(3):
            value = data.draw(near_type(kind, {}))
            in_a, in_b = member(a, value), member(b, value)
            assert member(meet, value) == (in_a and in_b), value
            assert member(join, value) == (in_a or in_b), value
            assert member(rest, value) == (in_a and not in_b), value
            assert not (disjoint(a, b, no_reference) and in_a and in_b), value


@laws
@given(TYPES, st.data())
def test_a_complement_holds_what_the_type_does_not(a: Type, data: st.DataObject) -> None:
    other = without(a)
    for kind in (a, other, ANY):
        for _ in range(3):
            value = data.draw(near_type(kind, {}))
            assert member(other, value) != member(a, value), value


@laws
@given(TYPES)
def test_nothing_is_of_a_type_and_of_its_complement(a: Type) -> None:
    other = without(a)
    assert is_empty(both(a, other))
    assert is_empty(both(other, a))
    assert is_empty(less(a, a))


@laws
@given(TYPES, st.data())
def test_a_double_complement_is_the_type(a: Type, data: st.DataObject) -> None:
    twice = without(without(a))
    check_same(a, twice, data)
    assert is_empty(less(twice, a))


@laws
@given(TYPES, TYPES, st.data())
def test_de_morgan(a: Type, b: Type, data: st.DataObject) -> None:
    not_a, not_b = without(a), without(b)
    check_same(without(union([a, b])), both(not_a, not_b), data)
    check_same(without(both(a, b)), union([not_a, not_b]), data)


@laws
@given(TYPES, TYPES, TYPES, st.data())
def test_intersection_and_union_distribute_and_commute(a: Type, b: Type, c: Type, data: st.DataObject) -> None:
    check_same(both(a, union([b, c])), union([both(a, b), both(a, c)]), data)
    check_same(union([a, both(b, c)]), both(union([a, b]), union([a, c])), data)
    check_same(both(a, b), both(b, a), data)
    check_same(both(both(a, b), c), both(a, both(b, c)), data)
    check_same(union([a, b]), union([b, a]), data)
    check_same(union([a, both(a, b)]), a, data)


@laws
@given(TYPES, st.data())
def test_the_bounds_of_the_order(a: Type, data: st.DataObject) -> None:
    assert both(a, ANY) == both(ANY, a) == a
    assert both(a, NEVER) == both(NEVER, a) == NEVER
    assert union([a, NEVER]) == a
    assert union([a, ANY]) == ANY
    check_same(both(a, a), a, data)
    assert is_empty(less(a, EVERY_KIND))


@laws
@given(recursive_types(), st.integers(0, 1000), st.data())
def test_a_type_is_empty_if_and_only_if_it_has_no_sentence(
    canonical: Canonical, seed: int, data: st.DataObject
) -> None:
    made = compile_type(canonical, spelling=SHORT, names=RuleNames("root"), root_name="value")
    grammar = Grammar({"root": made.expr, **made.rules})
    if canonical.root == NEVER:
        with pytest.raises(GrammarError):
            grammar.sample(seed)
    else:
        for step in range(3):
            text = grammar.sample(seed + step)
            assert holds(canonical, json.loads(text)), text
    value = data.draw(near_type(canonical.root, canonical.definitions))
    text = spell_as(canonical, value, Spelling())
    assert (text is not None) == holds(canonical, value), value
