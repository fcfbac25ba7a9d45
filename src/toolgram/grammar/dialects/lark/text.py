"""Text without some markers as an expression of sequences, choices, repeats and character sets.

Where it cannot be told in pieces, it is written around the state in which nothing of a marker has begun, as all else
leads there or ends: what comes before it, any text from there on, and what never gets there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolgram.caching import counted
from toolgram.grammar.dialects.lark.pieces import AT_ONCE, text_in_pieces
from toolgram.grammar.ir import EMPTY, NOTHING, START, CharSet, Choice, Expr, Text, choice, less, optional, seq
from toolgram.grammar.regular.elimination import eliminated
from toolgram.grammar.until import State, automaton

_HOME = 0  # the state in which nothing of a marker has begun

_Steps = Mapping[int, Mapping[int, CharSet]]


_less = counted(1024)(less)


@counted(1024)
def text_expression(text: Text) -> Expr:
    """The language of a `Text`. It has no dead ends, which llguidance's complement (`~`) leaves in its masks."""
    first = tuple(marker.removeprefix(START) for marker in text.without if marker.startswith(START))
    markers = tuple(marker for marker in text.without if not marker.startswith(START))
    if text.seen in ("", START) and (pieces := text_in_pieces(markers, first)) is not None:
        return pieces
    if text.seen == START:
        return _not_first(first, markers)
    start = _run(automaton(markers), text.seen)
    return _any_text(markers) if start == _HOME else _text_from(start, markers)


@counted(128)  # those of a format are the same for all tools
def _any_text(markers: tuple[str, ...]) -> Expr:
    """The text from the state on in which nothing has begun."""
    steps = _steps(markers)
    return eliminated(_HOME, steps, dict.fromkeys(steps, EMPTY), None) or NOTHING


def _steps(markers: tuple[str, ...]) -> _Steps:
    return {
        number: {target: charset for charset, target in state.edges if charset.ranges}
        for number, state in enumerate(automaton(markers))
    }


def _run(states: tuple[State, ...], text: str) -> int:
    """The state after a text."""
    state = _HOME
    for char in text:
        state = states[state].step(char) or _HOME
    return state


@counted(128)
def _text_from(start: int, markers: tuple[str, ...]) -> Expr:
    """The text from a state on in which something of a marker has begun."""
    steps = _steps(markers)
    inner: dict[int, dict[int, CharSet]] = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state not in inner:
            inner[state] = {target: charset for target, charset in steps[state].items() if target != _HOME}
            waiting += inner[state]
    left = {state: steps[state].get(_HOME, NOTHING) for state in inner}
    ended = eliminated(start, inner, dict.fromkeys(inner, EMPTY), None)
    home = eliminated(start, inner, left, None)
    return choice(seq(home or NOTHING, _any_text(markers)), ended or NOTHING)


def _not_first(texts: tuple[str, ...], markers: tuple[str, ...]) -> Expr:
    """The text from its beginning on, where it must not begin with these: up to the character at which it leaves them,
    and the text from there."""
    states = automaton(markers)
    following: dict[str, dict[str, None]] = {}
    for text in texts:
        for end, char in enumerate(text):
            following.setdefault(text[:end], {})[char] = None
    state_of = {"": _HOME}  # of each beginning of them that may be text
    for begun in sorted(following, key=len)[1:]:
        before = state_of.get(begun[:-1])
        state = None if before is None or begun in texts else states[before].step(begun[-1])
        if state is not None:
            state_of[begun] = state

    def longer(begun: str) -> Iterator[str]:
        """Those that begin so, each after the shorter ones, of so many characters more at most that are text."""
        waiting = [begun]
        for here in waiting:
            yield here
            if len(here) - len(begun) < AT_ONCE:
                waiting += (here + char for char in following[here] if here + char in state_of)

    def leaving(begun: str) -> dict[int, Expr]:
        """What leaves them, by the state that it leads to."""
        ways: dict[int, list[Expr]] = {}
        for here in longer(begun):
            lead = here[len(begun) :]
            if len(lead) == AT_ONCE:
                for target, way in leaving(here).items():
                    ways.setdefault(target, []).append(seq(lead, way))
                continue
            for charset, target in states[state_of[here]].edges:
                if target not in alike and (others := _less(charset, "".join(following[here]))).ranges:
                    ways.setdefault(target, []).append(seq(lead, others))
        return {target: choice(*parts) for target, parts in ways.items()}

    def staying(begun: str) -> Expr:
        leads = [here[len(begun) :] for here in longer(begun) if here != begun]
        return optional(
            _either(*(seq(lead, staying(begun + lead)) if len(lead) == AT_ONCE else seq(lead) for lead in leads))
        )

    def begun_by(target: int) -> CharSet | None:
        """What leads to this state, where that is the same wherever they are left."""
        sets = {_edge(states[state], target) for state in state_of.values()}
        charset = sets.pop()
        follow = {char for begun in state_of for char in following[begun]}
        return charset if not sets and charset is not None and _less(charset, "".join(follow)) == charset else None

    others = [to for state in state_of.values() for _, to in states[state].edges if to != _HOME]
    rests = {target: _text_from(target, markers) for target in dict.fromkeys(others)}
    alike = {target: charset for target in rests if (charset := begun_by(target)) is not None}
    left = leaving("")
    return choice(
        seq(left.get(_HOME, NOTHING), _any_text(markers)),
        *(seq(left[target], rest) for target, rest in rests.items() if target in left and target not in alike),
        seq(staying(""), optional(_either(*(seq(charset, rests[target]) for target, charset in alike.items())))),
    )


def _edge(state: State, target: int) -> CharSet | None:
    """What leads from a state to another, in one step."""
    return next((charset for charset, to in state.edges if to == target and charset.ranges), None)


def _either(*options: Expr) -> Expr:
    """One of these that match anything."""
    return choice(*(option for option in options if not (isinstance(option, Choice) and not option.options)))
