"""Text that several marks may end, told by the character with which all of these begin.

Up to there the text is the same for all of them, and what follows is either one of the marks, or more text. Where that
character is in the midst of a mark as well, what stands before it there leads to a place of its own, in which the rest
of that mark may follow too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Only, Row, Tree, row
from toolgram.grammar.ir import END, START, Expr, Literal, Text, seq

Place = frozenset[tuple[str, str]]
"""A place in a text after the character: how the marks go on that have begun there; each with itself, if a way on may
begin with it, or ""."""
_MOST_PLACES = 4  # each has all that may follow a text written for it


class Way(NamedTuple):
    """A way on: the mark that it begins with, and what follows; what is true of both."""

    mark: str
    after: Node
    only: tuple[Only, ...] = ()


class Opening(NamedTuple):
    """What `marks` begin with: a text ends before each `char`. At first it is where it stands in its marks already, and
    after a `char` that begins no more than a mark it is in the `base`; `others` are in no place."""

    char: str
    marks: frozenset[str]
    first: Place
    base: Place
    others: tuple[str, ...]

    def text(self, place: Place) -> Text:
        """The text from a place on without the character."""
        return self._text(rest for rest, _ in place if self.char not in rest)

    def up_to(self, place: Place) -> Lexeme:
        """The same with the character, where that leads back to the base."""
        text = self._text((*self.onward(place), *(rest for rest, _ in place if self.char not in rest)))
        return Lexeme(seq(text, self.char), merged=1)

    def onward(self, place: Place) -> dict[str, Place]:
        """The places that are in the midst of marks, each by what leads to it, with END for the character."""
        found: dict[str, Place] = {}
        for rest, mark in sorted(place):
            begun, char, more = rest.partition(self.char)
            if char:
                found[begun + END] = found.get(begun + END, self.base) | {(more, mark)}
        return {begun: to for begun, to in found.items() if not self._ends_text(begun, place)}

    def leading(self, begun: str) -> Lexeme:
        """What leads to a place that is in the midst of marks."""
        return Lexeme(Literal(begun.removesuffix(END) + self.char))

    def begun(self, place: Place, ways: Iterable[Way]) -> list[Node]:
        """The ways on whose marks end in a place, without what comes before it."""
        here = {mark: Literal(rest) for rest, mark in place if mark and self.char not in rest}
        return [row(*way.only, Lexeme(here[way.mark]), way.after) for way in ways if way.mark in here]

    def _text(self, first: Iterable[str]) -> Text:
        not_first = tuple(START + begin for begin in sorted(first))
        return Text((self.char, *self.others, *not_first), START if not_first else "")

    def loses_ways(self, place: Place) -> bool:
        """Whether a mark with which a way on begins is told too late in a place, where another is in it."""
        begun = (rest.partition(self.char)[0] for rest, mark in place if mark and self.char in rest)
        return any(self._ends_text(each, place) for each in begun)

    def _ends_text(self, begun: str, place: Place) -> bool:
        """Whether there is a whole mark in a beginning of another, which then is none."""
        return begun.startswith(tuple(rest for rest, _ in place)) or any(mark in begun for mark in self.others)

    @property
    def places(self) -> set[Place]:
        """All that it can come to after a first character."""
        found = {self.base}
        waiting = [self.base, self.first]
        while waiting:
            new = set(self.onward(waiting.pop()).values()) - found
            found |= new
            waiting += new
        return found

    def after(self, literal: Expr) -> Way | None:
        """What is left of a literal without the character, if it begins with one of the marks."""
        mark = next(_beginnings(literal.text, self.marks), "") if isinstance(literal, Literal) else ""
        if not (mark and isinstance(literal, Literal)):
            return None
        left = literal.text[len(mark) :]
        return Way(mark, Lexeme(Literal(left)) if left else row())


def opening_of(text: Expr, following: Node, rules: Tree) -> Opening | None:
    """What the marks begin with that may end a text before this node, where several of them begin alike.

    None where that character ends a mark, or is in the midst of one that begins otherwise, or is told too late,
    or leads to too many places.
    """
    if not isinstance(text, Text):
        return None
    without = frozenset(text.without)
    ahead = {mark for begun in _literals_first(following, rules) for mark in _beginnings(begun, without)}
    by_char: dict[str, set[str]] = {}
    for mark in sorted(ahead):
        by_char.setdefault(mark[0], set()).add(mark)
    char, marks = max(by_char.items(), key=lambda group: len(group[1]), default=("", set[str]()))
    if len(marks) < 2:
        return None
    rests = frozenset((mark[1:], mark if mark in marks else "") for mark in text.without if mark[0] == char)
    others = tuple(mark for mark in text.without if mark[0] not in (char, START))
    opening = Opening(char, frozenset(marks), frozenset((rest, "") for rest in _begun(text)), rests, others)
    if any(mark.endswith(char) for mark in without) or any(char in mark for mark in others):
        return None
    places = opening.places
    begin = {other[0] for other in others}
    told = not any(first in other[1:] for other in others for first in begin)  # as END must be: see `pieces`
    if len(places) > (_MOST_PLACES if told else 1) or any(map(opening.loses_ways, places)):
        return None
    return opening


def _begun(text: Text) -> list[str]:
    """What must not come first in a text, since what came before it begins one of its markers."""
    ends = range(1, len(text.seen) + 1)
    return [mark[end:] for mark in text.without for end in ends if text.seen.endswith(mark[:end])]


def _beginnings(text: str, marks: frozenset[str]) -> Iterator[str]:
    """The marks with which a text begins, the shortest first."""
    return (text[:end] for end in range(1, len(text) + 1) if text[:end] in marks)


def _literals_first(node: Node, rules: Tree) -> set[str]:
    """The literals with which a node may begin."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        match waiting.pop():
            case Lexeme(Literal(text)):
                found.add(text)
            case Row((first, *_)):
                waiting.append(first)
            case Fork(options):
                waiting += options
            case Loop(item):
                waiting.append(item)
            case Call(name) if name not in seen:
                seen.add(name)
                waiting.append(rules[name])
            case _:
                pass
    return found
