"""Lexemes as automata, which are run beside one another to see what one does to another."""

from __future__ import annotations

from collections.abc import Iterable

from toolgram.grammar.dialects.lark.lexing.alphabet import Alphabet
from toolgram.grammar.ir import CharSet, Choice, Expr, Literal, Ref, Repeat, Rules, Sequence, Text, children
from toolgram.grammar.until import automaton

_MOST_COPIES = 64  # of a counted item; beyond, the count is forgotten, which can only report too many conflicts
_MOST_STATES = 4_000
_DEEPEST = 20  # of words in one another

_States = frozenset[int]


class TooManyStates(Exception):
    """A lexeme that is too large to be run."""


class Automaton:
    """A lexeme's automaton, made deterministic as far as it is asked for; counts above a bound are forgotten.

    Raises TooManyStates for one of more than some thousand.
    """

    def __init__(self, expr: Expr, alphabet: Alphabet, words: Rules) -> None:
        self._alphabet = alphabet
        self._words = words
        self._depth = 0
        self._followers = 0  # what follows a part is told from what follows another by a number
        self._known: dict[tuple[str, int], tuple[int, int]] = {}
        self._empty: list[list[int]] = []
        self._steps: list[list[tuple[int, int]]] = []
        begin = self._state()
        self._end = self._build(expr, begin, self._follower())
        self._moves: dict[_States, tuple[tuple[int, _States], ...]] = {}
        self.start = self._closed((begin,))

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

    def step(self, states: _States, mask: int) -> _States | None:
        """The states after a character of one class; None where no word goes on with it."""
        for step, to in self.moves(states):
            if step & mask:
                return to
        return None

    def _state(self) -> int:
        if len(self._empty) == _MOST_STATES:
            raise TooManyStates
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

    def _follower(self) -> int:
        self._followers += 1
        return self._followers

    def _build(self, expr: Expr, begin: int, then: int) -> int:
        """Add the states of an expression from `begin` on, which `then` follows; gives the state where it ends."""
        match expr:
            case Literal(text):
                for char in text:
                    begin = self._step(begin, self._alphabet.of_char(char))
                return begin
            case CharSet():
                return self._step(begin, self._alphabet.of_set(expr))
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
