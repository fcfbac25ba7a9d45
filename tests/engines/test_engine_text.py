"""Characters and stop strings in text that comes in pieces."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from toolgram.engines.stops import Detokenizer, StopScanner

T = TypeVar("T", str, bytes)


def pieces_of(whole: T, cuts: list[int]) -> list[T]:
    edges = [0, *sorted({cut for cut in cuts if cut < len(whole)}), len(whole)]
    return [whole[a:b] for a, b in pairwise(edges)]


def cut_at_stops(text: str, stops: list[str]) -> str:
    """The plain meaning: of all places where a stop string ends, the first one counts, and of two the longer."""
    for end in range(len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))]
    return text


steady = settings(deadline=None)  # a busy machine is no error
CUTS = st.lists(st.integers(0, 40))


@steady
@given(st.text(), CUTS)
def test_text_survives_any_cut(text: str, cuts: list[int]) -> None:
    detokenizer = Detokenizer()
    shown = [detokenizer.feed(piece) for piece in pieces_of(text.encode(), cuts)]
    assert "".join(shown) == text
    assert "\ufffd" not in "".join(shown) or "\ufffd" in text


@steady
@given(st.binary(), CUTS)
def test_bytes_that_are_no_text_do_not_depend_on_the_cuts(raw: bytes, cuts: list[int]) -> None:
    whole, cut = Detokenizer(), Detokenizer()
    assert whole.feed(raw) == "".join(cut.feed(piece) for piece in pieces_of(raw, cuts))


def test_half_a_character_waits() -> None:
    detokenizer = Detokenizer()
    assert [detokenizer.feed(bytes([byte])) for byte in "a€b".encode()] == ["a", "", "", "€", "b"]


@steady
@given(st.text("abc"), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), CUTS)
def test_text_ends_before_the_first_stop_string(text: str, stops: list[str], cuts: list[int]) -> None:
    scanner = StopScanner(stops)
    shown = "".join(scanner.feed(piece) for piece in pieces_of(text, cuts))
    assert scanner.stopped == any(stop in text for stop in stops)
    assert shown + scanner.finish() == cut_at_stops(text, stops)


@steady
@given(st.text("abc"), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), CUTS)
def test_only_what_may_begin_a_stop_string_is_held_back(text: str, stops: list[str], cuts: list[int]) -> None:
    scanner = StopScanner(stops)
    seen = shown = ""
    for piece in pieces_of(text, cuts):
        seen += piece
        shown += scanner.feed(piece)
        if scanner.stopped:
            return
        held = seen[len(shown) :]
        assert seen.startswith(shown)
        assert not held or any(stop.startswith(held) for stop in stops)


def test_nothing_is_shown_after_a_stop_string() -> None:
    scanner = StopScanner(["END"])
    assert [scanner.feed(piece) for piece in ["one E", "NDtwo", "three"]] == ["one ", "", ""]
    assert scanner.finish() == ""
