"""How numbers are written: one spelling for each, with exponents as the spelling has them, and within its caps."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from toolgram.caching import counted
from toolgram.grammar.ir import Expr, chars, choice, optional, repeat, seq
from toolgram.grammar.regular.automata import Automaton
from toolgram.schema import types
from toolgram.schema.types.multiples import multiples_among
from toolgram.schema.writing.json_style import Spelling
from toolgram.schema.writing.numbers import DIGIT, NON_ZERO, decimals, integers
from toolgram.work import TooLarge

MAX_EXPONENT = 307  # with any mantissa below 10 a finite double
MIN_EXPONENT = -324  # of the smallest double that is not zero


def any_number(spelling: Spelling) -> Expr:
    """Every number, with the caps and the exponents of the spelling."""
    whole = integers(0, None, spelling.integer_digits)
    fraction = _fraction(spelling.fraction_digits)
    plain = seq(whole, fraction)
    if not spelling.exponents:
        return seq(optional("-"), plain)
    if not spelling.free:
        return seq(optional("-"), choice(plain, seq(NON_ZERO, fraction, _power("+", MAX_EXPONENT))))
    return seq(optional("-"), choice(plain, _with_a_power(spelling.fraction_digits)))


def _fraction(digits: int | None) -> Expr:
    return optional(seq(".", repeat(DIGIT, 1, digits)))


def _with_a_power(digits: int | None) -> Expr:
    """Numbers above 0 with an exponent, as people and programs write them; so many digits may follow the point."""
    fraction = _fraction(digits)
    letter = chars("eE")
    padded = seq(letter, choice("+", "-"), "0", DIGIT)  # two digits at least, as C and Python print it: 5e-06
    part = seq("0.", NON_ZERO, repeat(DIGIT, 0, None if digits is None else digits - 1))
    small = seq(choice(part, seq(NON_ZERO, fraction)), choice(_power(optional("+"), MAX_EXPONENT, letter), padded))
    power = _power(optional("+"), MAX_EXPONENT - 2, letter)
    large = seq(NON_ZERO, repeat(DIGIT, 1, 2), fraction, choice(power, padded))
    return choice(small, large)


def _power(plus: Expr | str, most: int, letter: Expr | str = "e") -> Expr:
    return seq(letter, choice(seq(plus, integers(1, most)), seq("-", integers(1, -MIN_EXPONENT))))


def multiples(kind: types.Number, spelling: Spelling) -> Automaton:
    """The numbers of a type that are multiples, or no integers, as texts. Raises TooLarge."""
    every = replace(kind, multiple=None, broken=False)
    plain = replace(spelling, exponents=False)
    try:
        return multiples_among(number_range(every, plain), kind.multiple, kind.broken)
    except TooLarge:  # by the digit caps, without which there are states enough
        free = replace(plain, integer_digits=None, fraction_digits=None)
        return multiples_among(number_range(every, free), kind.multiple, kind.broken)


@counted(64)  # of the same few bounds in all schemas
def number_range(kind: types.Number, spelling: Spelling) -> Expr:
    """The numbers of a type; a single one has a single spelling, and bounded ones have no exponent, but for those that
    are only to be above 0, where the spelling is free."""
    if kind == types.Number():
        return any_number(spelling)
    if kind.low is not None and kind.low == kind.high:
        return seq(_point(kind.low))
    if kind.integer:
        low, high = (None if bound is None else int(bound) for bound in (kind.low, kind.high))
        return integers(low, high, spelling.integer_digits)
    plain = decimals(
        kind.low,
        kind.high,
        low_open=kind.low_open,
        high_open=kind.high_open,
        digits=spelling.integer_digits,
        fraction=spelling.fraction_digits,
    )
    if not _may_have_a_power(kind, spelling):
        return plain
    return choice(plain, _with_a_power(spelling.fraction_digits))


def _may_have_a_power(kind: types.Number, spelling: Spelling) -> bool:
    """Whether numbers of the type are written with exponents: all, or those above 0, are of it."""
    above_zero = kind.low == 0 and kind.high is None and kind.multiple is None and not (kind.integer or kind.broken)
    return spelling.exponents and (kind == types.Number() or (spelling.free and above_zero))


def _point(value: Decimal) -> str:
    """The one spelling of a number that a schema names."""
    positional = _positional(value)
    return positional if len(positional) <= 25 else _with_exponent(value) or positional


def _positional(value: Decimal) -> str:
    whole, _, fraction = f"{value:f}".partition(".")
    fraction = fraction.rstrip("0")
    text = f"{whole}.{fraction}" if fraction else whole
    return "0" if text == "-0" else text


def _with_exponent(value: Decimal) -> str | None:
    if not value:
        return None
    digits = "".join(map(str, value.as_tuple().digits)).lstrip("0").rstrip("0")
    power = value.adjusted()
    if power == 0 or not MIN_EXPONENT <= power <= MAX_EXPONENT:
        return None
    mantissa = f"{digits[0]}.{digits[1:]}" if digits[1:] else digits
    return f"{'-' if value < 0 else ''}{mantissa}e{power:+d}"


def decimal_of(value: float | Decimal) -> Decimal | None:
    """The number that JSON text would give for this value; None for infinities and NaN."""
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return number if number.is_finite() else None


def spell_number(kind: types.Number, value: float, spelling: Spelling) -> str | None:
    """The spelling of a number of this type; None where it is not of the type, or not within the digit caps."""
    number = decimal_of(value)
    if number is None or not kind.admits(number):
        return None
    if kind.low is not None and kind.low == kind.high:
        return _point(kind.low)
    free = kind == types.Number()
    text = _positional(number)
    if free and isinstance(value, float) and (number == 0 or "." not in text):
        text = f"{'-' if repr(value)[0] == '-' and not number else ''}{text}.0"
    candidates = [text]
    if _may_have_a_power(kind, spelling):
        long = isinstance(value, float) and "e" in repr(value)
        candidates.insert(0 if long else 1, _with_exponent(number) or text)
    return next((spelled for spelled in candidates if spelled and _fits(spelled, kind, spelling)), None)


def _fits(text: str, kind: types.Number, spelling: Spelling) -> bool:
    """Whether the digit caps admit this spelling of a number that is within its bounds."""
    mantissa = text.lstrip("-").partition("e")[0]
    whole, _, fraction = mantissa.partition(".")
    given = [bound for bound in (kind.low, kind.high) if bound is not None]
    bounds = [_positional(bound.copy_abs()).partition(".") for bound in given]
    same_side = [len(bound[0]) for bound, value in zip(bounds, given, strict=True) if (value < 0) == (text[0] == "-")]
    ahead = max([spelling.integer_digits or 0, *same_side])
    places = max([spelling.fraction_digits or 0, *(len(bound[2]) + 1 for bound in bounds)])
    return (spelling.integer_digits is None or len(whole) <= ahead) and (
        spelling.fraction_digits is None or len(fraction) <= places
    )
