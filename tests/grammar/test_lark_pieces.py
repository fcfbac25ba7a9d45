"""Text in pieces is all text without the markers that begins with none of some texts and is none of
others, and no other."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from small_languages import SOME
from toolgram.grammar.dialects.lark.pieces import text_in_pieces
from toolgram.grammar.ir import END
from toolgram.grammar.matcher import Matcher
from toolgram.grammar.walk import size

ALPHABET = "ab<\n"
STRINGS = ["".join(letters) for length in range(6) for letters in product(ALPHABET, repeat=length)]
MARKERS = st.builds(str.__add__, st.sampled_from("<\n"), st.text("ab", max_size=3))


@given(
    st.lists(MARKERS, min_size=1, max_size=4, unique=True),
    st.lists(st.text(ALPHABET, min_size=1, max_size=4), max_size=4, unique=True),
    st.lists(st.text(ALPHABET, max_size=4), max_size=2, unique=True),
)
@SOME
def test_it_is_exactly_that_text(markers: list[str], first: list[str], whole: list[str]) -> None:
    expr = text_in_pieces(tuple(markers), (*first, *(text + END for text in whole)))
    assert expr is not None
    matcher = Matcher({"root": expr})
    for text in STRINGS:
        expected = not text.startswith(tuple(first)) and not any(marker in text for marker in markers)
        expected = expected and text not in whole
        assert matcher.accepts(text) == expected, text


@given(MARKERS, st.sampled_from("<\n"))
@SOME
def test_a_marker_that_may_begin_amid_one_has_none(marker: str, amid: str) -> None:
    assume(amid == marker[0])
    assert text_in_pieces((f"{marker}{amid}a",), ()) is None


def test_it_is_as_long_as_the_markers() -> None:
    long, longer = (text_in_pieces(tuple(f"<{mark * count}>" for mark in "abc"), ()) for count in (50, 100))
    assert long is not None
    assert longer is not None
    assert size(longer) < 2.1 * size(long)
