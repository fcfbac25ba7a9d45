"""Formats against jsonschema-rs: never more than it admits, and no less where a format is exact."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.grammar.regular.regex import Unsupported
from toolgram.schema import schema_grammar
from toolgram.schema.reading.formats import format_automaton, is_exact
from written_strings import written

FORMATS = [
    "date", "time", "date-time", "duration", "email", "idn-email", "hostname", "ipv4", "ipv6", "uri", "uri-reference",
    "uuid", "json-pointer", "relative-json-pointer",
]  # fmt: skip

# One text of each kind, from which others are made by small changes
SEEDS = {
    "date": ["2024-02-29", "2023-12-31", "1900-02-28", "2000-02-29", "0000-02-29", "2023-04-30"],
    "time": ["23:59:60Z", "12:00:00.5+05:30", "00:00:00z", "23:59:60.123-00:00", "12:00:00-23:59"],
    "date-time": ["2024-02-29T23:59:60Z", "1985-04-12t23:20:50.52z", "1996-12-19T16:39:57-08:00"],
    "duration": ["P1Y2M3DT4H5M6S", "PT36H", "P4W", "P1YT1H", "P2M3D", "PT5M", "P0D", "PT1M6S"],
    "email": ["first.last@example.org", "a@b", "a+b@1.2", "o'hara@a--b.c-d", "a.b.c.d@x"],
    "idn-email": ["jürgen@example.org", "実例@a", "a.b@c"],
    "hostname": ["www.example.org", "a", "a-b.c--d.e", "1.2.3.4", "x" * 63, f"{'x' * 63}.{'y' * 30}", "a.b.c.d.e.f.g"],
    "ipv4": ["127.0.0.1", "255.249.199.99", "1.0.10.0"],
    "ipv6": ["::", "1:2:3:4:5:6:7:8", "fe80::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "1::8", "1:2:3:4:5:6:1.2.3.4"],
    "uri": [
        "http://u:p@example.org:80/a/b?c=d#e",
        "urn:isbn:1",
        "file:///a%20b",
        "http://[::1]:8/x",
        "mailto:a@b",
        "a:",
    ],
    "uri-reference": ["/a/b?c#d", "../x", "//host/p", "?q", "#f", "", "a%20b", "http://a", "./a:b", "//[v1.x]"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"],
    "json-pointer": ["", "/a~0b/~1", "/", "//é"],
    "relative-json-pointer": ["0", "12/a~0b/~1", "1#", "0/"],
}
_DIGITS_IN_PLACE = re.compile(
    r"([0-9]{4}(-[0-9]{2}){2}[Tt]?)?([0-9]{2}(:[0-9]{2}){2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?"
)


@lru_cache(maxsize=64)
def judge(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"type": "string", "format": name}, validate_formats=True)


def known_to_differ(name: str, text: str) -> bool:
    """Whether a text is among those that the automaton leaves out, as the module says, or that the judge errs on."""
    if name in ("date", "time", "date-time") and not _DIGITS_IN_PLACE.fullmatch(text):
        return True  # the judge takes other characters for digits: +985-04-12
    if is_exact(name):
        return False
    if name in ("time", "date-time", "duration") and re.search("[0-9]{10}", text):
        return True
    if name == "duration":
        return False
    if name in ("time", "date-time"):
        return ":60" in text and re.search(r"[+-](?!00:00)..:..$", text) is not None
    host = text if name == "hostname" else text.rpartition("@")[2]
    labels = host.split(".")
    return (
        len(labels) > 7
        or any(len(label) > 30 for label in labels[1:])
        or any(label[2:4] == "--" for label in labels)
        or (name != "hostname" and (re.search(r'["\[]', text) is not None or text.count(".", 0, text.rfind("@")) > 4))
        or (name == "email" and any(len(atom) > 12 for atom in text.partition("@")[0].split(".")))
        or (name == "idn-email" and (not host.isascii() or len(text.encode()) > 16 or text.count(".") > 1))
    )


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("time", "12:00:00.", "Z"), ("date-time", "2024-02-29T12:00:00.", "+01:00"), ("duration", "PT", "S")],
)
def test_digits_do_not_go_on_to_the_end_of_the_context(name: str, before: str, after: str) -> None:
    grammar = schema_grammar({"type": "string", "format": name})
    taken = [count for count in (1, 9, 10, 1000) if grammar.accepts(f'"{before}{"0" * count}{after}"')]
    assert taken == [1, 9]


@pytest.mark.parametrize("name", FORMATS)
def test_sentences_are_valid(name: str) -> None:
    automaton = format_automaton(name)
    assert automaton is not None
    grammar = written(automaton)
    for seed in range(150):
        text = grammar.sample(seed)
        assert judge(name).is_valid(text), text
        assert automaton.accepts(text), text


@pytest.mark.parametrize("name", FORMATS)
def test_seeds_are_admitted(name: str) -> None:
    automaton = format_automaton(name)
    assert automaton is not None
    grammar = written(automaton)
    for text in SEEDS[name]:
        assert automaton.accepts(text), text
        assert grammar.accepts(text), text


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_changed_texts_are_judged_alike(name: str, data: st.DataObject) -> None:
    automaton = format_automaton(name)
    assert automaton is not None
    text = data.draw(st.sampled_from(SEEDS[name]))
    letters = st.sampled_from(sorted({*"".join(SEEDS[name]), *"0a-.:/+Z% é\n"}))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.just("") | letters) + text[at + data.draw(st.integers(0, 2)) :]
    if automaton.accepts(text):
        assert judge(name).is_valid(text), text
    elif not known_to_differ(name, text):
        assert not judge(name).is_valid(text), text


def test_every_day_of_four_hundred_years() -> None:
    automaton = format_automaton("date")
    assert automaton is not None
    day = date(1899, 1, 1)
    dates = {str(day + timedelta(days=number)) for number in range(146_097 + 800)}
    for year in (1899, 1900, 1904, 1999, 2000, 2023, 2024, 2100, 2200):
        for month in range(14):
            for number in range(33):
                text = f"{year}-{month:02}-{number:02}"
                assert automaton.accepts(text) is (text in dates), text


def test_names_are_never_too_long() -> None:
    hostname, email = format_automaton("hostname"), format_automaton("email")
    assert hostname is not None
    assert email is not None
    assert hostname.lengths()[1] is not None
    longest = f"{'a' * 63}{('.' + 'b' * 30) * 6}"
    assert hostname.lengths() == (1, len(longest))
    assert hostname.accepts(longest)
    assert judge("hostname").is_valid(longest)
    assert email.accepts(f"{'c' * 64}@{longest}")
    assert judge("email").is_valid(f"{'c' * 64}@{longest}")


def test_unknown_formats_say_nothing() -> None:
    assert format_automaton("int32") is None
    assert format_automaton("") is None


@pytest.mark.parametrize("name", ["regex", "idn-hostname"])
def test_formats_that_are_not_regular_are_refused(name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        format_automaton(name)


STRING = {"type": "string"}
ADDRESS: list[Any] = [{"format": "ipv4"}, {"format": "ipv6"}]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "anyOf": ADDRESS},
        {"type": ["string", "null"], "anyOf": ADDRESS},
        {"allOf": [STRING, {"anyOf": ADDRESS}]},
        {"anyOf": [STRING, {"type": "integer"}], "oneOf": ADDRESS},
        {"type": "string", "$ref": "#/$defs/a", "$defs": {"a": {"anyOf": ADDRESS}}},
        {"anyOf": ADDRESS, "$ref": "#/$defs/a", "$defs": {"a": STRING}},
        {"type": "string", "if": {"format": "ipv4"}, "else": {"format": "ipv6"}},
        {"type": "array", "items": {"type": "string", "allOf": [{"anyOf": ADDRESS}]}},
        {"type": "object", "propertyNames": {"anyOf": ADDRESS}, "additionalProperties": True},
    ],
)
def test_a_format_is_enforced_where_its_type_stands_elsewhere(schema: dict[str, Any]) -> None:
    allowed = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    grammar = schema_grammar(schema)
    texts: list[Any] = ["127.0.0.1", "::1", "localhost", ""]
    for value in (*texts, *([text] for text in texts), *({text: 1} for text in texts), None, 7):
        assert grammar.accepts(json.dumps(value)) == allowed.is_valid(value), value


def test_a_format_that_is_denied_is_no_annotation() -> None:
    grammar = schema_grammar({"type": "string", "not": {"format": "date"}})
    assert grammar.accepts('"tomorrow"')
    assert not grammar.accepts('"2026-11-22"')


def test_a_format_alone_says_nothing() -> None:
    for schema in (
        {"format": "ipv4"},
        {"anyOf": ADDRESS},
        {"type": "object", "anyOf": [{"properties": {"a": {"format": "date"}}}]},
    ):
        assert schema_grammar(schema).accepts('{"a": "x"}')
