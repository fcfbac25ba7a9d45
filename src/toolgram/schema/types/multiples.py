"""Multiples of a number: the least and greatest between bounds, and the language of their spellings.

Among the digits after the point, those beyond the digits of the step are zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Repeat, Sequence, chars
from toolgram.grammar.regular.alphabet import Alphabet
from toolgram.grammar.regular.automata import Automaton, explore, intersection
from toolgram.grammar.regular.regex import language, pattern
from toolgram.grammar.regular.regex_syntax import END, START, Alt, Cat, Rep, Tree
from toolgram.work import TooLarge, remembered

_MAX_STATES = 2_000  # residues times digits, while an automaton is made
_DIGITS = "0123456789"


def common_multiple(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    """The least common multiple of two steps (None: no step)."""
    if left is None or right is None:
        return right if left is None else left
    a, b = Fraction(left), Fraction(right)
    common = math.lcm(a.numerator * b.denominator, b.numerator * a.denominator)
    return _decimal(Fraction(common, a.denominator * b.denominator))


class Steps(NamedTuple):
    """A step (None: 1, as for all integers), and its multiples that are the bounds."""

    integer: bool
    step: Decimal | None
    low: Decimal | None
    high: Decimal | None


def to_multiples(
    step: Decimal, *, integer: bool, low: Decimal | None, high: Decimal | None, low_open: bool, high_open: bool
) -> Steps:
    """The same multiples, or integers that are multiples, with bounds that are multiples, which are not open.

    Raises TooLarge where there are too many for an automaton of their spellings.
    """
    each = Fraction(step)
    if integer:
        each = Fraction(each.numerator)  # in lowest terms: of the multiples of a/b the integers are those of a
    least = greatest = None
    if low is not None:
        count = Fraction(low) / each
        least = math.floor(count) + 1 if low_open else math.ceil(count)
    if high is not None:
        count = Fraction(high) / each
        greatest = math.ceil(count) - 1 if high_open else math.floor(count)
    bounds = [None if count is None else _decimal(count * each) for count in (least, greatest)]
    longest = max((len(f"{bound:f}") for bound in bounds if bound), default=0)
    if each.numerator * (longest + 2) > _MAX_STATES or longest > _MAX_STATES:
        raise TooLarge
    whole = each.denominator == 1
    return Steps(whole, None if each == 1 else _decimal(each), bounds[0], bounds[1])


def _decimal(value: Fraction) -> Decimal:
    """The decimal of a fraction that has one, of any size."""
    places = 0
    while value.denominator != 1:
        value, places = value * 10, places + 1
    digits = tuple(int(digit) for digit in f"{Decimal(abs(value.numerator)):f}")
    return Decimal((int(value < 0), digits, -places))


@remembered(maxsize=64)
def multiples(step: Decimal) -> Automaton:
    """Digits with an optional sign and point that denote multiples of the step. Raises TooLarge."""
    each = Fraction(step)
    places = 0
    while each.denominator != 1:
        each, places = each * 10, places + 1
    unit = each.numerator
    letters = [chars("-"), chars("."), *map(chars, _DIGITS)]
    alphabet = Alphabet(letters)
    minus, point, *digits = (alphabet.letters(letter)[0] for letter in letters)

    def step_from(state: tuple[int | None, int]) -> Iterator[tuple[int, tuple[int | None, int]]]:
        after, rest = state  # digits after the point, if there is one, and the remainder of all digits
        if after is None:
            yield minus, state
            yield point, (0, rest)
        for digit, letter in enumerate(digits):
            if after is None:
                yield letter, (None, (rest * 10 + digit) % unit)
            elif after < places:
                yield letter, (after + 1, (rest * 10 + digit) % unit)
            elif digit == 0:
                yield letter, state

    def is_multiple(state: tuple[int | None, int]) -> bool:
        after, rest = state
        return rest * 10 ** (places - (after or 0)) % unit == 0

    return explore((None, 0), step_from, is_multiple, alphabet)


@remembered(maxsize=64)
def multiples_among(numbers: Expr, step: Decimal | None, broken: bool) -> Automaton:
    """Those spellings of numbers that denote multiples of the step, or that are no integers. Raises TooLarge."""
    found = language(Cat((START, _tree(numbers), END)))
    if step is not None:
        found = intersection(found, multiples(step))
    return intersection(found, pattern("\\.0*[1-9]")) if broken else found


def _tree(expr: Expr) -> Tree:
    match expr:
        case Literal(text):
            return Cat(tuple(chars(char) for char in text))
        case Sequence(items):
            return Cat(tuple(map(_tree, items)))
        case Choice(options):
            return Alt(tuple(map(_tree, options)))
        case Repeat(item, low, high):
            return Rep(_tree(item), low, high)
        case CharSet():
            return expr
        case _:
            raise TypeError(f"{type(expr).__name__} has no texts of its own")
