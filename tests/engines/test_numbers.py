"""Numbers that a model would go on with, or end, as the grammar does not take it."""

from __future__ import annotations

import numpy as np
import pytest

from toolgram.engines.llama_cpp.numbers import Numbers, has_thousands

PIECES = [b"", b"0", b"1", b".", b",", b",0", b", ", b"x", b" x", b'"', b"\n", b"]", b"}"]
NUMBERS = Numbers.of(
    {piece: token for token, piece in enumerate(PIECES) if piece},
    np.array([(piece or b"\0")[0] for piece in PIECES], np.uint8),
)


def likeliest(wanted: bytes, allowed: list[bytes], next_best: bytes, *, thousands: bool = False) -> bytes:
    """What is written where one token is wanted most, and then another."""
    logits = np.zeros(len(PIECES), np.float32)
    logits[PIECES.index(next_best)] = 5
    logits[PIECES.index(wanted)] = 9
    mask = np.array([piece in allowed for piece in PIECES])
    meant = NUMBERS.meant(logits, mask, lambda: thousands)
    return PIECES[int(np.where(mask, meant, -np.inf).argmax())]


@pytest.mark.parametrize("wanted", [b",", b",0", b", ", b"x", b" x", b'"', b"\n", b"]"])
def test_a_number_ends_where_the_model_is_done_with_it(wanted: bytes) -> None:
    assert likeliest(wanted, [b"}", b"1", b"0"], b"1") == b"}"


def test_a_number_ends_where_the_text_does() -> None:
    assert likeliest(b" x", [b"", b"1", b"0"], b"1") == b""


@pytest.mark.parametrize("wanted", [b",", b",0"])
@pytest.mark.parametrize("next_best", [b".", b"}", b"1"])
def test_behind_the_comma_of_thousands_there_are_digits(wanted: bytes, next_best: bytes) -> None:
    assert likeliest(wanted, [b"}", b"1", b"."], next_best, thousands=True) == b"1"


def test_other_signs_end_a_number_with_thousands_too() -> None:
    assert likeliest(b", ", [b"}", b"1"], b"1", thousands=True) == b"}"


def test_a_comma_that_may_follow_is_one() -> None:
    assert likeliest(b",", [b"}", b",", b"1"], b"1", thousands=True) == b","


def test_a_number_goes_on_where_the_model_goes_on_with_it() -> None:
    assert likeliest(b"0", [b"}", b"1"], b"1") == b"1"
    assert likeliest(b"1", [b"}", b"1"], b"}") == b"1"


def test_what_is_no_number_does_not_end_as_one() -> None:
    """A text of digits, for one, which only a quote ends."""
    assert likeliest(b" x", [b'"', b"1"], b"1") == b"1"
    assert likeliest(b" x", [b"}", b"x", b"1"], b"1") == b"1"


@pytest.mark.parametrize(
    ("prompt", "written", "found"),
    [
        ("Pay 30,000 euros.", '{"amount": 30', True),
        ("Pay $1,250,000.", '{"amount": 1', True),
        ("Pay $1,250,000.", '{"amount": 1250', True),
        ("Pay 30,000 euros.", '{"amount": 3', False),
        ("Pay 30,000 euros.", '{"amount": 0', False),
        ("Pay 30,000 euros.", '{"amount": 1.30', False),
        ("Pay 30,000 euros.", '{"amount": ', False),
        ("20 people, 30,000 euros", "20", False),
        ("1,2,3", "1", False),
        ("1,2345", "1", False),
        ("130,000 or 0.30,000", "30", False),
    ],
)
def test_thousands_are_those_of_the_prompt(prompt: str, written: str, found: bool) -> None:
    assert has_thousands(prompt.encode(), written.encode()) is found
