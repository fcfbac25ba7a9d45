"""Caches are bounded by what they hold, whatever is asked for."""

from __future__ import annotations

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import toolgram
from situations import CHATML, tool
from toolgram.caching import (
    MEGABYTE,
    TOGETHER,
    Document,
    Memory,
    counted,
    digest,
    packed,
    packed_once,
    unchanged,
    unpacked,
    weighed,
)
from toolgram.grammar.regular.regex import pattern
from toolgram.schema.reading.formats import format_automaton
from toolgram.work import MAX_WORK, in_all, limited

STATM = Path("/proc/self/statm")


def twice(text: str) -> int:
    return 2 * len(text)


def thousand(letter: str) -> str:
    return letter * 1000


def test_what_was_used_last_is_kept_within_the_bound() -> None:
    made: list[str] = []

    @weighed(twice, Memory(20_000))
    def shout(text: str) -> str:
        made.append(text)
        return text.upper()

    texts = [thousand(letter) for letter in "abcdefghij"]
    assert [shout(text) for text in texts] == [text.upper() for text in texts]
    assert shout(texts[0]) == texts[0].upper()  # all of them fit
    assert len(made) == 10
    shout(thousand("k"))  # for which the oldest one goes: the first was used since
    shout(texts[0])
    assert len(made) == 11
    shout(texts[1])
    assert len(made) == 12


def test_what_would_fill_the_cache_is_made_each_time_and_drives_nothing_out() -> None:
    made: list[str] = []

    @weighed(twice, Memory(20_000))
    def copied(text: str) -> str:
        made.append(text)
        return text

    @weighed(twice, Memory(20_000))
    def multiplied(text: str) -> list[str]:
        made.append(text)
        return [text + str(number) for number in range(2000)]

    copied("small")
    for _ in range(2):
        assert copied("x" * 2000) == "x" * 2000
        assert len(multiplied("short")) == 2000
    copied("small")
    assert made == ["small", *["x" * 2000, "short"] * 2]


def test_functions_share_a_bound_and_are_forgotten_apart() -> None:
    made: list[str] = []
    memory = Memory(20_000)

    @weighed(twice, memory)
    def loud(text: str) -> str:
        made.append(text)
        return text.upper()

    @weighed(twice, memory)
    def backwards(text: str) -> str:
        made.append(text)
        return text[::-1]

    texts = [thousand(letter) for letter in "abcde"]
    for text in texts:
        assert (loud(text), backwards(text)) == (text.upper(), text)
    assert (len(made), memory.held) == (10, 20_000)
    assert loud(thousand("f")) == thousand("F")  # for which the first one goes
    assert (backwards(texts[0]), loud(texts[0])) == (texts[0], texts[0].upper())
    assert (len(made), memory.held) == (12, 20_000)
    vars(loud)["cache_clear"]()
    assert memory.held == 10_000
    assert backwards(texts[4]) == texts[4]
    assert len(made) == 12


def test_what_is_counted_is_forgotten_with_all_the_rest() -> None:
    made: list[str] = []

    @counted(2)
    def loud(text: str) -> str:
        made.append(text)
        return text.upper()

    assert [loud(text) for text in "aabca"] == list("AABCA")
    assert made == ["a", "b", "c", "a"]
    automaton = pattern("^[a-f]{3}$")
    assert pattern("^[a-f]{3}$") is automaton
    TOGETHER.forget()
    assert (loud("a"), made[4:]) == ("A", ["a"])
    again = pattern("^[a-f]{3}$")
    assert again == automaton
    assert again is not automaton


def test_what_stands_in_the_program_is_made_once() -> None:
    address = format_automaton("uri")
    TOGETHER.forget()
    assert format_automaton("uri") is address


def test_a_format_that_is_known_costs_as_many_steps() -> None:
    def steps() -> int:
        with in_all(MAX_WORK) as meter, limited(MAX_WORK):
            format_automaton("idn-email", 80)
        return MAX_WORK - meter.left

    first = steps()
    assert first > 0
    assert steps() == first


def test_errors_are_not_kept_and_threads_agree() -> None:
    tries: list[int] = []

    @weighed(int, Memory(1000))
    def half(number: int) -> int:
        tries.append(number)
        if number % 2:
            raise ValueError(number)
        return number // 2

    for _ in range(2):
        with pytest.raises(ValueError, match="3"):
            half(3)
    assert tries == [3, 3]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(half, [4, 6, 8] * 50)) == [2, 3, 4] * 50


def _resident() -> int:
    """Bytes of memory that are in use; what the C library keeps, though it is free, depends on tests before."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return int(STATM.read_text().split()[1]) * 4096


@pytest.mark.skipif(not STATM.exists(), reason="this system does not tell the memory of a process in /proc")
def test_large_descriptions_leave_no_memory_behind() -> None:
    """Sixteen requests with five megabytes each, of a tool, of a parameter and of an answer."""

    def ask(number: int) -> None:
        text = f"{number} " + "lorem ipsum " * (5 * MEGABYTE // 12)
        city = {"type": "object", "properties": {"city": {"type": "string", "description": text}}}
        described = tool("look", city)
        described["function"]["description"] = text
        answer = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer", "title": text}}}
        request = {"messages": [{"role": "user", "content": "?"}], "tools": [described], "response_format": answer}
        assert toolgram.plan(request, CHATML).constraint is not None

    ask(0)
    before = _resident()
    for number in range(1, 16):
        ask(number)
    assert _resident() - before < 100 * MEGABYTE


def test_documents_are_told_apart_by_what_they_say() -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {}}}
    first = Document.of(schema)
    assert first == Document.of({"type": "object", "properties": {"a": {"const": 1}, "b": {}}})
    for other in (1.0, True, "1"):
        assert first != Document.of({"type": "object", "properties": {"a": {"const": other}, "b": {}}})
    assert first != Document.of({"type": "object", "properties": {"b": {}, "a": {"const": 1}}})


def test_equal_values_are_packed_alike_however_they_are_held() -> None:
    class Name(str):
        __slots__ = ()

    word = "".join(["a ", "word"])  # neither interned nor one object
    shared = {"a": [word, word], "é\ud800": [10**400, 1.5, None]}
    apart = {"a": ["a word", Name("a word")], "é\ud800": [10**400, 1.5, None]}
    assert packed(shared) == packed(apart)
    assert unpacked(packed(apart)) == shared


def test_what_the_caller_changes_later_does_not_change_a_document() -> None:
    schema = {"type": "string"}
    document = Document.of(schema)
    schema["type"] = "null"
    assert document.value == {"type": "string"}
    assert document != Document.of(schema)


def test_a_plan_stays_what_it_was_when_the_request_is_changed() -> None:
    weather = tool("look", {"type": "object", "properties": {"city": {"const": "Oslo"}}, "required": ["city"]})
    request = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [weather]}
    plan = toolgram.plan(request, CHATML, "hermes")
    weather["function"]["parameters"]["properties"]["city"] = {"const": "Rome"}
    assert plan.constraint is not None
    assert plan.constraint.lazy().grammar.accepts(
        '<tool_call>\n{"name": "look", "arguments": {"city": "Oslo"}}\n</tool_call>'
    )


def test_arguments_of_the_same_hash_are_told_apart() -> None:
    @weighed(lambda _: 1, Memory(20_000))
    def text_of(number: int) -> str:
        return str(number)

    assert hash((-1,)) == hash((-2,))
    assert [text_of(number) for number in (-1, -2, -1, -2)] == ["-1", "-2", "-1", "-2"]


def test_what_changes_is_looked_at_again_outside() -> None:
    value = {"a": [1]}
    with unchanged():
        before = packed_once(value), digest(value)
        with unchanged():  # which is the same inside of another
            assert packed_once(value) is before[0]
            assert digest(value) is before[1]
        assert digest(value) is before[1]
    value["a"].append(2)
    assert (packed_once(value), digest(value)) == (packed(value), digest({"a": [1, 2]}))
    assert digest(value) != before[1]


def test_a_request_that_was_changed_is_planned_anew() -> None:
    offered = tool("look", {"type": "object", "properties": {"city": {"type": "string"}}})
    request = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [offered]}
    before = toolgram.plan(request, CHATML)
    offered["function"]["parameters"]["properties"]["days"] = {"type": "integer"}
    offered["function"]["description"] = "Looks."
    after = toolgram.plan(request, CHATML)
    assert "Looks." in after.prompt
    assert "Looks." not in before.prompt
    assert after.constraint is not None
    assert "days" in after.constraint.grammar.to("lark")


def test_all_that_is_noted_can_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the function that noted it, as the benchmarks ask it to."""
    places = set[object]()
    note = Memory.note

    def noting(self: Memory, place: object, *rest: Any, **named: Any) -> None:
        places.add(place)
        note(self, place, *rest, **named)

    monkeypatch.setattr(Memory, "note", noting)
    TOGETHER.forget()
    offered = [tool(name, {"type": "object", "properties": {"city": {"type": "string"}}}) for name in ("look", "go")]
    shows = "{% for t in tools %}{{ t.function.name ~ t.function.parameters | tojson }}{% endfor %}{{ messages }}"
    for template, style in ((CHATML, "hermes"), (CHATML, "qwen_xml"), (toolgram.ChatTemplate(shows), "long")):
        plan = toolgram.plan({"messages": [{"role": "user", "content": "Rain?"}], "tools": offered}, template, style)
        assert plan.constraint is not None
        plan.constraint.grammar.to("lark")
    assert len(places) > 3
    for place in places:
        assert callable(getattr(place, "cache_clear", None)), place
