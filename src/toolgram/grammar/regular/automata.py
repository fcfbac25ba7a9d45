"""Regular languages as minimal deterministic automata over ranges of code points.

Two automata of the same language are equal: states are minimal, useful and numbered in the order of a breadth-first
walk. All work is bounded, so that no schema can hang its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from typing import TypeVar

from toolgram.caching import weighed
from toolgram.grammar.hashing import HashedOnce, value
from toolgram.grammar.ir import CharSet, Expr, chars
from toolgram.grammar.regular.alphabet import ANY_CHAR, Alphabet, members, size
from toolgram.grammar.regular.minimal import alike, inverted
from toolgram.work import MAX_STEPS, TooLarge, give_way, remembered, spend

__all__ = ["MAX_STEPS", "TooLarge"]  # with what is defined here

MAX_STATES = 5_000
_STATES_A_TURN = 64  # how many are found, before others may have a turn
_BYTES_OF_A_STATE = 512
_FOR_A_STATE = 8  # steps, besides those that lead from it
_LEGIBLE = "aA0 -_.:/@"
_Key = TypeVar("_Key", bound=Hashable)


@value
class State:
    """Whether a text may end here, and the disjoint steps as (characters, number of the next state)."""

    accepts: bool
    edges: tuple[tuple[CharSet, int], ...]


@value
class Automaton(HashedOnce):
    """A regular language; the first state is the start, and from every other one a text can end.

    `plain` is an expression of the same language in plain characters, where one is known; with `is_plain` it is better
    to read and to match than the states are.
    """

    states: tuple[State, ...]
    plain: Expr | None = field(default=None, compare=False, repr=False)
    is_plain: bool = field(default=False, compare=False, repr=False)

    def __hash__(self) -> int:  # of thousands of states, some are enough
        return hash((len(self.states), self.states[:8], self.states[-1]))

    @property
    def is_empty(self) -> bool:
        """Whether it has no text at all."""
        return not self.states[0].accepts and not self.states[0].edges

    def accepts(self, text: str) -> bool:
        """Whether the text belongs to the language."""
        state = self.states[0]
        for char in text:
            target = next((target for charset, target in state.edges if char in charset), None)
            if target is None:
                return False
            state = self.states[target]
        return state.accepts

    def lengths(self) -> tuple[int, int | None]:
        """The length of the shortest and of the longest text (None: there is no longest); (0, -1) of no text."""
        return _lengths(self)

    def has_lengths_within(self, low: int, high: int | None) -> bool:
        """Whether no text has fewer than `low` characters, or more than `high`."""
        shortest, longest = self.lengths()
        return low <= shortest and (high is None or (longest is not None and longest <= high))

    def shortest(self) -> str | None:
        """One of the shortest texts, legible where it can be; None if there is none."""
        texts = {0: ""}
        for number, state in enumerate(self.states):  # breadth first: they are numbered so
            if state.accepts:
                return texts[number]
            for charset, target in state.edges:
                texts.setdefault(target, texts[number] + _one_of(charset))
        return None

    def finite_texts(self, limit: int) -> tuple[str, ...] | None:
        """All texts in order, or None if there are more than `limit`."""
        order = self.acyclic_order()
        if order is None:
            return None
        count = [0] * len(self.states)
        for number in reversed(order):
            state = self.states[number]
            count[number] = state.accepts + sum(size(charset) * count[target] for charset, target in state.edges)
        if count[0] > limit:
            return None
        texts: list[str] = []
        waiting = [(0, "")]
        while waiting:
            number, text = waiting.pop()
            if self.states[number].accepts:
                texts.append(text)
            for charset, target in self.states[number].edges:
                waiting.extend((target, text + char) for char in members(charset))
        return tuple(sorted(texts))

    def acyclic_order(self) -> list[int] | None:
        """The states so that all steps lead forward; None if there is a loop, which makes the language infinite."""
        missing = [0] * len(self.states)
        for state in self.states:
            for _, target in state.edges:
                missing[target] += 1
        order = [0] if not missing[0] else []
        for number in order:
            for _, target in self.states[number].edges:
                missing[target] -= 1
                if not missing[target]:
                    order.append(target)
        return order if len(order) == len(self.states) else None

    def has_length(self, low: int, high: int | None) -> bool:
        """Whether a text has `low` to `high` characters. Raises TooLarge."""
        if self.is_empty or (high is not None and high < low):
            return False
        here, seen = frozenset((0,)), dict[frozenset[int], int]()
        length = work = 0
        while length < low and here:
            work += len(here)
            if work > MAX_STEPS:
                raise TooLarge
            if here in seen:  # what comes now repeats itself
                period = length - seen[here]
                length += (low - length) // period * period
                seen.clear()
                if length == low:
                    break
            seen[here] = length
            here, length = self._after(here), length + 1
        reached = set(here)
        while here and (high is None or length <= high):
            if any(self.states[number].accepts for number in here):
                return True
            here, length = self._after(here) - reached, length + 1
            reached |= here
        return False

    def _after(self, numbers: frozenset[int]) -> frozenset[int]:
        return frozenset(target for number in numbers for _, target in self.states[number].edges)


def weight(automaton: Automaton) -> int:
    """How many bytes it takes, roughly, with what is said of it."""
    return _BYTES_OF_A_STATE * len(automaton.states)


@weighed(weight)  # asked for several times in each document with the same pattern or format
def _lengths(automaton: Automaton) -> tuple[int, int | None]:
    if automaton.is_empty:
        return 0, -1
    number, shortest = 0, {0: 0}
    for number, state in enumerate(automaton.states):  # breadth first: they are numbered so
        if state.accepts:
            break
        for _, target in state.edges:
            shortest.setdefault(target, shortest[number] + 1)
    order = automaton.acyclic_order()
    if order is None:
        return shortest[number], None
    longest = [0] * len(automaton.states)
    for at in reversed(order):
        longest[at] = max((longest[target] + 1 for _, target in automaton.states[at].edges), default=0)
    return shortest[number], longest[0]


def _weight_of_length(low: int, high: int | None) -> int:
    return _BYTES_OF_A_STATE * (low if high is None else high)


EMPTY_STATE = State(accepts=False, edges=())
NO_TEXT = Automaton((EMPTY_STATE,))


def universal() -> Automaton:
    """Every text."""
    return of_length(0, None)


@weighed(_weight_of_length)
def of_length(low: int, high: int | None) -> Automaton:
    """The texts of `low` to `high` code points (None: no bound). Raises TooLarge for lengths of thousands."""
    last = low if high is None else high
    if high is not None and high < low:
        return NO_TEXT
    if last >= MAX_STATES:
        raise TooLarge
    states = [State(accepts=at >= low, edges=((ANY_CHAR, at + 1),)) for at in range(last)]
    states.append(State(accepts=True, edges=((ANY_CHAR, last),) if high is None else ()))
    return Automaton(tuple(states))


def of_text(text: str) -> Automaton:
    """Exactly this text; one with lone surrogates is none."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        return NO_TEXT
    if len(text) >= MAX_STATES:
        raise TooLarge
    states = [State(accepts=False, edges=((chars(char), at + 1),)) for at, char in enumerate(text)]
    return Automaton((*states, State(accepts=True, edges=())))


def of_texts(texts: Iterable[str]) -> Automaton:
    """Just these texts, without those with lone surrogates. Raises TooLarge."""
    trie: list[dict[str, int]] = [{}]
    ends: set[int] = set()
    for text in texts:
        if any("\ud800" <= char <= "\udfff" for char in text):
            continue
        node = 0
        for char in text:
            if char not in trie[node]:
                trie[node][char] = len(trie)
                trie.append({})
                if len(trie) > MAX_STEPS:
                    raise TooLarge
            node = trie[node][char]
        ends.add(node)
    alphabet = Alphabet(chars(char) for char in {char for node in trie for char in node})

    def step(node: int) -> Iterable[tuple[int, int]]:
        return ((alphabet.letters(chars(char))[0], target) for char, target in trie[node].items())

    return explore(0, step, ends.__contains__, alphabet)


def intersection(left: Automaton, right: Automaton) -> Automaton:
    """The texts of both. Raises TooLarge."""
    if right == universal() or left == right:
        return left
    if left == universal():
        return right
    both = _product(left, right, _both)
    return next((known for known in (left, right) if known == both), both)  # with the expression that is known of it


def of_lengths(automaton: Automaton, low: int, high: int | None) -> Automaton:
    """Its texts of `low` to `high` code points (None: no bound). Raises TooLarge, and that before any work."""
    lengths = of_length(low, high)
    _check_lengths(automaton, low, high)
    return intersection(automaton, lengths)


def _check_lengths(automaton: Automaton, low: int, high: int | None) -> None:
    """Raises TooLarge where `explore` would, asked for the texts of these lengths: it goes through all pairs of a state
    and a length at which a text may be there."""
    alphabet = Alphabet(charset for state in automaton.states for charset, _ in state.edges)
    widths = [sum(len(alphabet.letters(charset)) for charset, _ in state.edges) for state in automaton.states]
    targets = [{target for _, target in state.edges} for state in automaton.states]
    known: dict[frozenset[int], tuple[int, frozenset[int]]] = {}
    here, steps = frozenset((0,)), 0
    for _ in range(low if high is None else high):
        if here not in known:
            after = frozenset[int]().union(*(targets[number] for number in here))
            known[here] = sum(widths[number] for number in here) + _FOR_A_STATE * len(here), after
        more, here = known[here]
        steps += more
        if steps > MAX_STEPS:
            raise TooLarge


def union(left: Automaton, right: Automaton) -> Automaton:
    """The texts of either. Raises TooLarge."""
    if right.is_empty or left == right:
        return left
    return right if left.is_empty else _product(left, right, _either)


def difference(left: Automaton, right: Automaton) -> Automaton:
    """The texts of the first that are not of the second. Raises TooLarge."""
    return left if right.is_empty else _product(left, right, _but)


def complement(automaton: Automaton) -> Automaton:
    """All other texts. Raises TooLarge."""
    return difference(universal(), automaton)


_DEAD = -1


def _both(left: bool, right: bool) -> bool:
    return left and right


def _either(left: bool, right: bool) -> bool:
    return left or right


def _but(left: bool, right: bool) -> bool:
    return left and not right


@remembered(maxsize=32)  # the same patterns meet in all branches of a schema
def _product(left: Automaton, right: Automaton, both: Callable[[bool, bool], bool]) -> Automaton:
    alphabet = Alphabet(charset for one in (left, right) for state in one.states for charset, _ in state.edges)
    tables = [table_of(left, alphabet), table_of(right, alphabet)]
    narrow = not both(True, False), not both(False, True)  # noqa: FBT003 - truth tables

    def step(pair: tuple[int, int]) -> Iterable[tuple[int, tuple[int, int]]]:
        rows = [table[number] for table, number in zip(tables, pair, strict=True)]
        for letter in rows[0].keys() | rows[1].keys():
            after = rows[0].get(letter, _DEAD), rows[1].get(letter, _DEAD)
            if not (narrow[0] and after[1] == _DEAD) and not (narrow[1] and after[0] == _DEAD):
                yield letter, after

    def accepts(pair: tuple[int, int]) -> bool:
        ends = [number != _DEAD and one.states[number].accepts for one, number in zip((left, right), pair, strict=True)]
        return both(ends[0], ends[1])

    return explore((0, 0), step, accepts, alphabet)


def table_of(automaton: Automaton, alphabet: Alphabet) -> dict[int, dict[int, int]]:
    """The steps of each state by class; the number of no state has none."""
    rows = {
        number: {letter: target for charset, target in state.edges for letter in alphabet.letters(charset)}
        for number, state in enumerate(automaton.states)
    }
    return {_DEAD: {}, **rows}


def explore(
    start: _Key,
    step: Callable[[_Key], Iterable[tuple[int, _Key]]],
    accepts: Callable[[_Key], bool],
    alphabet: Alphabet,
) -> Automaton:
    """The minimal automaton of the states that `step`, which gives (letter, next state), finds from `start`.

    Raises TooLarge.
    """
    numbers: dict[_Key, int] = {start: 0}
    found = [start]
    rows: list[dict[int, int]] = []
    steps = 0
    for state in found:
        if len(rows) % _STATES_A_TURN == 0:
            give_way()
        row: dict[int, int] = {}
        for letter, target in step(state):
            if (number := numbers.get(target)) is None:
                number = numbers[target] = len(found)
                found.append(target)
            row[letter] = number
        rows.append(row)
        steps += len(row) + _FOR_A_STATE
        if steps > MAX_STEPS:
            raise TooLarge
    spend(steps)
    return _minimal(rows, [accepts(state) for state in found], alphabet)


def _minimal(rows: Sequence[dict[int, int]], ends: Sequence[bool], alphabet: Alphabet) -> Automaton:
    """The canonical automaton of a table of steps."""
    inverse = inverted(rows)
    useful = {number for number, end in enumerate(ends) if end}
    waiting = list(useful)
    while waiting:
        for _, number in inverse[waiting.pop()]:
            if number not in useful:
                useful.add(number)
                waiting.append(number)
    if 0 not in useful:
        return NO_TEXT
    block_of = alike(useful, ends, inverse)
    numbers = {block_of[0]: 0}
    states: list[State] = []
    order = [0]
    for number in order:
        by_target: dict[int, list[int]] = {}
        for letter, target in sorted(rows[number].items()):
            if target in useful:
                by_target.setdefault(block_of[target], []).append(letter)
        edges = [(alphabet.charset(tuple(letters)), block, letters[0]) for block, letters in by_target.items()]
        edges.sort(key=lambda edge: edge[0].ranges)
        for _, block, letter in edges:
            if block not in numbers:
                numbers[block] = len(order)
                order.append(rows[number][letter])
        states.append(State(ends[number], tuple((charset, numbers[block]) for charset, block, _ in edges)))
        if len(states) > MAX_STATES:
            raise TooLarge
    return Automaton(tuple(states))


def _one_of(charset: CharSet) -> str:
    return next((char for char in _LEGIBLE if char in charset), chr(charset.ranges[0][0]))
