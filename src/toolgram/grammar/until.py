"""Text that contains none of some markers, as a deterministic automaton.

It is the complement of Aho and Corasick's automaton ("Efficient string matching", 1975): a state is the longest end of
the text so far that begins a marker, and the steps that would complete a marker are left out. Every state accepts, but
those in which END would complete one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from toolgram.caching import counted
from toolgram.errors import GrammarError
from toolgram.grammar.ir import EMPTY, END, START, CharSet, Expr, Literal, Ref, Text, chars, choice, not_chars, seq
from toolgram.grammar.regular.minimal import alike_but_for

_LAST_SURROGATE = "\udfff"
_chars, _not_chars = counted(1024)(chars), counted(1024)(not_chars)  # most states have and lack the same few


Steps = Mapping[str, Mapping[str, str | None]]
"""Of each state, by a text that leads to it, the next ones by the character: None completes a marker, and any other
character, which is not there, leads to the state ""."""


@dataclass(frozen=True, slots=True)
class State:
    """A state: `seen` is a text that leads to it, `edges` its disjoint steps as (characters, next state), "everything
    else" first, and `by_char` the others one by one; whether the text may end here."""

    seen: str
    edges: tuple[tuple[CharSet, int], ...]
    by_char: Mapping[str, int | None]
    ends: bool

    def step(self, char: str) -> int | None:
        """The state after this character, or None if it would complete a marker."""
        return None if is_no_character(char) else self.by_char.get(char, self.edges[0][1])


@counted(1024)
def automaton(without: tuple[str, ...], seen: str = "") -> tuple[State, ...]:
    """The smallest automaton of `Text(without, seen)`; the first state is the start.

    Raises GrammarError for an empty marker, and where `seen` already contains a marker.
    """
    return _merged(steps_of(without, seen))


@counted(16)  # they are wanted again while a grammar is written
def steps_of(without: tuple[str, ...], seen: str = "") -> Steps:
    """The steps of each state, the start first, before those with the same future are merged: that takes half the time.

    Raises as `automaton` does.
    """
    _check(without, seen)
    prefixes = {marker[:end] for marker in without for end in range(len(marker))}
    return _reachable(_longest_end(seen, prefixes), without)


def is_no_character(char: str) -> bool:
    """Whether it is a surrogate, which stands in no text."""
    return START <= char <= _LAST_SURROGATE


def first_of(text: Text) -> CharSet:
    """The characters that the text may begin with: those of the first steps of its automaton, which takes long to make.

    Raises as `automaton` does.
    """
    _check(text.without, text.seen)
    return not_chars(*{marker[-1] for marker in text.without if (text.seen + marker[-1]).endswith(marker)})


def _check(without: tuple[str, ...], seen: str) -> None:
    if "" in without:
        raise GrammarError("no text is without the empty marker")
    if any(marker in seen for marker in without):
        raise GrammarError(f"{seen!r} already contains one of {without!r}")


def text_after(text: Text, number: int) -> Text:
    """What may follow in a state of the text's automaton."""
    seen = automaton(text.without, text.seen)[number].seen
    if seen.startswith(START):
        return Text(text.without, seen)
    return Text(tuple(marker for marker in text.without if not marker.startswith(START)), seen)


def text_rules(text: Text, name: str) -> dict[str, Expr]:
    """The text as right-recursive rules `name-0` (the start), `name-1`, …; the empty alternative comes last."""
    states = automaton(text.without, text.seen)
    return {
        f"{name}-{number}": choice(
            *(seq(_plain(charset), Ref(f"{name}-{target}")) for charset, target in state.edges if charset.ranges), EMPTY
        )
        for number, state in enumerate(states)
    }


def _plain(charset: CharSet) -> Expr:
    """A set of one character as a literal, which reads better."""
    low, high = charset.ranges[0]
    return Literal(chr(low)) if len(charset.ranges) == 1 and low == high else charset


def _longest_end(text: str, prefixes: Container[str]) -> str:
    return next((text[begin:] for begin in range(len(text)) if text[begin:] in prefixes), "")


def _reachable(start: str, without: Sequence[str]) -> Steps:
    """The steps of each state that is reachable from `start`."""
    markers = frozenset(without)
    onward: dict[str, set[str]] = {}
    for marker in without:
        for end, char in enumerate(marker):
            onward.setdefault(marker[:end], set()).add(char)

    @cache
    def shorter(state: str) -> str:
        """The longest of its ends, without its first character, that begins a marker."""
        return steps(shorter(state[:-1])).get(state[-1]) or "" if len(state) > 1 else ""

    @cache
    def steps(state: str) -> dict[str, str | None]:
        """Its steps, from those of such an end."""
        found: dict[str, str | None] = dict(steps(shorter(state))) if state else {}
        for char in onward.get(state, ()):
            longer = state + char
            if longer in markers:
                found[char] = None
            elif found.get(char, "") is not None:
                found[char] = longer
        return found

    for length in range(1, len(start)):
        shorter(start[:length])  # one after the other, not one within the other
    table: dict[str, dict[str, str | None]] = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state not in table:
            table[state] = {char: to for char, to in sorted(steps(state).items()) if char != START}
            waiting.extend(target for target in table[state].values() if target is not None)
            waiting.append("")
    return table


def _merged(table: Steps) -> tuple[State, ...]:
    """The states as a tuple in order of discovery, those with the same future merged."""
    block_of = _blocks(table)
    groups: dict[int, int] = {}
    group = {state: groups.setdefault(block_of[state], len(groups)) for state in table}
    first: dict[int, str] = {}
    for state in table:
        first.setdefault(group[state], state)
    states = ((first[number], table[first[number]]) for number in range(len(groups)))
    return tuple(_state(seen, steps, group) for seen, steps in states)


def _blocks(table: Steps) -> dict[str, int]:
    """Which states have the same future, by the number of their block.

    Those in which a text has begun that must not come first lead to longer ones of them, or to others. So from the
    longest on, those with the same steps are alike.
    """
    block_of = _blocks_of({state: steps for state, steps in table.items() if not state.startswith(START)})
    usual = block_of[""]

    def unusual(state: str) -> frozenset[tuple[str, int | None]]:
        """Its steps by the blocks to which they lead, but those to the usual one."""
        steps = ((char, None if to is None else block_of[to]) for char, to in table[state].items())
        return frozenset(step for step in steps if step[1] != usual)

    known = {unusual(state): block for state, block in block_of.items()}
    for state in sorted(table.keys() - block_of.keys(), key=len, reverse=True):
        block_of[state] = known.setdefault(unusual(state), len(table) + len(known))
    return block_of


def _blocks_of(table: Steps) -> dict[str, int]:
    """The same of states that may lead to any of each other."""
    numbers = {state: number for number, state in enumerate(table)}
    inverse: list[list[tuple[int, int]]] = [[] for _ in numbers]
    missing: list[tuple[int, int]] = []
    for state, steps in table.items():
        for char, target in steps.items():
            into = missing if target is None else inverse[numbers[target]]
            into.append((ord(char), numbers[state]))
    found = alike_but_for(missing, inverse, numbers[""])
    return {state: found[number] for state, number in numbers.items()}


def _state(seen: str, steps: Mapping[str, str | None], group: Mapping[str, int]) -> State:
    other = group[""]
    targets = ((char, None if target is None else group[target]) for char, target in steps.items())
    elsewhere = {char: target for char, target in targets if target != other}
    by_target: dict[int, list[str]] = {}
    for char, target in elsewhere.items():
        if target is not None:
            by_target.setdefault(target, []).append(char)
    edges = ((_chars(*found), target) for target, found in by_target.items())
    return State(seen, ((_not_chars(*elsewhere), other), *edges), elsewhere, END not in steps)
