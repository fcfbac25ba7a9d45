"""What a model means by signs and white space that the grammar does not take: never that a list is empty."""

from __future__ import annotations

import numpy as np
import pytest

from toolgram.engines.llama_cpp.spelling import Spelling, is_opening

PIECES = [
    b"",
    b" [",
    b" [\n",
    b" []",
    b' ["',
    b'"',
    b'"}\n',
    b'"\n',
    b'",',
    b'",\n',
    b'")',
    b"\n",
    b"]",
    b"1",
    b"x",
    b" x",
    b"\n]",
    b'"".',
    b"0",
    b",",
    b"}",
    b"},",
]
FIRST = np.array([(piece or b"\0")[0] for piece in PIECES], np.uint8)
SPELLING = Spelling.of({piece: token for token, piece in enumerate(PIECES) if piece}, FIRST)


def likeliest(wanted: bytes, allowed: list[bytes], next_best: bytes, *, after: bytes = b":") -> bytes:
    """What is written where the model wants a certain token, and another one next."""
    logits = np.zeros(len(PIECES), np.float32)
    logits[PIECES.index(next_best)] = 5
    logits[PIECES.index(wanted)] = 9
    mask = np.array([piece in allowed for piece in PIECES])
    return PIECES[int(np.where(mask, SPELLING.meant(logits, mask, opened=is_opening(after)), -np.inf).argmax())]


def test_a_list_on_several_lines_is_begun_and_not_closed() -> None:
    assert likeliest(b" [\n", [b" [", b" []", b' ["'], b" []") == b" ["


@pytest.mark.parametrize(("wanted", "written"), [(b'"}\n', b'"'), (b'"\n', b'"'), (b'",\n', b'",')])
def test_a_text_ends_with_the_signs_that_it_was_to_end_with(wanted: bytes, written: bytes) -> None:
    assert likeliest(wanted, [b'"', b'",', b"x", b" x"], b"x") == written


def test_a_quote_with_other_signs_behind_it_does_not_end_a_text() -> None:
    assert likeliest(b'")', [b'"', b"x", b" x"], b"x") == b"x"


def test_behind_an_opening_bracket_a_line_break_closes_nothing() -> None:
    assert likeliest(b"\n", [b"]", b"1"], b"]", after=b" [") == b"1"
    assert likeliest(b"\n]", [b"]", b"1"], b"]", after=b" [") == b"]"


def test_what_follows_white_space_there_is_a_quote_alone() -> None:
    assert likeliest(b"\n", [b"]", b'"', b'"".'], b'"".', after=b"[") == b'"'


@pytest.mark.parametrize("after", [b'"', b"2", b"}"])
def test_a_bracket_that_closes_too_much_closes_what_is_open(after: bytes) -> None:
    more = [b"1", b"0"] if after.isdigit() else []
    assert likeliest(b"}", [b"]", b",", *more], b",", after=after) == b"]"
    assert likeliest(b",", [b"]", b",", *more], b"]", after=after) == b","
    assert likeliest(b"}", [b"]", b",", b"x"], b",", after=after) == b","  # in a text


def test_where_white_space_may_follow_a_bracket_it_says_nothing() -> None:
    """In a text, for one."""
    assert likeliest(b"\n", [b"]", b"1", b" x"], b"]", after=b"[") == b"]"


def test_what_is_allowed_stays_as_it_is() -> None:
    for wanted in PIECES[1:]:
        assert likeliest(wanted, PIECES[1:], b"x", after=b"[") == wanted


def test_white_space_alone_is_not_what_signs_begin_with() -> None:
    pieces = [b"", b" ", b" \n", b' "', b" ["]
    first = np.array([(piece or b"\0")[0] for piece in pieces], np.uint8)
    spelling = Spelling.of({piece: token for token, piece in enumerate(pieces) if piece}, first)
    assert not spelling.beginnings
