"""Values between tags as templates write them: printed by Python, and strings inside a fence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from made_up import SHARED
from situations import tool
from toolgram.schema.reading.normalize import normalize
from toolgram.styles.discovery import discover
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


WORDS = {"bool": {"type": "boolean"}, "number": {"type": ["integer", "null"]}, "one": {"enum": ["a", True, None]}}
NESTED = {"within": {"type": "object", "properties": {"it": {"type": ["boolean", "null"]}}}}
GIVEN: tuple[dict[str, Any], ...] = (
    {"bool": True, "number": None, "one": None, "within": {"it": True}},
    {"bool": False, "number": 3, "one": True, "within": {"it": None}},
)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(
    ("name", "found"),
    [
        *((name, False) for name in ("Qwen3-Coder", "Qwen3.5-4B", "google-gemma-4-31B-it", "GLM-4.6")),
        *((name, True) for name in ("Qwen3-Coder", "Qwen3.5-4B", "GLM-4.6")),
    ],
)
def test_the_words_of_a_template_are_admitted_and_read(name: str, found: bool, given: dict[str, Any]) -> None:
    """However it prints true, false and null: a model that was trained on it writes them so."""
    path = SHARED / f"{name}.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    template = toolgram.ChatTemplate.from_file(path)
    style = discover(template).style if found else None
    assert style is not None or not found
    properties = WORDS | NESTED
    function = tool("look", {"type": "object", "properties": properties, "required": [*properties]})
    body = {"messages": [{"role": "user", "content": "?"}], "tools": [function], "tool_choice": "required"}
    plan = toolgram.plan(body, template, style)
    call = {"id": "0", "type": "function", "function": {"name": "look", "arguments": json.dumps(given)}}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    history = [*body["messages"], turn]
    text = toolgram.plan(body | {"messages": history, "add_generation_prompt": False}, template, style).prompt
    assert plan.constraint is not None
    written = plan.write(toolgram.Message(tool_calls=(toolgram.ToolCall("look", json.dumps(given)),)))
    assert written is not None
    begin, end = written.index("look"), written[written.rindex("it") :].partition("}")[2]
    shown = written[:begin] + text[text.rindex("look") :].partition(end)[0] + end
    assert plan.constraint.grammar.accepts(shown), shown
    assert [json.loads(each.arguments) for each in plan.parse(shown).tool_calls] == [given]
