"""Properties of Unicode characters, as `\\p{…}` names them, so far as Python's own tables know them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby

from toolgram.grammar.ir import MAX_CODE_POINT, CharSet, chars, not_chars

_LONG_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd",
    "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc", "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs",
    "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip
_CATEGORIES = frozenset(_LONG_NAMES.values())
_BINARY: dict[str, Callable[[], CharSet]] = {
    "Any": not_chars,
    "ASCII": lambda: chars((0, 0x7F)),
    "ASCII_Hex_Digit": lambda: chars((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "Assigned": lambda: not_chars(*_category("Cn").ranges),
}


class UnknownProperty(Exception):
    """A property that Python's tables do not know."""


def property_chars(name: str, *, negative: bool = False) -> CharSet:
    """The characters of `\\p{name}`, or of `\\P{name}`: general categories and a few binary properties.

    Raises UnknownProperty: scripts and most binary properties are in no table of Python's.
    """
    key, _, value = name.rpartition("=")
    category = _LONG_NAMES.get(value, value)
    if category in _CATEGORIES and key in ("", "General_Category", "gc"):
        charset = _category(category)
    elif not key and name in _BINARY:
        charset = _BINARY[name]()
    else:
        raise UnknownProperty(f"the character property {name!r}")
    return not_chars(*charset.ranges) if negative else charset


@lru_cache(maxsize=64)
def _category(name: str) -> CharSet:
    cased = ("Lu", "Ll", "Lt")
    wanted = cased if name == "LC" else tuple(key for key in _runs() if key.startswith(name))
    return chars(*(run for key in wanted for run in _runs().get(key, ())))


@lru_cache(maxsize=1)
def _runs() -> dict[str, list[tuple[int, int]]]:
    """The runs of code points of each general category."""
    found: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(MAX_CODE_POINT + 1)))):
        end = start + sum(1 for _ in run)
        found.setdefault(category, []).append((start, end - 1))
        start = end
    return found
