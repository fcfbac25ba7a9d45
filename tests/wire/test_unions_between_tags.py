"""Between tags nothing shows the type of a value: what may be text and something else is read to what is valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import NOTHING
from toolgram.schema.reading.normalize import normalize
from toolgram.schema.writing.json_style import RuleNames
from toolgram.styles.native import NATIVE
from toolgram.styles.native.qwen_xml import PARAMETERS as QWEN_XML
from toolgram.wire import format as wire
from toolgram.wire.encodings.base import AnyEncoding, ToolArguments
from toolgram.wire.encodings.elements import Elements
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import Status
from toolgram.wire.encodings.tagged import Tagged
from toolgram.wire.writer import spelling_of

NODES = [node for style in NATIVE for node in wire.walk(style.wire.turn) if isinstance(node, wire.Arguments)]
BETWEEN_TAGS = {node.encoding.name: node.encoding for node in NODES if isinstance(node.encoding, Tagged | Elements)}
each_encoding = pytest.mark.parametrize("encoding", BETWEEN_TAGS.values(), ids=BETWEEN_TAGS)
TEXT, NULL = {"type": "string"}, {"type": "null"}
LIST = {"type": "array", "items": TEXT}


class Made:
    """The arguments of a tool with one parameter of this schema."""

    def __init__(self, encoding: AnyEncoding, key: str, schema: Any) -> None:
        self.encoding = encoding
        spelling = spelling_of(wire.PLAIN, encoding)
        document = {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}
        self.type = normalize(document, parameters=True, encoding=spelling.encoding).type
        self.arguments: ToolArguments = encoding.arguments(self.type, spelling, RuleNames("root"), "x", exact=True)

    def read(self, text: str, step: int) -> Any:
        """What is read of a text, so many characters at a time."""
        pieces: list[str] = []
        reader = self.encoding.reader(Expected(self.type, self.type.root), pieces.append)
        buffer, i, status = "", 0, Status.MORE
        for at in range(0, len(text + "</>"), step):
            buffer = buffer[i:] + (text + "</>")[at : at + step]
            i, status = reader.consume(buffer, 0)
            if status is not Status.MORE:
                break
        assert status is Status.DONE
        return json.loads("".join(pieces))


@each_encoding
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": ["string", "integer"]}, "5.5"),
        ({"type": ["string", "integer"]}, 5),
        ({"anyOf": [TEXT, {"type": "integer", "maximum": 100}]}, "500"),
        ({"enum": ["1", 5]}, "1"),
        ({"enum": ["1", 5]}, 5),
        ({"anyOf": [{"enum": ["[1]", "x"]}, {"type": "array", "items": TEXT}]}, "[1]"),
        ({"anyOf": [LIST, NULL]}, ["a", "b"]),
        ({"anyOf": [LIST, NULL]}, None),
        ({"anyOf": [LIST, {"type": "integer"}]}, 7),
    ],
)
def test_it_is_read_to_what_is_valid(encoding: AnyEncoding, schema: Any, value: Any) -> None:
    made = Made(encoding, "x", schema)
    text = made.arguments.spell({"x": value})
    assert text is not None
    assert Grammar({"root": made.arguments.expr, **made.arguments.rules}).accepts(text)
    assert [made.read(text, step) for step in (1, 3, 1000)] == [{"x": value}] * 3


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"id": 1}', {"id": 1}),
        ('{"id": 1, "in": {"a": 2, "b": 3}, "more": 2}', {"id": 1, "in": {"a": 2, "b": 3}, "more": 2}),
        ('{"id": "a"}', '{"id": "a"}'),
    ],
)
def test_an_object_may_hold_keys_that_no_schema_forbids(given: str, read: Any) -> None:
    """The grammar of a tool closes such objects; what a model writes besides makes them no text."""
    number = {"type": "integer"}
    inner = {"type": "object", "properties": {"a": number}}
    schema = {"anyOf": [TEXT, {"type": "object", "properties": {"id": number, "in": inner}}]}
    document = {"type": "object", "properties": {"x": schema}}
    closed = normalize(document, parameters=True, closed=True).type
    pieces: list[str] = []
    reader = QWEN_XML.reader(Expected(closed, closed.root), pieces.append)
    reader.consume(f"<parameter=x>\n{given}\n</parameter>\n</>", 0)
    assert json.loads("".join(pieces)) == {"x": read}


@pytest.mark.parametrize("encoding", [each for each in BETWEEN_TAGS.values() if isinstance(each, Tagged)])
@pytest.mark.parametrize(
    "other",
    [NULL, {"type": "integer"}, {"type": "boolean"}, {"enum": ["a", "b"]}, {"type": "string", "pattern": "^[a-z]+$"}],
)
def test_the_mark_that_ends_a_value_may_stand_in_the_strings_of_a_list(encoding: Tagged, other: Any) -> None:
    made = Made(encoding, "x", {"anyOf": [LIST, other]})
    value = {"x": [f"a{encoding.closer}b"]}
    text = made.arguments.spell(value)
    assert text is not None
    assert [made.read(text, step) for step in (1, 3, 1000)] == [value] * 3


@pytest.mark.parametrize("encoding", [each for each in BETWEEN_TAGS.values() if isinstance(each, Tagged)])
def test_a_key_that_would_be_read_as_another_is_not_written(encoding: Tagged) -> None:
    for key in (" pad ", f"a{encoding.after('string')}b", "\u2028", "k" * 600):
        made = Made(encoding, key, TEXT)
        text = made.arguments.spell({key: "v"})
        if encoding.shown(key) != key:  # one that is escaped reads as itself
            assert text is not None
            assert made.read(text, 1) == {key: "v"}
            continue
        assert made.arguments.expr == NOTHING
        assert text is None
    fine = Made(encoding, "a b", TEXT)
    text = fine.arguments.spell({"a b": "v"})
    assert text is not None
    assert fine.read(text, 1) == {"a b": "v"}
