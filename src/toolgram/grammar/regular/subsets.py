"""Patterns without assertions as automata, by the subset construction: a state is a set of places, a bit each.

Most patterns are such, between `^` and `$`, and so are all formats: they need no claims about what lies around a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from toolgram.grammar.ir import CharSet
from toolgram.grammar.regular.alphabet import Alphabet
from toolgram.grammar.regular.automata import Automaton, explore
from toolgram.grammar.regular.regex_syntax import Alt, Cat, Look, Rep, Tree, charsets, inner
from toolgram.work import MAX_STEPS, TooLarge, spend

_MAX_PROGRAM = 20_000
_MATCH = 0  # the place where the whole is matched, and its bit


def is_plain(tree: Tree) -> bool:
    """Whether there is no assertion in it."""
    return not isinstance(tree, Look) and all(map(is_plain, inner(tree)))


def plain_automaton(tree: Tree, *, found: bool, shared: bool = False) -> tuple[Automaton, int]:
    """The texts that match the whole tree, or, with `found`, begin with one that does; and how many of its places may
    read the same character. Places with the same future may be `shared`: a pattern that ends alike in many ways then
    has a third of the states to look at, but fewer places at once than whoever reads it as it is written.

    Raises TooLarge.
    """
    subsets = _Subsets(Alphabet(charsets(tree)), found, shared)
    start = subsets.closed(subsets.place(tree, _MATCH))
    automaton = explore(start, subsets.step, lambda state: bool(state & 1), subsets.alphabet)
    spend(subsets.work)
    return automaton, subsets.parallel


@dataclass(slots=True)
class _Subsets:
    """A tree as places: one reads characters and goes on at another, or goes on at several at once."""

    alphabet: Alphabet
    found: bool
    shared: bool
    work: int = 0
    parallel: int = 0
    _then: list[int | Sequence[int]] = field(default_factory=lambda: [()])  # where it reads: the one place after it
    _readers: list[int] = field(init=False)  # by letter: the places that read it
    _same: dict[tuple[object, object], int] = field(default_factory=dict[tuple[object, object], int])  # the shared ones
    _closed: dict[int, int] = field(default_factory=dict[int, int])
    _after: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        self._readers = [0] * len(self.alphabet.every)

    def place(self, tree: Tree, then: int) -> int:
        """Where the tree begins, if it goes on at `then`."""
        match tree:
            case CharSet():
                return self._once((tree, then), lambda: self._reader(tree, then))
            case Cat(items):
                for item in reversed(items):
                    then = self.place(item, then)
                return then
            case Alt(options):
                places = tuple([self.place(option, then) for option in options])
                return self._once((Alt, places), lambda: self._add(places))
            case Rep():
                return self._once((tree, then), lambda: self._repeated(tree, then))
            case Look():
                raise AssertionError(tree)

    def _once(self, key: tuple[object, object], make: Callable[[], int]) -> int:
        """The place that was made for the same before, where it may be shared."""
        if not self.shared:
            return make()
        if key not in self._same:
            self._same[key] = make()
        return self._same[key]

    def _reader(self, charset: CharSet, then: int) -> int:
        place = self._add(then)
        for letter in self.alphabet.letters(charset):
            self._readers[letter] |= 1 << place
        return place

    def _repeated(self, tree: Rep, then: int) -> int:
        begin, copies = then, tree.min
        if tree.max is None:
            loop = self._add(())
            begin = self.place(tree.item, loop)
            self._then[loop] = (begin, then)
            begin, copies = (begin, tree.min - 1) if tree.min else (loop, 0)
        else:
            for _ in range(tree.max - tree.min):
                begin = self._add((self.place(tree.item, begin), then))
        for _ in range(copies):
            begin = self.place(tree.item, begin)
            self._spend(1)
        return begin

    def _add(self, then: int | Sequence[int]) -> int:
        if len(self._then) > _MAX_PROGRAM:
            raise TooLarge
        self._then.append(then)
        return len(self._then) - 1

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_STEPS:
            raise TooLarge

    def closed(self, begin: int) -> int:
        """The places that read next from this one on, and the match; with `found` it is all there is."""
        if begin not in self._closed:
            seen, reached = {begin}, 0
            waiting = [begin]
            while waiting:
                place = waiting.pop()
                then = self._then[place]
                if place == _MATCH or isinstance(then, int):
                    reached |= 1 << place
                else:
                    fresh = [to for to in then if to not in seen]
                    seen.update(fresh)
                    waiting += fresh
            self._spend(len(seen))
            self._closed[begin] = reached
        return self._closed[begin]

    def step(self, state: int) -> Iterable[tuple[int, int]]:
        """The letters that can be read, each with the state after it."""
        if self.found and state & 1:
            return [(letter, 1) for letter in self.alphabet.every]
        self._spend(len(self._readers))
        found: list[tuple[int, int]] = []
        for letter, readers in enumerate(self._readers):
            if reading := state & readers:
                if (after := self._after.get(reading)) is None:
                    after = self._after[reading] = self._reached(reading)
                found.append((letter, after))
        return found

    def _reached(self, reading: int) -> int:
        """The state after these places have read."""
        state = 0
        count = 0
        for place in _bits(reading):
            then = self._then[place]
            state |= self.closed(then) if isinstance(then, int) else 0
            count += 1
        self._spend(count)
        self.parallel = max(self.parallel, count)
        return 1 if self.found and state & 1 else state


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
