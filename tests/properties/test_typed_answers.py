"""Values of generated types: what a type has is written, read and checked to the same value."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, create_model
from typing_extensions import TypedDict

import toolgram
from situations import CHATML
from toolgram import Message


class Suit(Enum):
    CLUBS = "clubs"
    HEARTS = "♥"
    NONE = 0


class Kind(NamedTuple):
    """A type, and its values."""

    hint: Any
    values: st.SearchStrategy[Any]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PLAIN = [
    Kind(int, st.integers(-(10**18), 10**18)),
    Kind(Annotated[int, Field(ge=-5, lt=50)], st.integers(-5, 49)),
    Kind(bool, st.booleans()),
    Kind(float, st.integers(-(10**6), 10**6).map(lambda number: number / 64)),
    Kind(str, TEXTS),
    Kind(Annotated[str, Field(pattern="^[a-z]*$", max_length=4)], st.text(string.ascii_lowercase, max_size=4)),
    Kind(type(None), st.none()),
    Kind(Literal["a", 1], st.sampled_from(["a", 1])),
    Kind(Suit, st.sampled_from(Suit)),
    Kind(UUID, st.uuids()),
]
TIMES = [
    Kind(date, st.dates()),
    Kind(datetime, st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))),
]
NAMES = st.lists(st.sampled_from(["title", "name", "items", "kind", "a_b", "ü"]), min_size=1, max_size=3, unique=True)


def listed(kind: Kind) -> Kind:
    return Kind(list[kind.hint], st.lists(kind.values, max_size=3))


def keyed(kind: Kind) -> Kind:
    return Kind(dict[str, kind.hint], st.dictionaries(TEXTS, kind.values, max_size=2))


def optional(kind: Kind) -> Kind:
    return Kind(kind.hint | None, st.none() | kind.values)


def pair(one: Kind, other: Kind) -> Kind:
    return Kind(tuple[one.hint, other.hint], st.tuples(one.values, other.values))


def model(names: list[str], kinds: list[Kind], *, optional_last: bool) -> Kind:
    """A model whose first field goes by an alias, and whose last may have a default."""
    fields: dict[str, Any] = {name: (kind.hint, ...) for name, kind in zip(names, kinds, strict=True)}
    fields[names[0]] = (kinds[0].hint, Field(alias=f"{names[0]} of it"))
    if optional_last and len(names) > 1:
        fields[names[-1]] = (kinds[-1].hint | None, None)
    made: Any = create_model("Made", **fields)
    keys = [f"{names[0]} of it", *names[1:]]
    values = st.tuples(*(kind.values for kind in kinds))
    return Kind(made, values.map(lambda each: made(**dict(zip(keys, each, strict=True)))))


def dataclass(names: list[str], kinds: list[Kind], *, optional_last: bool) -> Kind:
    made: Any = make_dataclass("Made", [(name, kind.hint) for name, kind in zip(names, kinds, strict=True)])
    return Kind(made, st.tuples(*(kind.values for kind in kinds)).map(lambda values: made(*values)))


def typed_dict(names: list[str], kinds: list[Kind], *, optional_last: bool) -> Kind:
    hints = {name: kind.hint for name, kind in zip(names, kinds, strict=True)}
    values = {name: kind.values for name, kind in zip(names, kinds, strict=True)}
    left_out = {names[-1]: values.pop(names[-1])} if optional_last else {}
    hints |= {name: NotRequired[hints[name]] for name in left_out}
    return Kind(TypedDict("Made", hints), st.fixed_dictionaries(values, optional=left_out))  # pyright: ignore - made from data


@st.composite
def records(draw: st.DrawFn, kinds: st.SearchStrategy[Kind]) -> Kind:
    make: Callable[..., Kind] = draw(st.sampled_from([model, dataclass, typed_dict]))
    names = draw(NAMES)
    return make(names, [draw(kinds) for _ in names], optional_last=draw(st.booleans()))


def types_of(leaves: list[Kind]) -> st.SearchStrategy[Kind]:
    return st.recursive(
        st.sampled_from(leaves),
        lambda kinds: st.one_of(
            kinds.map(listed), kinds.map(keyed), kinds.map(optional), st.builds(pair, kinds, kinds), records(kinds)
        ),
        max_leaves=4,
    )


def planned(hint: Any) -> toolgram.Plan:
    return toolgram.plan({"messages": [{"role": "user", "content": "Well?"}], "response_format": hint}, CHATML)


@given(types_of([*PLAIN, *TIMES]), st.data())
def test_a_value_is_written_and_read_back_equal(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(kind.values)
    dumped = TypeAdapter[Any](kind.hint).dump_python(value, mode="json", by_alias=True)
    plan = planned(kind.hint)
    text = plan.write(Message(json.dumps(dumped)))
    assert text is not None
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(text)
    read = plan.value(plan.parse(text))
    assert (read, type(read)) == (value, type(value))


@given(types_of(PLAIN), st.integers(0, 1000))
def test_what_the_grammar_admits_is_of_the_type(kind: Kind, seed: int) -> None:
    """Of dates it admits the year 0, which Python has not."""
    plan = planned(kind.hint)
    assert plan.constraint is not None
    plan.value(plan.parse(plan.constraint.grammar.sample(seed)))
