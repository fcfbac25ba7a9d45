"""Classes of characters for all versions of XGrammar that a vLLM may have: 0.2.8 reads any, those before it do not.

A negated class admits the bytes of a surrogate, which are no UTF-8, and before 0.2.8 one that names what is not ASCII
has no ASCII: strings of calls were in other scripts. And of a range that ends amid the characters that share a byte
these versions lose that end, such as the Korean ones before the surrogates: so it is cut there.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolgram.grammar.ir import MAX_CODE_POINT, CharSet, not_chars

_SURROGATES = (0xD800, 0xDFFF)
_ALIKE = ((0x7F, ()), (0x7FF, (0x40,)), (0xFFFF, (0x1000,)), (MAX_CODE_POINT - 1, (0x40000, 0x1000)))
"""Up to a character, how many share the first of their bytes in UTF-8; and of the longest, the second, too."""


def ranges(charset: CharSet) -> list[tuple[int, int]]:
    """The ranges of a class, without surrogates."""
    spans = not_chars(*not_chars(*charset.ranges).ranges, _SURROGATES).ranges
    return [part for low, high in spans for part in _cut(low, high)]


def _cut(low: int, high: int) -> Iterator[tuple[int, int]]:
    for alike in next((alike for last, alike in _ALIKE if high <= last), ()):
        cut = high // alike * alike
        if low < cut and (high + 1) % alike:
            yield low, cut - 1
            low = cut
    yield low, high
