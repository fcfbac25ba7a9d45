"""Text without some markers, in pieces: what comes before the first character that a marker begins with, and from each
such character on what makes no marker, up to the next.

So it is only where these characters are nowhere else in a marker. Written so, it is as long as the markers. What the
text must not begin with, or not be (END), may be any texts; what several of them end with alike is written once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from toolgram.caching import counted, weighed
from toolgram.grammar.ir import EMPTY, END, CharSet, Expr, choice, is_empty, not_chars, optional, repeat, seq

_not_chars = counted(1024)(not_chars)

AT_ONCE = 6  # characters that are read one after the other with nothing nested: engines take no deep expressions

_WEIGHT = 200  # bytes that are remembered of such a text, for each of its characters

_Rests = frozenset[str]
"""How some texts go on that have begun."""
_Begun = tuple[_Rests, _Rests]
"""How the texts go on that may not come first, and the markers that have begun beside them."""
_Longer = tuple[tuple[str, _Begun], ...]
"""Such beginnings by the character that they have more."""
_Leave = Callable[["_Pieces", _Begun], Iterator[Expr]]
_Ways = tuple[list[Expr], dict[_Begun, list[Expr]]]
"""The ways to where a beginning is left, and to each joint."""

_NONE: _Rests = frozenset()


def text_in_pieces(markers: tuple[str, ...], first: tuple[str, ...]) -> Expr | None:
    """All text without the markers that begins with none of `first`; None where it cannot be told in pieces."""
    begin = _following(markers)
    if any(char in begin for marker in markers for char in marker[1:]):
        return None
    start = (frozenset(first), _NONE)
    pieces = _Pieces(markers, begin)
    pieces = replace(pieces, joints=pieces.come_to_twice(start))
    if not first:
        return seq(pieces.plain, pieces.any)
    opened = pieces.from_(start, _Pieces.opened)
    may_end = not set(begin).isdisjoint("".join(first))
    ended = pieces.from_(start, _Pieces.ended) if may_end else []
    return choice(seq(_either(opened), pieces.any), *([_either(ended)] if ended else []))


@dataclass(frozen=True)
class _Pieces:
    """`begin` are the characters that begin a marker; `joints` the beginnings that are come to in several ways; of
    beginnings it is `known` how they go on."""

    markers: tuple[str, ...]
    begin: str
    joints: frozenset[_Begun] = frozenset()
    known: dict[_Begun, _Longer] = field(default_factory=dict[_Begun, _Longer])

    @property
    def plain(self) -> Expr:
        """What begins no piece."""
        return repeat(_not_chars(*self.begin), 0, None)

    @cached_property
    def any(self) -> Expr:
        """Any pieces, if there are any."""
        pieces = [self.piece(char) for char in self.begin if char not in self.markers]
        return repeat(choice(*pieces), 0, None) if pieces else EMPTY

    def piece(self, char: str) -> Expr:
        """The piece that begins so."""
        return seq(char, self.going_on(_after(char, self.markers)))

    def going_on(self, rests: _Rests) -> Expr:
        """The rest of a piece in which markers have begun."""
        return _either(self.from_((_NONE, rests), _Pieces.opened))

    def opened(self, begun: _Begun) -> Iterator[Expr]:
        """What goes on here with neither the first texts nor the markers, up to where any pieces may follow."""
        texts, rests = begun
        first, more = _following(texts), _following(rests)
        yield _not_chars(*self.begin, *first, *more)
        if texts:  # without any, the markers are followed themselves
            afters = ((char, _after(char, rests)) for char in more if char not in first)
            yield from (seq(char, self.going_on(after)) for char, after in afters if "" not in after)
        if self.is_shut(texts):
            yield from (self.piece(char) for char in self.begin if char not in first and char not in self.markers)
        else:
            yield EMPTY

    def ended(self, begun: _Begun) -> Iterator[Expr]:
        """The end of the text, where not any piece may follow: where one would go on like a text that may not come
        first."""
        if self.is_shut(begun[0]) and END not in begun[0]:
            yield EMPTY

    def is_shut(self, texts: _Rests) -> bool:
        """Whether one of the first texts goes on with what begins a piece, or the text must not end here."""
        return any(text[0] in self.begin or text == END for text in texts)

    def from_(self, begun: _Begun, leave: _Leave) -> list[Expr]:
        """The ways from such a beginning to where it is left: beyond each joint they are written once."""
        left, joined = self.ways(begun, leave, look_up=True)
        for joint, ways in joined.items():
            if rest := self.from_(joint, leave):
                left.append(seq(_either(ways), _either(rest)))
        return left

    def ways(self, begun: _Begun, leave: _Leave, *, look_up: bool = False) -> _Ways:
        """The ways from such a beginning, where those of longer ones may be known."""
        plain, others, joined = list[Expr](), list[Expr](), dict[_Begun, list[Expr]]()
        waiting = [("", begun)]
        for way, here in waiting:
            for exit_ in leave(self, here):
                exits = plain if isinstance(exit_, CharSet) else others
                exits.append(seq(way, exit_) if way else exit_)
            for char, longer in self.longer(here):
                if longer in self.joints:
                    joined.setdefault(longer, []).append(seq(way + char))
                elif len(way) < AT_ONCE - 1:
                    waiting.append((way + char, longer))
                else:
                    inside, beyond = self.known_ways(longer, leave) if look_up else self.ways(longer, leave)
                    others += [seq(way + char, _either(inside))] if inside else []
                    for joint, found in beyond.items():
                        joined.setdefault(joint, []).append(seq(way + char, _either(found)))
        return [*([seq(choice(*plain), self.plain)] if plain else []), *others], joined

    def known_ways(self, begun: _Begun, leave: _Leave) -> _Ways:
        """The same, known of other texts that go on so, and are joined in the same places, as markers by themselves."""
        joints = self.joints.intersection(self.reached(begun)).union(joint for joint in self.joints if not joint[0])
        return _ways(self.markers, begun, joints, leave)

    def reached(self, begun: _Begun) -> set[_Begun]:
        """All beginnings that go on from one."""
        waiting, seen = [begun], {begun}
        for here in waiting:
            fresh = {longer for _, longer in self.longer(here)} - seen
            seen |= fresh
            waiting += fresh
        return seen

    def come_to_twice(self, start: _Begun) -> frozenset[_Begun]:
        """The beginnings that are come to in several ways."""
        count = Counter[_Begun]()
        waiting = [start]
        for begun in waiting:
            for _, longer in self.longer(begun):
                count[longer] += 1
                if count[longer] == 1:
                    waiting.append(longer)
        return frozenset(begun for begun, times in count.items() if times > 1)

    def longer(self, begun: _Begun) -> _Longer:
        """Such beginnings that are longer by a character, and are text."""
        if begun not in self.known:
            self.known[begun] = tuple(self._longer(*begun))
        return self.known[begun]

    def _longer(self, texts: _Rests, rests: _Rests) -> Iterator[tuple[str, _Begun]]:
        for char in _following(texts or rests):
            first = _after(char, texts)
            more = _after(char, self.markers) if char in self.begin else _after(char, rests)
            if "" not in first | more:
                yield char, (first, more)


def _weight(markers: tuple[str, ...], begun: _Begun, joints: frozenset[_Begun], _: _Leave) -> int:
    return _WEIGHT * sum(map(len, chain(markers, *begun, *chain.from_iterable(joints))))


@weighed(_weight)
def _ways(markers: tuple[str, ...], begun: _Begun, joints: frozenset[_Begun], leave: _Leave) -> _Ways:
    return _Pieces(markers, _following(markers), joints).ways(begun, leave)


def _following(texts: Collection[str]) -> str:
    """The characters with which these texts begin."""
    if len(texts) <= 1:  # as nearly always, a few letters after they have begun
        return "".join([text[0] for text in texts])
    return "".join(sorted({text[0] for text in texts}))


def _after(char: str, texts: Iterable[str]) -> _Rests:
    """How the texts go on that begin with this character."""
    return frozenset([text[1:] for text in texts if text[0] == char]) if texts else _NONE


def _either(ways: list[Expr]) -> Expr:
    """One of the ways, of which one may be empty."""
    some = [way for way in ways if not is_empty(way)]
    return choice(*some) if len(some) == len(ways) else optional(choice(*some)) if some else EMPTY
