import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_languages import SOME, TEXTS, sentences, strings
from toolgram.errors import GrammarError
from toolgram.grammar import until
from toolgram.grammar.ir import END, MAX_CODE_POINT, START, Literal, Ref, Text, chars, choice, not_chars, seq
from toolgram.grammar.matcher import Matcher
from toolgram.grammar.until import automaton, first_of, text_after, text_rules


def runs(text: Text, string: str) -> bool:
    states = automaton(text.without, text.seen)
    at = 0
    for char in string:
        target = states[at].step(char)
        if target is None:
            return False
        at = target
    return True


@given(TEXTS)
@SOME
def test_admits_exactly_the_text_without_the_markers(text: Text):
    for string in strings(6):
        assert runs(text, string) == (not any(marker in text.seen + string for marker in text.without)), string


@given(TEXTS)
@SOME
def test_rules_say_the_same(text: Text):
    rules = text_rules(text, "text")
    assert sentences({"root": Ref("text-0"), **rules}) == sentences({"root": text})


@given(TEXTS)
@SOME
def test_steps_are_disjoint_and_only_refuse_what_completes_a_marker(text: Text):
    for state in automaton(text.without, text.seen):
        codes = [pair for charset, _ in state.edges for pair in charset.ranges]
        assert sum(high - low + 1 for low, high in codes) == sum(
            high - low + 1 for low, high in chars(*codes).ranges
        ), "a character has two steps"
        refused = not_chars(*codes).ranges
        assert all(chr(low) in "ab" for low, _ in refused)


@given(st.lists(st.from_regex(f"{START}?[ab]{{1,5}}{END}?", fullmatch=True), min_size=1, unique=True))
@SOME
def test_what_must_not_come_first_is_told_apart_as_all_states_are(markers: list[str]):
    """There are as few states as where all are looked at as if any might lead to any."""
    table = until._reachable(START, markers)
    told, alike = until._blocks(table), until._blocks_of(table)
    assert len({(told[state], alike[state]) for state in table}) == len({*told.values()}) == len({*alike.values()})


@pytest.mark.parametrize("marker", ["ab" * 2000, "a" * 4000, f"{START}{'ab' * 2000}"])
def test_a_long_marker_may_have_begun(marker: str):
    seen = marker[:3990]
    states = automaton((marker, "ba" * 2000 + "c"), seen)
    assert states[0].seen == seen


@given(TEXTS)
@SOME
def test_the_first_characters_are_those_of_the_first_steps(text: Text):
    first = automaton(text.without, text.seen)[0]
    assert first_of(text) == chars(*(pair for charset, _ in first.edges for pair in charset.ranges))


def test_the_first_characters_know_of_the_start_and_of_the_end():
    assert first_of(Text((f"{START}a", "bc", f"d{END}", f"x{END}"), START)) == not_chars("a")
    assert first_of(Text((f"{START}a", "bc", f"d{END}"), "b")) == not_chars("c")
    assert first_of(Text((f"d{END}",), "d")) == not_chars()


@given(TEXTS)
@SOME
def test_seen_leads_to_its_state(text: Text):
    for state in automaton(text.without, text.seen):
        rest = Text(text.without, state.seen)
        again = automaton(rest.without, rest.seen)
        assert [charset for charset, _ in again[0].edges] == [charset for charset, _ in state.edges]


@given(TEXTS)
@SOME
def test_no_two_states_have_the_same_future(text: Text):
    states = automaton(text.without, text.seen)
    targets = [[state.step(char) for char in "abcd"] for state in states]
    blocks = [state.ends for state in states]
    for _ in states:  # Moore's refinement, step by step
        futures = [(blocks[at], [to if to is None else blocks[to] for to in row]) for at, row in enumerate(targets)]
        blocks = list(map(futures.index, futures))
    assert len(set(blocks)) == len(states)


def test_marker_inside_a_marker():
    text = Text(("<tool_call>", "_c"))
    assert runs(text, "<tool_")
    assert not runs(text, "<tool_c")
    assert len(automaton(text.without)) == 2, "the longer marker cannot be completed and adds no state"


def test_equal_states_are_merged():
    assert len(automaton(("xz", "yz"))) == 2


def test_seen_starts_inside_a_marker():
    assert runs(Text(("<tool_call>",)), "_call>")
    assert not runs(Text(("<tool_call>",), "some <tool"), "_call>")
    assert runs(Text(("<tool_call>",), "some <tool"), "_kit>")


def test_without_markers_everything_goes():
    (state,) = automaton(())
    assert state.edges == ((not_chars(), 0),)
    assert state.edges[0][0].ranges[-1][1] == MAX_CODE_POINT


def test_rules_are_legible():
    assert text_rules(Text(("<a",)), "text") == {
        "text-0": choice(seq(not_chars("<"), Ref("text-0")), seq("<", Ref("text-1")), Literal("")),
        "text-1": choice(seq(not_chars("<a"), Ref("text-0")), seq("<", Ref("text-1")), Literal("")),
    }


@pytest.mark.parametrize(("without", "seen"), [(("",), ""), (("ab",), "xaby")])
def test_refuses_what_no_text_fulfils(without: tuple[str, ...], seen: str):
    with pytest.raises(GrammarError):
        first_of(Text(without, seen))
    with pytest.raises(GrammarError):
        automaton(without, seen)


def test_many_long_markers_are_fast():
    markers = tuple(f"<|{'long' * 10}_{number}|>" for number in range(30))
    rules = text_rules(Text(markers), "text")
    matcher = Matcher({"root": Ref("text-0"), **rules})
    assert matcher.accepts("<|" + "long" * 10 + "_7|")
    assert not matcher.accepts("<|" + "long" * 10 + "_7|>")


def test_a_marker_at_the_start_is_one_there_alone():
    text = Text(("bbb", START + "aa", START + "bab"), START)
    for string in strings(6):
        assert runs(text, string) == ("bbb" not in string and not string.startswith(("aa", "bab"))), string
    assert sentences({"root": Ref("text-0"), **text_rules(text, "text")}) == sentences({"root": text})


def test_what_follows_the_start_knows_no_more_of_it():
    text = Text(("<c>", START + "{a"), START)
    states = automaton(text.without, text.seen)
    after = {text_after(text, number) for number in range(len(states))}
    assert Text(("<c>",)) in after
    assert text in after
    assert all(rest.seen.startswith(START) or rest.without == ("<c>",) for rest in after)
