"""Lexemes as automata, which are run beside one another to see what one does to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolgram.grammar.dialects.lark.lexing.alphabet import Alphabet
from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Ref, Repeat, Rules, Sequence, Text, children
from toolgram.grammar.until import automaton

_MOST_COPIES = 64  # of a counted item; beyond, the count is forgotten, which can only report too many conflicts
_MOST_STATES = 4_000
_DEEPEST = 20  # of words in one another

States = int
"""A set of states, a bit each: those that read something, and the one where a word may end."""


class TooManyStates(Exception):
    """A lexeme that is too large to be run."""


class Automaton:
    """A lexeme's automaton, made deterministic as far as it is asked for; counts above a bound are forgotten.

    Raises TooManyStates for one of more than some thousand.
    """

    def __init__(self, expr: Expr, alphabet: Alphabet, words: Rules) -> None:
        self.alphabet = alphabet
        self._words = words
        self._depth = 0
        self._followers = 0  # what follows a part is told from what follows another by a number
        self._known: dict[tuple[str, int], tuple[int, int]] = {}
        self._empty: list[list[int]] = []
        self._steps: list[list[tuple[int, int]]] = []
        begin = self._state()
        self._end = self._build(expr, begin, self._follower())
        self._closed: dict[int, States] = {}
        self._moves: dict[States, tuple[tuple[int, States], ...]] = {}
        self.start = self._after_nothing(begin)

    def accepts(self, place: States) -> bool:
        """Whether a word may end here."""
        return bool(place >> self._end & 1)

    def next(self, place: States) -> int:
        """The characters that a word can go on with."""
        mask = 0
        for step, _ in self.moves(place):
            mask |= step
        return mask

    def moves(self, states: States) -> tuple[tuple[int, States], ...]:
        """Disjoint sets of characters, each with the states that they lead to."""
        if states not in self._moves:
            steps: dict[int, States] = {}
            for state in _bits(states):
                for mask, target in self._steps[state]:
                    steps[mask] = steps.get(mask, 0) | self._after_nothing(target)
            blocks: dict[States, int] = {}
            for mask, targets in _disjoint(steps.items()):
                blocks[targets] = blocks.get(targets, 0) | mask
            self._moves[states] = tuple((mask, targets) for targets, mask in blocks.items())
        return self._moves[states]

    def after(self, place: States, char: str) -> States | None:
        """The states after a character; None where no word goes on with it."""
        mask = self.alphabet.of_char(char)
        for step, to in self.moves(place):
            if step & mask:
                return to
        return None

    def _state(self) -> int:
        if len(self._empty) == _MOST_STATES:
            raise TooManyStates
        self._empty.append([])
        self._steps.append([])
        return len(self._steps) - 1

    def _after_nothing(self, begin: int) -> States:
        """The state, and all that it leads to for nothing."""
        if begin not in self._closed:
            seen, reached = {begin}, 0
            waiting = [begin]
            while waiting:
                state = waiting.pop()
                if state in self._closed:
                    reached |= self._closed[state]
                    continue
                if self._steps[state] or state == self._end:
                    reached |= 1 << state
                fresh = [to for to in self._empty[state] if to not in seen]
                seen.update(fresh)
                waiting += fresh
            self._closed[begin] = reached
        return self._closed[begin]

    def _follower(self) -> int:
        self._followers += 1
        return self._followers

    def _build(self, expr: Expr, begin: int, then: int) -> int:
        """Add the states of an expression from `begin` on, which `then` follows; gives the state where it ends."""
        match expr:
            case Literal(text):
                for char in text:
                    begin = self._step(begin, self.alphabet.of_char(char))
                return begin
            case CharSet():
                return self._step(begin, self.alphabet.of_set(expr))
            case Sequence((*items, last)):
                for item in items:
                    begin = self._build(item, begin, self._follower())
                return self._build(last, begin, then)
            case Choice(options):
                end = self._state()
                for option in options:
                    self._empty[self._build(option, self._after(begin), then)].append(end)
                return end
            case Repeat(item, least, most):
                return self._build_repeat(item, least, most, begin)
            case Text():
                return self._build_text(expr, begin)
            case Ref(name):
                return self._build_word(name, begin, then)
            case _:
                raise TypeError(f"not a regular expression: {expr!r}")

    def _build_word(self, name: str, begin: int, then: int) -> int:
        """The states of a word, which are there once where the same follows it."""
        if (name, then) not in self._known:
            if self._depth == _DEEPEST:
                raise TooManyStates
            self._depth += 1
            entry = self._state()
            self._known[name, then] = entry, self._build(self._words[name], entry, then)
            self._depth -= 1
        entry, end = self._known[name, then]
        self._empty[begin].append(entry)
        return end

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
            begin = self._build(item, begin, self._follower())
        if most is None:
            loop = self._after(begin)
            self._empty[self._build(item, loop, self._follower())].append(loop)
            return self._after(loop)
        end = self._state()
        for _ in range(most - least):
            self._empty[begin].append(end)
            begin = self._build(item, self._after(begin), self._follower())
        self._empty[begin].append(end)
        return end

    def _build_text(self, text: Text, begin: int) -> int:
        states = automaton(text.without, text.seen)
        numbers = [self._after(begin), *(self._state() for _ in states[1:])]
        end = self._state()
        for number, state in zip(numbers, states, strict=True):
            if state.ends:
                self._empty[number].append(end)
            self._steps[number].extend(
                (self.alphabet.of_set(charset), numbers[target]) for charset, target in state.edges
            )
        return end


def _weight(expr: Expr) -> int:
    return len(expr.text) if isinstance(expr, Literal) else 1 + sum(map(_weight, children(expr)))


def _bits(states: States) -> Iterator[int]:
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest


def _disjoint(steps: Iterable[tuple[int, States]]) -> list[tuple[int, States]]:
    """Steps on overlapping sets of characters as steps of disjoint sets."""
    blocks: list[tuple[int, States]] = []
    for mask, targets in steps:
        cut: list[tuple[int, States]] = []
        for block, others in blocks:
            if common := block & mask:
                cut.append((common, others | targets))
                if block != common:
                    cut.append((block & ~common, others))
                mask &= ~common
            else:
                cut.append((block, others))
        if mask:
            cut.append((mask, targets))
        blocks = cut
    return blocks
