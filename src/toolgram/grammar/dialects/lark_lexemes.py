"""What two lexemes may do to one another when llguidance's lexer has both before it.

The lexer runs all lexemes that may come next at once, and goes on as long as one of them can: it never comes back to
one that ended earlier. So a lexeme A is only found where it ends if no other, B, can run on over the character that
follows A. The lexer reads bytes: B is already gone too far with the first byte of that character, even where it cannot
take the others. Sets of characters are bit masks over the classes of an `Alphabet`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from toolgram.grammar.ir import MAX_CODE_POINT, CharSet, Choice, Expr, Literal, Repeat, Sequence, Text, children
from toolgram.grammar.until import automaton

_MOST_COPIES = 64  # of a counted item; beyond, the count is forgotten, which can only report too many conflicts

_States = frozenset[int]


_LEADS = (
    *range(0x80, 0x800, 0x40),
    *(0x800, *range(0x1000, 0x10000, 0x1000)),
    *(0x10000, *range(0x40000, 0x110000, 0x40000)),
    MAX_CODE_POINT + 1,
)
"""The first code point that UTF-8 begins with each byte from C2 to F4 (of two, three and four bytes), and the end;
before them every character is a byte of its own."""


class Alphabet:
    """The code points in classes that no expression of a grammar tells apart and that begin with the same byte."""

    def __init__(self, exprs: Iterable[Expr]) -> None:
        cuts: set[int] = set()
        for expr in exprs:
            _collect_cuts(expr, cuts)
        inside = {bisect_right(_LEADS, cut) for cut in cuts if _LEADS[0] < cut < _LEADS[-1] and cut not in _LEADS}
        blocks = [(_LEADS[number - 1], _LEADS[number]) for number in sorted(inside)]
        self._cuts = sorted(cuts.union(*blocks))
        self._blocks = [(2 << self._class(end - 1)) - (1 << self._class(begin)) for begin, end in blocks]

    def alike(self, mask: int) -> int:
        """The classes of all characters that begin with the same byte as one of these."""
        for block in self._blocks:
            if mask & block:
                mask |= block
        return mask

    def of_set(self, charset: CharSet) -> int:
        """The classes of a character set."""
        mask = 0
        for low, high in charset.ranges:
            mask |= (2 << self._class(high)) - (1 << self._class(low))
        return mask

    def of_char(self, char: str) -> int:
        """The class of a character."""
        return 1 << self._class(ord(char))

    def _class(self, code: int) -> int:
        """Its class; class 0 is left free for what is no character."""
        return 1 + bisect_right(self._cuts, code)


def _collect_cuts(expr: Expr, cuts: set[int]) -> None:
    match expr:
        case Literal(text):
            for code in map(ord, set(text)):
                cuts.update((code, code + 1))
        case CharSet(ranges):
            for low, high in ranges:
                cuts.update((low, high + 1))
        case Text(without):
            for code in map(ord, set("".join(without))):
                cuts.update((code, code + 1))
        case _:
            for child in children(expr):
                _collect_cuts(child, cuts)


class Automaton:
    """A lexeme's automaton, made deterministic as far as it is asked for; counts above a bound are forgotten."""

    def __init__(self, expr: Expr, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._empty: list[list[int]] = []
        self._steps: list[list[tuple[int, int]]] = []
        begin = self._state()
        self._end = self._build(expr, begin)
        self._moves: dict[_States, tuple[tuple[int, _States], ...]] = {}
        self.start = self._closed((begin,))

    @cached_property
    def nullable(self) -> bool:
        """Whether the empty string is a word."""
        return self.accepts(self.start)

    @cached_property
    def first(self) -> int:
        """The characters that a word can begin with."""
        return self.next(self.start)

    def accepts(self, states: _States) -> bool:
        """Whether a word may end here."""
        return self._end in states

    def next(self, states: _States) -> int:
        """The characters that a word can go on with."""
        mask = 0
        for step, _ in self.moves(states):
            mask |= step
        return mask

    def moves(self, states: _States) -> tuple[tuple[int, _States], ...]:
        """Disjoint sets of characters, each with the states that they lead to."""
        if states not in self._moves:
            blocks: dict[_States, int] = {}
            for mask, targets in _disjoint(step for state in states for step in self._steps[state]):
                closed = self._closed(targets)
                blocks[closed] = blocks.get(closed, 0) | mask
            self._moves[states] = tuple((mask, targets) for targets, mask in blocks.items())
        return self._moves[states]

    def _state(self) -> int:
        self._empty.append([])
        self._steps.append([])
        return len(self._steps) - 1

    def _closed(self, states: Iterable[int]) -> _States:
        seen: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state not in seen:
                seen.add(state)
                waiting.extend(self._empty[state])
        return frozenset(seen)

    def _build(self, expr: Expr, begin: int) -> int:
        """Add the states of an expression from `begin` on; gives the state where it ends."""
        match expr:
            case Literal(text):
                for char in text:
                    begin = self._step(begin, self._alphabet.of_char(char))
                return begin
            case CharSet():
                return self._step(begin, self._alphabet.of_set(expr))
            case Sequence(items):
                for item in items:
                    begin = self._build(item, begin)
                return begin
            case Choice(options):
                end = self._state()
                for option in options:
                    self._empty[self._build(option, self._after(begin))].append(end)
                return end
            case Repeat(item, least, most):
                return self._build_repeat(item, least, most, begin)
            case Text():
                return self._build_text(expr, begin)
            case _:
                raise TypeError(f"not a regular expression: {expr!r}")

    def _step(self, begin: int, mask: int) -> int:
        end = self._state()
        self._steps[begin].append((mask, end))
        return end

    def _after(self, begin: int) -> int:
        """A fresh state that `begin` leads to for nothing."""
        end = self._state()
        self._empty[begin].append(end)
        return end

    def _build_repeat(self, item: Expr, least: int, most: int | None, begin: int) -> int:
        if max(least, most or 0) * _weight(item) > _MOST_COPIES:
            least, most = min(least, 1), None
        for _ in range(least):
            begin = self._build(item, begin)
        if most is None:
            loop = self._after(begin)
            self._empty[self._build(item, loop)].append(loop)
            return self._after(loop)
        end = self._state()
        for _ in range(most - least):
            self._empty[begin].append(end)
            begin = self._build(item, self._after(begin))
        self._empty[begin].append(end)
        return end

    def _build_text(self, text: Text, begin: int) -> int:
        states = automaton(text.without, text.seen)
        numbers = [self._after(begin), *(self._state() for _ in states[1:])]
        end = self._state()
        for number, state in zip(numbers, states, strict=True):
            self._empty[number].append(end)
            self._steps[number].extend(
                (self._alphabet.of_set(charset), numbers[target]) for charset, target in state.edges
            )
        return end


def _weight(expr: Expr) -> int:
    return len(expr.text) if isinstance(expr, Literal) else 1 + sum(map(_weight, children(expr)))


def _disjoint(steps: Iterable[tuple[int, int]]) -> list[tuple[int, set[int]]]:
    """Steps on overlapping sets of characters as steps of disjoint sets to sets of states."""
    blocks: list[tuple[int, set[int]]] = []
    for mask, target in steps:
        cut: list[tuple[int, set[int]]] = []
        for block, targets in blocks:
            if common := block & mask:
                cut.append((common, targets | {target}))
                if block != common:
                    cut.append((block & ~common, targets))
                mask &= ~common
            else:
                cut.append((block, targets))
        if mask:
            cut.append((mask, {target}))
        blocks = cut
    return blocks


class Lexicon:
    """The lexemes of one grammar by number, and what each pair of them may do; everything is worked out once."""

    def __init__(self, exprs: Iterable[Expr]) -> None:
        self._exprs = tuple(dict.fromkeys(exprs))
        self._alphabet = Alphabet(self._exprs)
        self._automata: dict[Expr, Automaton] = {}
        self._meetings: dict[tuple[int, int], tuple[int, int, bool]] = {}
        self._rivals: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, int], ...]] = {}
        self.numbers = {expr: number for number, expr in enumerate(self._exprs)}
        self.first = [self._first(expr) for expr in self._exprs]
        self.nullable = [self._nullable(expr) for expr in self._exprs]

    def _automaton(self, expr: Expr) -> Automaton:
        if expr not in self._automata:
            self._automata[expr] = Automaton(expr, self._alphabet)
        return self._automata[expr]

    def _first(self, expr: Expr) -> int:
        literal = expr.text if isinstance(expr, Literal) else ""
        return self._alphabet.of_char(literal[0]) if literal else self._automaton(expr).first

    def _nullable(self, expr: Expr) -> bool:
        if isinstance(expr, Literal):
            return not expr.text
        return not isinstance(expr, CharSet) and self._automaton(expr).nullable

    def rivals(self, ones: tuple[int, ...], others: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The places in both rows of lexemes where the one does anything to the other, or both end together.

        Negative numbers stand for special tokens, which only meet themselves.
        """
        key = (ones, others)
        if key not in self._rivals:
            self._rivals[key] = tuple(
                [
                    (place, rival)
                    for place, one in enumerate(ones)
                    for rival, other in enumerate(others)
                    if self._interact(one, other)
                ]
            )
        return self._rivals[key]

    def _interact(self, one: int, other: int) -> bool:
        if one < 0 or other < 0:
            return one == other
        if not self.first[one] & self.first[other]:
            return False
        left, right = self._exprs[one], self._exprs[other]
        if isinstance(left, Literal) and isinstance(right, Literal):
            return left.text.startswith(right.text) or right.text.startswith(left.text)
        return any(self.meet(one, other))

    def meet(self, one: int, other: int) -> tuple[int, int, bool]:
        """Two lexemes at the same place: where `one` has matched something, the characters over whose first byte
        `other` can run on; the same the other way around; and whether both can end together."""
        key = (one, other)
        if key not in self._meetings:
            over, together = self._pair(self._exprs[one], self._exprs[other])
            back = over if one == other else self._pair(self._exprs[other], self._exprs[one])[0]
            self._meetings[key] = self._alphabet.alike(over), self._alphabet.alike(back), together
        return self._meetings[key]

    def _pair(self, ended: Expr, running: Expr) -> tuple[int, bool]:
        if isinstance(ended, Literal) and isinstance(running, Literal):
            return self._literals(ended.text, running.text)
        return self._product(ended, running)

    def _literals(self, ended: str, running: str) -> tuple[int, bool]:
        if not running.startswith(ended):
            return 0, False
        longer = len(running) > len(ended)
        return (self._alphabet.of_char(running[len(ended)]) if longer else 0), not longer

    def _product(self, ended: Expr, running: Expr) -> tuple[int, bool]:
        one, other = self._automaton(ended), self._automaton(running)
        over, together = 0, False
        seen = {(one.start, other.start)}
        waiting = list(seen)
        while waiting:
            here, there = waiting.pop()
            for mask, to in one.moves(here):
                for step, away in other.moves(there):
                    if not mask & step:
                        continue
                    if one.accepts(to):
                        over |= other.next(away)
                        together = together or other.accepts(away)
                    if (to, away) not in seen:
                        seen.add((to, away))
                        waiting.append((to, away))
        return over, together

    def boundaries(self, text: str, ended: Expr, follow: int) -> list[int]:
        """The places inside a literal where `ended` may end although the literal's next character begins like one in
        `follow`."""
        automaton, follow = self._automaton(ended), self._alphabet.alike(follow)
        states, places = automaton.start, list[int]()
        for place, char in enumerate(text):
            mask = self._alphabet.of_char(char)
            if place and mask & follow and automaton.accepts(states):
                places.append(place)
            states = next((to for step, to in automaton.moves(states) if step & mask), None)
            if states is None:
                break
        return places
