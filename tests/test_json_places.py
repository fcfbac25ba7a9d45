"""Places in JSON are found as it arrives, however it is cut."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolgram.chat.json_places import JsonPlaces
from toolgram.errors import json_pointer

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def leaves(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    """The scalars of a value with their pointers, in their order."""
    if isinstance(value, list | dict):
        items: Any = enumerate(value) if isinstance(value, list) else value.items()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        return [leaf for step, each in items for leaf in leaves(each, pointer + json_pointer(step))]
    return [(pointer, value)]


@given(VALUES, st.booleans(), st.sets(st.integers(1, 200)))
def test_every_scalar_is_found_where_it_stands(value: Any, ascii_only: bool, cuts: set[int]) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    places = JsonPlaces()
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    for start, end in itertools.pairwise(edges):
        places.feed(text[start:end])
    assert places.size == len(text)
    assert not places.open
    found: list[tuple[str, Any]] = []
    for one in places.scalars:
        inside = text[one.start : one.end]
        found.append((one.pointer, json.loads(f'"{inside}"' if one.kind == "string" else inside)))
    assert found == leaves(value)


def test_items_have_spans() -> None:
    text = '{"a": [1, "x", [2], {"b": 3}, tru'
    places = JsonPlaces()
    for char in text:
        places.feed(char)
    *_, array = places.open
    assert [text[start:end] for start, end in array.spans] == ["1", '"x"', "[2]", '{"b": 3}']
    assert array.pointer == "/a"
    assert text[array.start] == "["
    assert array.begun == text.index("tru")
