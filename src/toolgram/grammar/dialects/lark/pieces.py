"""Text without some markers, in pieces: what comes before the first character that a marker begins with, and from each
such character on what makes no marker, up to the next.

So it is only where these characters are nowhere else in a marker. Written so, it is as long as the markers. What the
text must not begin with may be any texts; what several of them end with alike is written once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from toolgram.caching import counted
from toolgram.grammar.ir import EMPTY, Expr, choice, not_chars, optional, repeat, seq

_not_chars = counted(1024)(not_chars)

_Begun = tuple[frozenset[str], str]
"""How the texts go on that may not come first, and how much of a marker has begun beside them."""
_Leave = Callable[[_Begun], Iterator[Expr]]


def text_in_pieces(markers: tuple[str, ...], first: tuple[str, ...]) -> Expr | None:
    """All text without the markers that begins with none of `first`; None where it cannot be told in pieces."""
    begin = "".join(sorted({marker[0] for marker in markers}))
    if any(char in begin for marker in markers for char in marker[1:]):
        return None
    pieces = _Pieces(markers, frozenset(first), begin)
    if not first:
        return seq(pieces.plain, pieces.any)
    opened, ended = (pieces.from_(pieces.start, leave) for leave in (pieces.opened, pieces.ended))
    return choice(seq(_either(opened), pieces.any), *ended)


@dataclass(frozen=True)
class _Pieces:
    """`begin` are the characters that begin a marker."""

    markers: tuple[str, ...]
    first: frozenset[str]
    begin: str

    @property
    def start(self) -> _Begun:
        return self.first, ""

    @property
    def plain(self) -> Expr:
        """What begins no piece."""
        return repeat(_not_chars(*self.begin), 0, None)

    @cached_property
    def any(self) -> Expr:
        """Any pieces."""
        return repeat(choice(*(self.piece(char) for char in self.begin if char not in self.markers)), 0, None)

    def piece(self, char: str) -> Expr:
        """The piece that begins so."""
        return seq(char, self.going_on(char))

    def going_on(self, marker: str) -> Expr:
        """The rest of a piece in which this much of a marker has begun."""
        return optional(choice(*self.ways_on(marker, "")))

    def ways_on(self, marker: str, others: str) -> Iterator[Expr]:
        """The ways to go on in such a piece, or in none, but with one of these characters."""
        following = _following(each[len(marker) :] for each in self.markers if marker and each.startswith(marker))
        yield seq(_not_chars(*self.begin, *following, *others), self.plain)
        for char in following:
            if marker + char not in self.markers and char not in others:
                yield seq(char, self.going_on(marker + char))

    def opened(self, begun: _Begun) -> Iterator[Expr]:
        """What leaves the first texts here, up to where any pieces may follow."""
        texts, marker = begun
        following = _following(texts)
        yield from self.ways_on(marker, following)
        if self.is_shut(texts):
            yield from (self.piece(char) for char in self.begin if char not in following and char not in self.markers)
        else:
            yield EMPTY

    def ended(self, begun: _Begun) -> Iterator[Expr]:
        """The end of the text, where not any piece may follow."""
        if self.is_shut(begun[0]):
            yield EMPTY

    def is_shut(self, texts: frozenset[str]) -> bool:
        """Whether one of the first texts goes on with what begins a piece."""
        return any(text[0] in self.begin for text in texts)

    def from_(self, begun: _Begun, leave: _Leave) -> list[Expr]:
        """The ways from such a beginning to where it is left: through each `joint` they are written once."""
        left, joined = self.ways(begun, leave)
        for joint, ways in joined.items():
            if rest := self.from_(joint, leave):
                left.append(seq(_either(ways), _either(rest)))
        return left

    def ways(self, begun: _Begun, leave: _Leave) -> tuple[list[Expr], dict[_Begun, list[Expr]]]:
        """The ways from such a beginning to where it is left, and to each joint."""
        left, joined = list(leave(begun)), dict[_Begun, list[Expr]]()
        for char, longer in self.longer(begun):
            if longer in self.joints:
                joined.setdefault(longer, []).append(seq(char))
                continue
            inside, beyond = self.ways(longer, leave)
            if inside:
                left.append(seq(char, _either(inside)))
            for joint, found in beyond.items():
                joined.setdefault(joint, []).append(seq(char, _either(found)))
        return left, joined

    @cached_property
    def joints(self) -> frozenset[_Begun]:
        """The beginnings that are come to in several ways."""
        count = Counter[_Begun]()
        waiting = [self.start]
        while waiting:
            for _, longer in self.longer(waiting.pop()):
                count[longer] += 1
                if count[longer] == 1:
                    waiting.append(longer)
        return frozenset(begun for begun, times in count.items() if times > 1)

    def longer(self, begun: _Begun) -> Iterator[tuple[str, _Begun]]:
        """Such beginnings that are longer by a character, and are text."""
        texts, marker = begun
        for char in _following(texts):
            after = frozenset(text[1:] for text in texts if text[0] == char)
            grown = char if char in self.begin else marker + char if marker else ""
            if "" not in after and grown not in self.markers:
                yield char, (after, grown if any(each.startswith(grown) for each in self.markers) else "")


def _following(texts: Iterator[str] | frozenset[str]) -> str:
    """The characters with which these texts begin."""
    return "".join(sorted({text[0] for text in texts if text}))


def _either(ways: list[Expr]) -> Expr:
    """One of the ways, of which one may be empty."""
    some = [way for way in ways if way != EMPTY]
    return choice(*some) if len(some) == len(ways) else optional(choice(*some)) if some else EMPTY
