"""Text up to a marker: what must be admitted is, and what may be admitted besides is only what is said."""

from __future__ import annotations

import re
from itertools import product

import pytest

from oracles import ebnf_accepts, lark_accepts
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Expr, Ref, Text, chars, seq
from toolgram.grammar.matcher import Matcher
from toolgram.grammar.raw_text import RawText, raw_text
from toolgram.grammar.regular.regex import pattern
from toolgram.grammar.walk import renamed, size

MARKERS = ("<ab>", "aab", "]]>", "abab", "<")
BOUNDS = [(least, most) for least in range(6) for most in (None, *range(7))]


def rules_of(raw: RawText, *after: Expr | str) -> dict[str, Expr]:
    names = {str(number): f"raw-{number}" for number in range(len(raw.bodies))}
    bodies = {names[str(number)]: renamed(body, names) for number, body in enumerate(raw.bodies)}
    return {"root": seq(Ref("raw"), *after), "raw": renamed(raw.expr, names), **bodies}


def texts(marker: str, longest: int) -> list[str]:
    alphabet = sorted({*marker, "x"})[:4]
    return ["".join(text) for length in range(longest + 1) for text in product(alphabet, repeat=length)]


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize(("least", "most"), BOUNDS)
def test_lengths_are_kept_but_for_beginnings_of_the_marker(marker: str, least: int, most: int | None) -> None:
    raw = raw_text((marker,), None, least, most, exact=False)
    accepts = Matcher(rules_of(raw)).accepts
    loose = {keyword for keyword, _ in raw.loose}
    assert loose <= {"minLength", "maxLength"}
    for text in texts(marker, 5):
        long_enough, short_enough = len(text) >= least, most is None or len(text) <= most
        if marker not in text and long_enough and short_enough:
            assert accepts(text), text
        elif accepts(text):
            assert marker not in text
            assert long_enough or "minLength" in loose
            assert len(text) >= min(least, 4)
            assert short_enough or ("maxLength" in loose and marker[0] in text)


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize(("least", "most"), [(0, 4), (2, 5), (3, None)])
def test_what_is_exact_is_exact(marker: str, least: int, most: int | None) -> None:
    raw = raw_text((marker,), None, least, most, exact=True)
    assert not raw.loose
    accepts = Matcher(rules_of(raw)).accepts
    for text in texts(marker, 5):
        fits = marker not in text and len(text) >= least and (most is None or len(text) <= most)
        assert accepts(text) == fits, text


def test_a_language_keeps_its_own_lengths_and_not_the_marker() -> None:
    raw = raw_text(("<b>",), pattern("^[ab<>]+$"), 2, 4, exact=False)
    accepts = Matcher(rules_of(raw)).accepts
    for text in texts("<b>", 4):
        fits = re.fullmatch("[ab<>]{2,4}", text) is not None and "<b>" not in text
        assert accepts(text) == fits, text


def test_a_large_count_is_as_small_as_a_small_one() -> None:
    small, large = (size(raw_text(("</parameter>",), None, 0, most, exact=False).expr) for most in (50, 5_000))
    assert large == small < 200
    assert raw_text(("</parameter>",), None, 0, None, exact=False).expr == Text(("</parameter>",))
    assert not raw_text(("</parameter>",), None, 0, 11, exact=False).loose  # no marker fits into it


def test_the_dialects_agree_on_counted_text_before_its_marker() -> None:
    grammar = Grammar(rules_of(raw_text(("</p>",), None, 1, 6, exact=False), "\n</p>", chars("xy"), "</p>"))
    inside = ["a\n</p>x</p>", "<</p\n</p>y</p>", "\n\n</p>x</p>", "</b></\n</p>x</p>", "abcdef\n</p>x</p>"]
    outside = ["\n</p>x</p>", "abcdefg\n</p>x</p>", "a</p>b\n</p>x</p>", "a\n</p>x", "a\n</p>"]
    for accepted, found in ((True, inside), (False, outside)):
        for text in found:
            verdicts = (
                grammar.accepts(text),
                lark_accepts(grammar.to("lark"), text),
                ebnf_accepts(grammar.to("ebnf"), text),
            )
            assert verdicts == (accepted, accepted, accepted), text
