"""Ranges of numbers accept exactly the numbers in range."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Repeat, Sequence
from toolgram.schema.writing.numbers import decimals, integers, same_length


def pattern(expr: Expr) -> str:
    """A regular expression for an expression without references: an oracle that shares no code with the matcher."""
    match expr:
        case Literal(text):
            return re.escape(text)
        case CharSet(ranges):
            return "[" + "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges) + "]"
        case Sequence(items):
            return "".join(f"(?:{pattern(item)})" for item in items)
        case Choice(options):
            return "|".join(f"(?:{pattern(option)})" for option in options) if options else "(?!)"
        case Repeat(item, low, high):
            return f"(?:{pattern(item)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(expr)


def accepts(expr: Expr, text: str) -> bool:
    return re.fullmatch(pattern(expr), text) is not None


whole = st.one_of(
    st.integers(-1200, 1200), st.integers(), st.sampled_from([10**k + d for k in range(25) for d in (-1, 0, 1)])
)
bounds = st.none() | whole


@given(bounds, bounds, st.lists(whole, max_size=8), st.data())
def test_integers(low: int | None, high: int | None, values: list[int], data: st.DataObject):
    expr = integers(low, high)
    near = [bound + step for bound in (low, high) if bound is not None for step in (-10, -1, 0, 1, 10)]
    for value in (*values, *near, 0):
        inside = (low is None or low <= value) and (high is None or value <= high)
        assert accepts(expr, str(value)) == inside, value
    assert not accepts(expr, "-0")
    assert not accepts(expr, "")
    assert not accepts(expr, "007")


@given(st.integers(0, 300), st.integers(0, 300))
def test_every_integer_of_a_small_range(low: int, width: int):
    matches = re.compile(pattern(integers(low, low + width)))
    assert [n for n in range(700) if matches.fullmatch(str(n))] == list(range(low, low + width + 1))


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_other_digits(low: int, high: int, value: int):
    expr = same_length(f"{low:04x}", f"{high:04x}", "0123456789abcdef")
    assert accepts(expr, f"{value:04x}") == (low <= value <= high)


def test_a_cap_bounds_what_has_no_bound():
    assert accepts(integers(None, None, 19), "-" + "9" * 19)
    assert not accepts(integers(None, None, 19), "1" + "0" * 19)
    assert accepts(integers(0, 10**30, 19), str(10**30))
    assert accepts(integers(10**30, None, 19), str(10**30))
    assert accepts(integers(10**30, None, 19), "9" * 31)
    assert not accepts(integers(10**30, None, 19), "1" + "0" * 31)


def test_an_integer_of_any_size():
    huge = 10**5000
    assert accepts(integers(huge, huge), "1" + "0" * 5000)


@st.composite
def decimal_texts(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(["", "-"]))
    integer = draw(st.sampled_from(["0", "1", "9", "10", "12", "99", "100", "123"]))
    fraction = draw(st.text("0159", max_size=4))
    return sign + integer + ("." + fraction if fraction else "")


decimal_bounds = st.none() | decimal_texts().map(Decimal)


@given(
    decimal_bounds,
    decimal_bounds,
    st.booleans(),
    st.booleans(),
    st.none() | st.just(6),
    st.lists(decimal_texts(), max_size=8),
)
def test_decimals(
    low: Decimal | None, high: Decimal | None, low_open: bool, high_open: bool, cap: int | None, texts: list[str]
):
    expr = decimals(low, high, low_open=low_open, high_open=high_open, fraction=cap)
    near = [
        f"{bound + step:f}"
        for bound in (low, high)
        if bound is not None
        for step in map(Decimal, ("-1", "-0.1", "-0.0001", "0", "0.00", "0.0001", "0.1", "1"))
    ]
    for text in (*texts, *near, "0", "0.0"):
        value = Decimal(text)
        if value == 0 and low is not None and low >= 0:
            text = text.removeprefix("-")  # a sign that no number in range has
        above = low is None or (low < value if low_open else low <= value)
        below = high is None or (value < high if high_open else value <= high)
        assert accepts(expr, text) == (above and below), text


@pytest.mark.parametrize("text", ["1.", ".5", "01", "1e5", "+1", ""])
def test_what_is_no_decimal_of_ours(text: str):
    assert not accepts(decimals(None, Decimal(100)), text)
    assert not accepts(decimals(Decimal(-100), Decimal(100)), text)


def test_zero_has_a_sign_only_between_both_sides():
    assert accepts(decimals(Decimal(-1), Decimal(1)), "-0.0")
    assert not accepts(decimals(Decimal(0), Decimal(1)), "-0.0")
    assert not accepts(decimals(Decimal(-1), Decimal(0), high_open=True), "-0.0")


def test_a_cap_of_the_fraction():
    expr = decimals(Decimal(0), Decimal(5), low_open=True, fraction=3)
    assert all(accepts(expr, text) for text in ("0.001", "1.234", "5", "5.000"))
    assert not any(accepts(expr, text) for text in ("0", "0.000", "0.0001", "1.2345", "5.0000"))


def test_bounds_longer_than_the_cap_make_room():
    expr = decimals(Decimal("0"), Decimal("0.00001"), low_open=True, high_open=True, fraction=3)
    assert accepts(expr, "0.000005")
    assert not accepts(expr, "0.0000005")
