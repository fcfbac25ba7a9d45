"""What the escapes of patterns stand for: `\\w` and its like, and the dot, in ECMA-262 and in all of Unicode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from toolgram.grammar.ir import CharSet, chars, not_chars
from toolgram.grammar.regular.unicode_classes import property_chars

DIGIT = chars("0123456789")
WORD = chars("_", (0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
SPACE = chars("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff", (0x2000, 0x200A))
DOT = not_chars("\n\r\u2028\u2029")


def inverse(charset: CharSet) -> CharSet:
    """All other characters."""
    return not_chars(*charset.ranges)


@dataclass(frozen=True, slots=True)
class Sets:
    """What the escapes for sets stand for, by their letters, and the dot."""

    of: Mapping[str, CharSet]
    dot: CharSet


ECMA = Sets(
    {"d": DIGIT, "w": WORD, "s": SPACE, "D": inverse(DIGIT), "W": inverse(WORD), "S": inverse(SPACE)},
    DOT,
)


@cache
def unicode() -> Sets:
    """Those of `(?u)`; the signs are what joins letters, and the letters in circles and squares.

    What Python's tables do not know between two characters of words may be one in newer tables, and counts as such.
    """
    signs = ("\u200c\u200d", (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
    letters = (each for name in ("L", "M", "Nd", "Nl", "Pc") for each in property_chars(name).ranges)
    known = chars(*signs, *letters).ranges
    unknown = set(property_chars("Cn").ranges)
    gaps = [(end + 1, begin - 1) for (_, end), (begin, _) in pairwise(known)]
    word = chars(*known, *filter(unknown.__contains__, gaps))
    space = chars((0x09, 0x0D), (0x85, 0x85), *property_chars("Z").ranges)
    sets = {"d": property_chars("Nd"), "w": word, "s": space}
    return Sets({**sets, **{name.upper(): inverse(of) for name, of in sets.items()}}, not_chars("\n"))
