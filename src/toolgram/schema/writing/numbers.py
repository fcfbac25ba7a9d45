"""Ranges of numbers as expressions over their digits: exact, of any size.

An integer is written `0` or `-?[1-9][0-9]*`; a decimal is an integer with an optional `.` and digits, of which the
last ones may be zeros. Among decimals zero may have a sign where both sides of it are in range: to keep it out takes an
alternative for every digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from toolgram.caching import counted
from toolgram.grammar.ir import EMPTY, NOTHING, CharSet, Expr, Literal, chars, choice, optional, repeat, seq

DECIMAL = "0123456789"
DIGIT = chars(DECIMAL)
NON_ZERO = chars("123456789")
_LONG_RUN = 30  # zeros after the point


def same_length(low: str, high: str, alphabet: str = DECIMAL) -> Expr:
    """The digit strings from `low` to `high`, which have the same length."""
    if low > high:
        return NOTHING
    shared = _shared_length(low, high)
    if shared == len(low):
        return Literal(low)
    prefix, low, high = low[:shared], low[shared:], high[shared:]
    width = len(low) - 1
    from_low, to_high = low[1:].rstrip(alphabet[0]), high[1:].rstrip(alphabet[-1])
    first, last = alphabet.index(low[0]), alphabet.index(high[0])
    options: list[Expr] = []
    if from_low:
        options.extend(_above(low[0], from_low, width, alphabet))
        first += 1
    if to_high:
        last -= 1
    if first <= last:
        options.append(seq(_one_of(alphabet[first : last + 1]), _any(alphabet, width)))
    if to_high:
        options.extend(_below(high[0], to_high, width, alphabet))
    return seq(prefix, choice(*options))


def _shared_length(low: str, high: str) -> int:
    return next((index for index, (a, b) in enumerate(zip(low, high, strict=True)) if a != b), len(low))


def _one_of(digits: str) -> Expr:
    return Literal(digits) if len(digits) == 1 else _set(digits)


def _any(alphabet: str, count: int) -> Expr:
    return repeat(_set(alphabet), count, count)


@counted(256)  # of a dozen digits
def _set(digits: str) -> CharSet:
    return chars(digits)


def _above(first: str, bound: str, width: int, alphabet: str) -> Iterator[Expr]:
    """`first`, then `width` digits that are at least `bound` (which goes on with zeros)."""
    for index in reversed(range(len(bound))):
        is_last = index == len(bound) - 1
        if more := alphabet[alphabet.index(bound[index]) + (not is_last) :]:
            yield seq(first, bound[:index], _one_of(more), _any(alphabet, width - index - 1))


def _below(first: str, bound: str, width: int, alphabet: str) -> Iterator[Expr]:
    """`first`, then `width` digits that are at most `bound` (which goes on with nines)."""
    for index in range(len(bound)):
        is_last = index == len(bound) - 1
        if less := alphabet[: alphabet.index(bound[index]) + is_last]:
            yield seq(first, bound[:index], _one_of(less), _any(alphabet, width - index - 1))


def integers(low: int | None, high: int | None, digits: int | None = None) -> Expr:
    """The integers from `low` to `high` (None: no bound), each in its one spelling.

    `digits` bounds the length of those that have no bound on their side; a bound that is longer makes room for itself.
    """
    if low is not None and high is not None and low > high:
        return NOTHING
    if low is None and high is None:
        return choice("0", seq(optional("-"), _naturals(1, None, digits)))
    options: list[Expr] = []
    if low is None or low < 0:
        smallest = None if low is None else -low
        options.append(seq("-", _naturals(max(1, -high) if high is not None else 1, smallest, digits)))
    if high is None or high >= 0:
        options.append(_naturals(max(0, low) if low is not None else 0, high, digits))
    return choice(*options)


def _naturals(low: int, high: int | None, digits: int | None) -> Expr:
    if high is not None and low > high:
        return NOTHING
    if low == 0:
        return choice("0", NOTHING if high == 0 else _naturals(1, high, digits))
    start = _digits(low)
    if high is None:
        cap = None if digits is None else max(digits, len(start))
        if low == 10 ** (len(start) - 1):
            return _lengths(len(start), cap)
        return choice(same_length(start, "9" * len(start)), _lengths(len(start) + 1, cap))
    end = _digits(high)
    if len(start) == len(end):
        return same_length(start, end)
    first, last = len(start) + 1, len(end) - 1
    head, tail = same_length(start, "9" * len(start)), same_length("1" + "0" * last, end)
    if low == 10 ** (len(start) - 1):
        first, head = first - 1, NOTHING
    if end == "9" * len(end):
        last, tail = last + 1, NOTHING
    return choice(head, _lengths(first, last), tail)


def _digits(number: int) -> str:
    return f"{Decimal(number):f}"  # str(int) refuses more than 4300 digits


def _lengths(first: int, last: int | None) -> Expr:
    """The naturals of `first` to `last` digits."""
    if last is not None and last < first:
        return NOTHING
    return seq(NON_ZERO, repeat(DIGIT, first - 1, None if last is None else last - 1))


class _Edge(NamedTuple):
    """Where a range of decimals begins or ends: the number, and whether it is left out."""

    value: Decimal
    open: bool = False


class _Fraction(NamedTuple):
    """The same for the part after the point: its digits, without idle zeros."""

    digits: str
    open: bool = False


_ZERO = Decimal(0)


def decimals(
    low: Decimal | None,
    high: Decimal | None,
    *,
    low_open: bool = False,
    high_open: bool = False,
    digits: int | None = None,
    fraction: int | None = None,
) -> Expr:
    """The decimals from `low` to `high` (None: no bound), without exponent; an open bound is not one of them.

    `digits` bounds the integer part as in `integers`, `fraction` the digits after the point; bounds with more digits
    make room for themselves and one digit more.
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    room = None if fraction is None else max([fraction, *(len(_split(bound)[1]) + 1 for bound in bounds)])
    options: list[Expr] = []
    has_zero = high is None or high > 0 or (high == 0 and not high_open)
    if low is None or low < 0:
        start = _Edge(_ZERO) if high is None or has_zero else _Edge(high.copy_negate(), high_open)
        end = None if low is None else _Edge(low.copy_negate(), low_open)
        options.append(seq("-", _magnitudes(start, end, digits, room)))
    if has_zero:
        start = _Edge(low, low_open) if low is not None and low >= 0 else _Edge(_ZERO)
        options.append(_magnitudes(start, None if high is None else _Edge(high, high_open), digits, room))
    return choice(*options)


def _split(number: Decimal) -> tuple[int, str]:
    """The integer part and the digits of the fraction, without idle zeros, of the number without its sign."""
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    return int(Decimal(whole)), fraction.rstrip("0")


def _magnitudes(start: _Edge, end: _Edge | None, digits: int | None, room: int | None) -> Expr:
    """The decimals without sign between two edges."""
    if end and (start.value > end.value or (start.value == end.value and (start.open or end.open))):
        return NOTHING
    whole, fraction = _split(start.value)
    low = _Fraction(fraction, start.open)
    options: list[Expr] = []
    last, high = None, None
    if end:
        last, fraction = _split(end.value)
        high = _Fraction(fraction, end.open)
        if whole == last:
            return seq(_digits(whole), _fraction(low, high, room))
    if low != _FROM_ZERO:
        options.append(seq(_digits(whole), _fraction(low, None, room)))
        whole += 1
    options.append(seq(_naturals(whole, None if last is None else last - 1, digits), _fraction(_FROM_ZERO, None, room)))
    if last is not None:
        options.append(seq(_digits(last), _fraction(_FROM_ZERO, high, room)))
    return choice(*options)


_FROM_ZERO = _Fraction("")


def _fraction(low: _Fraction, high: _Fraction | None, room: int | None) -> Expr:
    """A point and digits, or nothing, that denote a fraction from `low` to `high` (None: below 1)."""
    options = dict.fromkeys(_fraction_digits(low, high, room))
    bare = EMPTY in options
    options.pop(EMPTY, None)
    dotted = seq(".", choice(*options))
    return dotted if not bare else optional(dotted) if options else EMPTY


def _fraction_digits(low: _Fraction, high: _Fraction | None, room: int | None) -> Iterator[Expr]:
    """Digit strings of a fraction; each expression is EMPTY or matches no empty string."""
    if high is None:
        yield from _fraction_above("", low, room)
        return
    prefix = ""
    from_here = low == _FROM_ZERO  # whether the prefix alone, which goes on with zeros, is high enough
    if from_here and (zeros := _long_run(high.digits)):
        yield from (EMPTY, repeat(chars("0"), 1, zeros - 1))
        prefix, room, high = "0" * zeros, _less(room, zeros), _Fraction(high.digits[zeros:], high.open)
    while (first := low.digits[:1] or "0") == (last := high.digits[:1] or "0"):
        if not low.digits and not high.digits:
            if not low.open and not high.open:
                yield from _then(prefix, chars("0"), room)
            return
        if from_here:
            yield Literal(prefix)
        prefix, room = prefix + first, _less(room, 1)
        low, high = _Fraction(low.digits[1:], low.open), _Fraction(high.digits[1:], high.open)
        from_here = low == _FROM_ZERO
    if first > last:
        return
    middle = DECIMAL[DECIMAL.index(first) : DECIMAL.index(last)]
    if from_here:
        yield Literal(prefix)
    else:
        yield from _fraction_above(prefix + first, _Fraction(low.digits[1:], low.open), _less(room, 1))
        middle = middle[1:]
    if middle:
        yield seq(prefix, _one_of(middle), repeat(DIGIT, 0, _less(room, 1)))
    yield from _fraction_below(prefix + last, _Fraction(high.digits[1:], high.open), _less(room, 1))


def _fraction_above(prefix: str, low: _Fraction, room: int | None) -> Iterator[Expr]:
    zeros = _long_run(low.digits)
    if zeros:  # not one alternative for each, which would nest as deeply when they are factored
        yield seq(prefix, repeat(chars("0"), 0, zeros - 1), NON_ZERO, repeat(DIGIT, 0, _less(room, 1)))
    for index, digit in enumerate(low.digits[zeros:], zeros):
        if more := DECIMAL[DECIMAL.index(digit) + 1 :]:
            yield seq(prefix, low.digits[:index], _one_of(more), repeat(DIGIT, 0, _less(room, index + 1)))
    prefix, room = prefix + low.digits, _less(room, len(low.digits))
    if not low.open:
        yield from _then(prefix, DIGIT, room)
    elif room is None:
        yield seq(prefix, repeat(chars("0")), NON_ZERO, repeat(DIGIT))
    else:
        for zeros in range(room):
            yield seq(prefix, "0" * zeros, NON_ZERO, repeat(DIGIT, 0, room - zeros - 1))


def _fraction_below(prefix: str, high: _Fraction, room: int | None) -> Iterator[Expr]:
    zeros = _long_run(high.digits)
    if zeros:
        yield Literal(prefix)
        yield seq(prefix, repeat(chars("0"), 1, zeros - 1))
    for index, digit in enumerate(high.digits[zeros:], zeros):
        less = DECIMAL[: DECIMAL.index(digit)]
        tail = optional(seq(_one_of(less), repeat(DIGIT, 0, _less(room, index + 1)))) if less else EMPTY
        yield seq(prefix, high.digits[:index], tail)
    if not high.open:
        yield from _then(prefix + high.digits, chars("0"), _less(room, len(high.digits)))


def _long_run(digits: str) -> int:
    """The zeros that the digits begin with, if these are many."""
    zeros = len(digits) - len(digits.lstrip("0"))
    return zeros if zeros > _LONG_RUN else 0


def _then(prefix: str, digit: CharSet, room: int | None) -> Iterator[Expr]:
    """The prefix, then any number of these digits."""
    if prefix:
        yield seq(prefix, repeat(digit, 0, room))
        return
    yield EMPTY
    if room != 0:
        yield repeat(digit, 1, room)


def _less(room: int | None, used: int) -> int | None:
    return None if room is None else room - used
