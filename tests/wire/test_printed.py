"""Values between tags as templates write them: printed by Python, and strings inside a fence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.schema.reading.normalize import normalize
from toolgram.wire.encodings.expected import UNKNOWN, Expected
from toolgram.wire.encodings.json import Status
from toolgram.wire.encodings.printed import PrintedValue, as_json_text
from toolgram.wire.encodings.raw import as_json
from toolgram.wire.encodings.tagged import Tagged, TaggedReader

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=("C",))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab'T\"", max_size=4), inner),
    max_leaves=8,
)
CONTAINERS = VALUES.filter(lambda value: isinstance(value, list | dict))


def read(text: str, size: int) -> str:
    pieces: list[str] = []
    reader = PrintedValue(pieces.append)
    buffer, status = "", Status.MORE
    for at in range(0, len(text), size):
        assert status is Status.MORE
        buffer += text[at : at + size]
        end, status = reader.consume(buffer, 0)
        buffer = buffer[end:]
    assert status is Status.DONE
    assert not buffer
    return "".join(pieces)


@given(CONTAINERS, st.integers(1, 9))
def test_what_python_prints_and_json_writes_is_read_however_it_is_cut(value: Any, size: int) -> None:
    assert json.loads(read(repr(value), size)) == value
    assert read(json.dumps(value), size) == json.dumps(value)


@pytest.mark.parametrize("text", ["plain", "[a", "{'a': 1} and more", "['x'", ""])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert as_json_text(text) == text


def test_where_a_string_is_admitted_what_python_printed_is_one() -> None:
    assert as_json("['x']", UNKNOWN, frozenset(("string", "array"))) == "\"['x']\""
    assert as_json("{'x': None}", UNKNOWN, frozenset(("null", "object"))) == '{"x": null}'


FENCED = Tagged("fenced", "<p ", (("", ">"),), "</p>", fence=("<![CDATA[", "]]>"))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "integer"]}}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<p a>x</p>", {"a": "x"}),
        ("<p a></p>", {"a": ""}),
        ("<p a><![CDATA[x </p> <y>\n]]></p><p b>3</p>", {"a": "x </p> <y>\n", "b": 3}),
        ("<p b><![CDATA[3]]></p>", {"b": "3"}),
        ("<p a><![x</p>", {"a": "<![x"}),
    ],
)
def test_a_fence_is_no_part_of_the_string(text: str, value: dict[str, Any]) -> None:
    canonical = normalize(SCHEMA, mode="relaxed", closed=True, parameters=True).type
    for size in (1, 3, 99):
        pieces: list[str] = []
        reader = TaggedReader(FENCED, Expected(canonical, canonical.root), pieces.append)
        buffer, whole = "", text + "<end>"
        for at in range(0, len(whole), size):
            buffer += whole[at : at + size]
            end, status = reader.consume(buffer, 0)
            buffer = buffer[end:]
            if status is Status.DONE:
                break
        assert json.loads("".join(pieces)) == value
