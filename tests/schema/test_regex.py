"""Patterns against Python's `re` where the syntaxes agree, against jsonschema-rs, and on what real schemas hold."""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import ebnf_accepts, lark_accepts
from toolgram.grammar.regular import automata
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.regex import Malformed, TooLarge, Unsupported, pattern, pattern_with_lengths
from toolgram.grammar.regular.unicode_classes import property_chars
from written_strings import compiled, written

REAL = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "maskbench_dev.jsonl"

# A pattern as ECMA-262 has it; `$` and the escapes mean the same to Python once they are put in its words
_CHARS = st.sampled_from(
    ["a", "b", "1", "-", "ab", "[ab]", "[^a]", "[a-b1]", "\\w", "\\W", "\\d", "\\D", "[\\w-]", "[^\\d]"]
)
_ENDS = st.sampled_from(["^", "$", "\\b", "\\B"])
_COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?", "??", "{0,2}?"])
_LOOKS = st.sampled_from(["(?=", "(?!"])
_BEHIND = st.builds(
    "{}{})".format, st.sampled_from(["(?<=", "(?<!"]), st.sampled_from(["a", "ab", "\\w\\d", "^a", "[^1]"])
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("({}){}".format, inner, _COUNTS),
        st.builds("{}{})".format, _LOOKS, inner),
    )


PATTERNS = st.recursive(st.one_of(_CHARS, _CHARS, _ENDS, _BEHIND), _larger, max_leaves=10)
TEXTS = st.text("ab1- ", max_size=7)


def in_python(text: str) -> re.Pattern[str]:
    # its \B, until 3.14, is not in the empty text
    return re.compile(text.replace("$", "\\Z").replace("\\B", "(?!\\b)"), re.ASCII)


@given(PATTERNS, st.lists(TEXTS, min_size=10, max_size=30))
def test_patterns_match_what_python_matches(text: str, candidates: list[str]) -> None:
    automaton, python = compiled(text), in_python(text)
    for candidate in candidates:
        assert automaton.accepts(candidate) is bool(python.search(candidate)), (text, candidate)


@given(PATTERNS, st.lists(TEXTS, min_size=5, max_size=10), st.integers(0, 5))
def test_expressions_match_what_python_matches(text: str, candidates: list[str], seed: int) -> None:
    automaton, python = compiled(text), in_python(text)
    grammar = written(automaton)
    for candidate in candidates:
        assert grammar.accepts(candidate) is bool(python.search(candidate)), (text, candidate)
    if not automaton.is_empty:
        assert automaton.accepts(grammar.sample(seed))


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("b", ["b", "abc"], ["", "a"]),  # found anywhere
        ("^a|b$", ["ax", "xb"], ["xa", "bx"]),
        ("^.$", ["a", "\U0001f600", '"'], ["", "\n", "\r", "\u2028", "\u2029", "ab"]),
        (
            "^\\s$",
            [*"\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"],
            ["\u200b", "\x1c", "\x85"],
        ),
        ("^\\d$", ["0", "9"], ["\u0661"]),
        ("^\\w$", ["a", "_"], ["é"]),
        ("^\\S$", ["é", "\x85"], ["\ufeff"]),
        ("a$", ["a"], ["a\n"]),
        ("^[^]$", ["\n"], [""]),
        ("[]", [], ["", "a"]),
        ("^[\\b]$", ["\b"], ["b"]),
        ("^[a\\-z]$", ["a", "-", "z"], ["b"]),
        ("^[\\w-.]$", ["a", "-", "."], ["/"]),
        ("^[-a]|[a-]$", ["-", "a"], ["b"]),
        ("^\\x41\\u0042\\u{43}\\cJ\\0\\/$", ["ABC\n\0/"], ["ABC\n\0"]),
        ("^\\ud83d\\ude00$", ["\U0001f600"], ["\ufffd"]),
        ("^[\\ud83d\\ude00-\\u{1F602}]$", ["\U0001f601"], ["\U0001f603"]),
        ("^\\t\\n\\v\\f\\r$", ["\t\n\v\f\r"], ["tnvfr"]),
        ("^\\-\\:\\_\\~\\'\\\"$", ["-:_~'\""], []),
        ("^${a}]$", ["${a}]"][:0], ["${a}]"]),  # an end, then a literal brace: nothing
        ("^{a}$", ["{a}"], ["a"]),
        ("^(?<year>\\d{4})$", ["2026"], ["26"]),
        ("^(?:a*)*$", ["", "aaa"], ["b"]),
        ("^(?!foo).*$", ["bar", "fo"], ["foo", "foobar"]),
        ("^(?=.*\\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$", ["aB345678"], ["ab345678", "aB34567"]),
        ("^(?!.*\\bfoo\\b).*$", ["food", "a-fo"], ["a foo b", "foo"]),
        ("^(?:(?!--)[a-z-])+$", ["a-b-c"], ["a--b"]),
        ("(?<=^|,)a(?=,|$)", ["a", "b,a", "a,b"], ["ba", "ab"]),
        ("(?<![a-z])cat(?![a-z])", ["a cat!", "cat"], ["cats", "bobcat"]),
        ("^(?!(?!a)).$", ["a"], ["b"]),
        ("\\bx", ["x", "a x"], ["ax"]),
        ("\\Bx", ["ax"], ["x", "a x"]),
        ("^\\p{Lu}\\p{L}*$", ["Émile", "A"], ["émile", "A1"]),
        ("^\\P{L}+$", ["123"], ["a"]),
        ("^\\p{General_Category=Decimal_Number}$", ["\u0661"], ["a"]),
        ("^[\\p{Sc}x]$", ["€", "x"], ["y"]),
        ("", ["", "a"], []),
        ("^$", [""], ["a"]),
        ("a{0}", ["", "b"], []),
        ("a^", [], ["a", "", "a^"]),
    ],
)
def test_patterns(text: str, yes: list[str], no: list[str]) -> None:
    automaton = pattern(text)
    grammar = written(automaton)
    for candidate in yes:
        assert automaton.accepts(candidate), candidate
        assert grammar.accepts(candidate), candidate
    for candidate in no:
        assert not automaton.accepts(candidate), candidate
        assert not grammar.accepts(candidate), candidate


def test_domain_names_are_written_as_they_stand() -> None:
    label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
    grammar = written(pattern(f"^(?:{label}\\.)+{label}$"))
    assert (
        len(grammar.rules) <= 2
    )  # one for each of some two hundred states is what XGrammar takes a quarter second for
    for name, is_one in (("a.b", True), (f"{'a' * 63}.x-y", True), (f"{'a' * 64}.com", False), ("a-.com", False)):
        assert grammar.accepts(name) is is_one, name
        assert ebnf_accepts(grammar.to("ebnf"), name) is is_one, name
        assert lark_accepts(grammar.to("lark"), name) is is_one, name


@pytest.mark.parametrize("text", ["^(a|[])b$", "^a[]*b?$", "^(?:\\ud800|b)$", "^[]$", "^[]+|b$"])
def test_what_matches_nothing_is_left_out(text: str) -> None:
    automaton = pattern(text)
    grammar = written(automaton)
    for candidate in ("", "a", "b", "ab"):
        assert grammar.accepts(candidate) is automaton.accepts(candidate)
    if not automaton.is_empty:
        assert grammar.to("gbnf")


def test_counts_of_thousands_are_not_unrolled() -> None:
    automaton, low, high = pattern_with_lengths("^[\\s\\S]{1,131072}$")
    assert (automaton, low, high) == (automata.universal(), 1, 131_072)
    automaton, low, high = pattern_with_lengths("^[a-z]*$")
    assert (automaton, low, high) == (pattern("^[a-z]*$"), 0, None)
    assert pattern_with_lengths("[a-z]{2}") == (pattern("[a-z]{2}"), 0, None)
    with pytest.raises(TooLarge):
        pattern("^[a-z]{1,131072}$")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("(?i)a", 2), ("\\Aa", 0), ("a\\Z", 1), ("a++", 2), ("(?>a)", 2), ("(?P<n>a)", 2), ("(?#x)", 2), ("*a", 0),
        ("a**", 2), ("(a", 0), ("a)", 1), ("[a", 0), ("[z-a]", 1), ("a{2,1}", 1), ("a{,5}", 1), ("^*", 1),
        ("(?=a)*", 5),
        ("\\h", 0), ("\\", 0), ("\\xZ", 0), ("\\u{110000}", 0), ("[[:alpha:]]", 1), ("\\01", 0), ("a{2}{3}", 4),
    ],
)  # fmt: skip
def test_malformed_patterns_say_where(text: str, position: int) -> None:
    with pytest.raises(Malformed) as caught:
        pattern(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(a)\\1", "backreference"),
        ("(?<n>a)\\k<n>", "backreference"),
        ("\\p{Script=Greek}", "Script=Greek"),
        ("(?<=a(?=b))b", "looks ahead"),
        ("(?i:a)", "modifiers"),
        ("(" * 200 + ")" * 200, "deeply"),
    ],
)
def test_what_is_not_regular_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=re.escape(reason)):
        pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "(.*a){30}.{30}", "^(?=.*a.{20}$)(?=.*b.{21}$)", "(?!.*(a|b){18}c.{18})x", "(a?){9999}", "a{99999999}",
        "(((a{99}){99}){99}){99}", "(){99999999}", "^((a{500})*|(b{501})*|(a{503})*)*$", "(?=(?=(?=a*b){50}){50}){9}",
    ],
)  # fmt: skip
def test_work_is_bounded(text: str) -> None:
    start = time.process_time()
    with contextlib.suppress(TooLarge, Malformed):
        pattern(text)
    assert time.process_time() - start < 10  # a few seconds at most, on the slowest of machines


def test_properties_of_characters() -> None:
    assert "a" in property_chars("Letter")
    assert property_chars("Lu") == property_chars("gc=Uppercase_Letter")
    assert "a" not in property_chars("L", negative=True)
    assert "\u0378" in property_chars("Cn")
    assert "\u0378" not in property_chars("Assigned")


# What real schemas hold


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _patterns(item)
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        if isinstance(value.get("patternProperties"), dict):
            yield from value["patternProperties"]
        for key, item in value.items():
            if key not in ("const", "enum", "default", "example", "examples"):
                yield from _patterns(item)


@pytest.fixture(scope="module")
def real() -> list[str]:
    if not REAL.exists():
        pytest.skip(f"there are no real schemas at {REAL}")
    rows = map(json.loads, REAL.read_text(encoding="utf-8").splitlines())
    return sorted({text for row in rows for text in _patterns(row["schema"])})


def test_real_patterns_compile(real: list[str]) -> None:
    seconds: list[float] = []
    failed: list[str] = []
    pattern.cache_clear()
    for text in real:
        start = time.perf_counter()
        try:
            pattern(text)
        except (Malformed, Unsupported, TooLarge):
            failed.append(text)
        seconds.append(time.perf_counter() - start)
    print(  # noqa: T201 - shown by pytest -s
        f"{len(real) - len(failed)} of {len(real)} patterns compile;"
        f" median {statistics.median(seconds) * 1000:.2f} ms, worst {max(seconds) * 1000:.0f} ms; not: {failed}"
    )
    assert len(failed) < len(real) / 100
    assert max(seconds) < 5


def test_real_patterns_mean_what_the_validator_says(real: list[str]) -> None:
    odd = "\r\u2028\u2029"  # these a dot of Rust's matches, and one of ECMA-262 does not
    for text in real:
        validator = jsonschema_rs.validator_for({"pattern": text})
        automaton = pattern(text)
        for form in (automaton, Automaton(automaton.states), automata.complement(automaton)):
            if form.is_empty:
                continue
            grammar = written(form)
            for seed in range(4):
                candidate = grammar.sample(seed)
                if not any(char in odd for char in candidate):
                    assert automaton.accepts(candidate) is validator.is_valid(candidate), (text, candidate)


@pytest.mark.parametrize(
    "text",
    [
        "a(b|cd)*e?",
        "[a-f0-9]{2,5}",
        "(?:a|ab)(?:c|bcd)d*",
        "x{0,40}",
        "(a|b)*a(a|b){3}",
        "(?:)",
        "[^a]+|a",
        "(a?){9}a{9}",
    ],
)
@pytest.mark.parametrize("end", ["$", ""])
def test_what_has_no_assertions_is_read_as_if_it_had(text: str, end: str):
    assert pattern(f"^(?:{text}){end}") == pattern(f"^(?=)(?:{text}){end}")
