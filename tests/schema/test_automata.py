"""Automata against sets of short texts, where they can be counted out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import CharSet, Expr, Ref, chars, choice, repeat, seq
from toolgram.grammar.regular import automata
from toolgram.grammar.regular.automata import Automaton, TooLarge
from toolgram.grammar.regular.regex import pattern
from toolgram.grammar.regular.to_expr import expression
from toolgram.work import MAX_STEPS, MAX_WORK, limited, remembered
from written_strings import compiled, written

LETTERS = "abc"
SHORT = ["".join(letters) for size in range(5) for letters in product(LETTERS, repeat=size)]

_ATOMS = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "(?:ab|c)"])
_COUNTED = st.builds("{}{}".format, _ATOMS, st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{2,}"]))
_SEQUENCES = st.lists(_COUNTED, min_size=1, max_size=4).map("".join)
_LOOPS = st.builds("(?:{}){}".format, _SEQUENCES, st.sampled_from(["", "*", "+", "{0,3}"]))
_BODIES = st.lists(st.one_of(_SEQUENCES, _LOOPS), min_size=1, max_size=2).map("".join)
AUTOMATA = st.one_of(
    _BODIES.map(lambda body: compiled(f"^(?:{body})$")),
    _BODIES.map(compiled),
    st.sampled_from(SHORT).map(automata.of_text),
)


def texts(automaton: Automaton) -> set[str]:
    return {text for text in SHORT if automaton.accepts(text)}


@given(AUTOMATA, AUTOMATA)
def test_operations_are_those_of_sets(left: Automaton, right: Automaton) -> None:
    assert texts(automata.intersection(left, right)) == texts(left) & texts(right)
    assert texts(automata.union(left, right)) == texts(left) | texts(right)
    assert texts(automata.difference(left, right)) == texts(left) - texts(right)
    assert texts(automata.complement(left)) == set(SHORT) - texts(left)


@given(AUTOMATA, AUTOMATA)
def test_equal_languages_are_equal_values(left: Automaton, right: Automaton) -> None:
    assert automata.complement(automata.complement(left)) == left
    both = automata.complement(automata.union(automata.complement(left), automata.complement(right)))
    assert both == automata.intersection(left, right)
    assert hash(both) == hash(automata.intersection(left, right))
    assert automata.difference(left, left).is_empty
    assert automata.union(left, automata.complement(left)) == automata.universal()


@given(AUTOMATA)
def test_shortest_and_lengths(automaton: Automaton) -> None:
    low, high = automaton.lengths()
    shortest = automaton.shortest()
    if shortest is None:
        assert automaton.is_empty
        return
    assert automaton.accepts(shortest)
    assert len(shortest) == low
    assert not automata.intersection(automaton, automata.of_length(low, low)).is_empty
    assert low == 0 or automata.intersection(automaton, automata.of_length(0, low - 1)).is_empty
    if high is not None:
        assert automata.intersection(automaton, automata.of_length(0, high)) == automaton
        assert automata.intersection(automaton, automata.of_length(0, high - 1)) != automaton


@given(AUTOMATA, st.integers(0, 9), st.none() | st.integers(0, 9))
def test_has_length(automaton: Automaton, low: int, high: int | None) -> None:
    assert (
        automaton.has_length(low, high) is not automata.intersection(automaton, automata.of_length(low, high)).is_empty
    )


def test_has_length_of_periods() -> None:
    automaton = pattern("^(?:a{6}|a{10})*$")
    assert automaton.has_length(1_000_000, 1_000_000)
    assert not automaton.has_length(1_000_001, 1_000_001)
    assert automaton.has_length(1_000_001, None)


@given(AUTOMATA)
def test_finite_texts_are_all(automaton: Automaton) -> None:
    within = automata.intersection(automaton, pattern("^[abc]{0,4}$"))
    assert within.finite_texts(len(SHORT)) == tuple(sorted(texts(automaton)))
    if texts(automaton):
        assert within.finite_texts(len(texts(automaton)) - 1) is None


def test_an_infinite_language_is_not_listed() -> None:
    assert pattern("^a*$").finite_texts(10**9) is None
    assert automata.universal().finite_texts(10**9) is None
    assert automata.NO_TEXT.finite_texts(0) == ()


@given(AUTOMATA, st.integers(0, 4), st.none() | st.integers(0, 5))
def test_the_expression_is_of_the_same_language(automaton: Automaton, low: int, high: int | None) -> None:
    wanted = {text for text in texts(automaton) if low <= len(text) and (high is None or len(text) <= high)}
    as_written = Automaton(automaton.states, automaton.plain, is_plain=True)
    for form in (automaton, as_written, Automaton(automaton.states)):
        grammar = written(form, low, high)
        assert {text for text in SHORT if grammar.accepts(text)} == wanted


@given(AUTOMATA, st.integers(0, 9))
def test_sentences_of_the_expression_belong_to_the_language(automaton: Automaton, seed: int) -> None:
    if not automaton.is_empty:
        assert automaton.accepts(written(Automaton(automaton.states)).sample(seed))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("^[a-z]{2,40}-\\d+$", ["[a-z]{2,40} '-' [0-9]+"]),
        ("^(?:\\d{1,3}x){0,30}$", ["([0-9]{1,3} 'x'){0,30}"]),
        ("^foo(-bar)?(qux|zap)$", ["'foo' '-bar'? ('qux' | 'zap')"]),
        ("^(cat|dog)s?: [^;]+$", ["('cat' | 'dog') 's'? ': ' [^;]+"]),
        ("^a{1000}$", ["'a'{1000}"]),
    ],
)
def test_states_are_written_legibly(text: str, rules: list[str]) -> None:
    gbnf = written(Automaton(pattern(text).states)).to("gbnf")
    assert [line.partition("::= ")[2].replace('"', "'") for line in gbnf.strip().split("\n")] == rules


def test_lengths_of_thousands_do_not_explode() -> None:
    letter, letter_or_digit = chars((97, 122)), chars((97, 122), (48, 57))
    assert written(pattern("^[a-z]+$"), 1, 65_536).rules == {"root": repeat(letter, 1, 65_536)}
    grammar = written(pattern("^[a-z][a-z0-9]*$"), 3, 30_000)
    assert grammar.rules == {"root": seq(letter, repeat(letter_or_digit, 2, 29_999))}
    label = pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    assert len(written(label, 0, 4000).rules) == 1
    assert written(label, 0, 63).accepts("a" * 63)
    assert not written(label, 0, 63).accepts("a" * 64)
    assert len(written(pattern("^[a-z]+(-[a-z]+)*$"), 0, 400).rules) <= 401
    assert len(written(Automaton(pattern("^.{1,4000}$").states)).rules) == 1


@given(AUTOMATA, st.text("abc", max_size=5))
def test_characters_are_written_as_the_caller_says(automaton: Automaton, text: str) -> None:
    def char(allowed: CharSet) -> Expr:
        return choice(*(spelled for letter, spelled in (("a", "a"), ("b", "\\b"), ("c", "<c>")) if letter in allowed))

    waiting: list[Callable[[], Expr]] = []

    def rule(hint: str, make: Callable[[], Expr]) -> Ref:
        waiting.append(make)
        return Ref(f"{hint}-{len(waiting)}")

    rules = {"root": expression(automaton, char, rule, "text")}
    for number, make in enumerate(waiting, 1):
        rules[f"text-{number}"] = make()
    assert Grammar(rules).accepts(text.replace("b", "\\b").replace("c", "<c>")) is automaton.accepts(text)


def test_work_is_bounded() -> None:
    with pytest.raises(TooLarge):
        pattern("^(?:a(?:.{83})*|b(?:.{89})*|c(?:.{97})*|d(?:.{101})*)$").has_length(10**9, 10**9)
    with pytest.raises(TooLarge):
        automata.of_length(0, 100_000)
    with pytest.raises(TooLarge):
        pattern("^(?:a|b)*a(?:a|b){20}$")
    with pytest.raises(TooLarge):
        pattern("^(?:(?:(?:a{0,100}){0,100}){0,100}){0,100}$")
    with pytest.raises(TooLarge):
        pattern("^(?:(?:(?:a{100}){100}){100}){100}$")
    with pytest.raises(TooLarge):
        automata.intersection(pattern("^(?:a{97})*$"), pattern("^(?:a{89})*$"))


def test_texts() -> None:
    assert automata.of_text("a\U0001f600").accepts("a\U0001f600")
    assert automata.of_text("\ud800").is_empty
    assert automata.of_text("").shortest() == ""
    assert automata.of_text("ab") == pattern("^ab$")
    assert automata.of_length(3, 2).is_empty
    assert chars("a") in [charset for state in automata.of_text("a").states for charset, _ in state.edges]


@given(AUTOMATA, st.integers(0, 4), st.none() | st.integers(0, 4))
def test_lengths_are_those_of_the_texts(automaton: Automaton, low: int, high: int | None) -> None:
    found = automata.of_lengths(automaton, low, high)
    assert texts(found) == {
        text for text in texts(automaton) if low <= len(text) <= (len(text) if high is None else high)
    }


def test_too_many_lengths_are_refused_before_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
    automaton = pattern(f"^(?:{label}\\.)+{label}$")
    with pytest.raises(TooLarge):
        automata.intersection(automaton, automata.of_length(0, 253))
    monkeypatch.setattr(automata, "explore", None)
    for _ in range(2):
        with pytest.raises(TooLarge):
            automata.of_lengths(automaton, 0, 253)


def test_what_is_too_large_is_remembered_and_costs_the_same_again() -> None:
    made: list[int] = []

    @remembered(maxsize=4)
    def costly(steps: int) -> int:
        made.append(steps)
        raise TooLarge

    for _ in range(2):
        with limited(MAX_WORK) as meter, pytest.raises(TooLarge):
            costly(1)
        assert meter.left == MAX_WORK - MAX_STEPS
    assert made == [1]
