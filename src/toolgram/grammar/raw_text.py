"""Text as it is, up to the marker that ends it: of so many characters, or of a regular language.

To count characters and look for a marker at once, an automaton needs a state for each pair of a count and a beginning
of the marker: 256 characters before `</parameter>` are some 3,000 states. Unless it has to be exact, what is counted
here is how often a character leaves nothing of a marker begun. That is as often as there are characters in nearly all
text, and less often in text with beginnings of markers: no text that is short enough is refused, and some are admitted
that are longer. How few characters there may be is counted exactly as long as it is a small number.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgram.caching import counted
from toolgram.grammar.ir import EMPTY, NOTHING, CharSet, Expr, Text, choice, not_chars, optional, repeat, seq
from toolgram.grammar.regular.automata import Automaton, intersection
from toolgram.grammar.regular.elimination import eliminated
from toolgram.grammar.regular.languages import without
from toolgram.grammar.regular.to_expr import expression, numbered
from toolgram.grammar.until import State, automaton
from toolgram.work import remembered

_HOME = 0  # the state in which nothing of a marker has begun
_MOST_COUNTED = 4  # characters at the beginning of a text, so many at least, are counted exactly


class RawText(NamedTuple):
    """Text as an expression of characters, and the bodies of the rules that it refers to by their numbers.

    `loose`: the keywords of JSON Schema that it keeps roughly, each with what holds instead.
    """

    expr: Expr
    bodies: tuple[Expr, ...] = ()
    loose: tuple[tuple[str, str], ...] = ()


def raw_text(
    markers: tuple[str, ...], language: Automaton | None, least: int, most: int | None, *, exact: bool
) -> RawText:
    """The texts of a language (None: all) without these markers, of `least` to `most` characters (None: any number).

    White space that a marker begins with is no part of it where characters are counted, which it would be too much for.
    Raises TooLarge where it takes too many states.
    """
    if language is None and (not exact or (least, most) == (0, None)):
        bare = markers if most is None else tuple(marker.lstrip() for marker in markers)
        return _counted(bare, least, most)
    return _exact(markers, language, least, most)


@remembered(maxsize=256)
def _exact(markers: tuple[str, ...], language: Automaton | None, least: int, most: int | None) -> RawText:
    if language is None:
        language = without(markers)
    elif found := tuple(marker for marker in markers if may_contain(language, marker)):
        language = intersection(language, without(found))
    return RawText(*numbered(lambda rule: expression(language, lambda chars: chars, rule, "", least, most)))


def may_contain(language: Automaton, text: str) -> bool:
    """A quick look: whether each character of a text is in some text of the language."""
    sets = {charset for state in language.states for charset, _ in state.edges}
    return all(any(char in charset for charset in sets) for char in set(text))


@counted(256)
def _counted(markers: tuple[str, ...], least: int, most: int | None) -> RawText:
    states = automaton(markers)
    if most is not None and most < least:
        return RawText(NOTHING)
    if most is not None and most < min(map(len, markers)):
        return RawText(repeat(not_chars(), least, most))
    kept = min(least, _MOST_COUNTED)
    if most is not None and kept == 1:
        expr = _some(states, most)
    else:
        left = None if most is None else most - kept
        beginnings = _beginnings(states, kept).items()
        expr = choice(*(seq(begun, _rest(states, markers, number, left)) for number, begun in beginnings))
    loose: list[tuple[str, str]] = []
    if kept < least:
        loose.append(("minLength", f"{kept} characters at least"))
    if most is not None:
        begun = " and ".join(map(repr, markers))
        loose.append(("maxLength", f"{most} characters at most, where the beginnings of {begun} do not count"))
    return RawText(expr, (), tuple(loose))


def _beginnings(states: tuple[State, ...], count: int) -> dict[int, Expr]:
    """All beginnings of so many characters, by the state that they lead to."""
    found: dict[int, Expr] = {_HOME: EMPTY}
    for _ in range(count):
        longer: dict[int, list[Expr]] = {}
        for number, begun in found.items():
            for charset, target in states[number].edges:
                if charset.ranges:
                    longer.setdefault(target, []).append(seq(begun, charset))
        found = {number: choice(*options) for number, options in longer.items()}
    return found


def _rest(states: tuple[State, ...], markers: tuple[str, ...], number: int, most: int | None) -> Expr:
    """What may follow in a state, until nothing of a marker has begun `most` times."""
    if most is None:
        return Text(markers, states[number].seen)
    again, begun = _again(states), optional(_begun(states))
    if number == _HOME:
        return seq(repeat(again, 0, most), begun)
    if not most:
        return _unfinished(states, number)
    once_less = seq(repeat(again, 0, most - 1), begun)
    return choice(seq(_home(states, number), once_less), _unfinished(states, number))


def _some(states: tuple[State, ...], most: int) -> Expr:
    """As `_rest` at the beginning of a text, but for the empty text: so the first character is read as the others are,
    and needs no rules of its own."""
    return choice(seq(repeat(_again(states), 1, most), optional(_begun(states))), _begun(states))


def _again(states: tuple[State, ...]) -> Expr:
    """What leads from the state in which nothing of a marker has begun to it again."""
    return choice(*(seq(charset, _home(states, target)) for charset, target in states[_HOME].edges))


def _begun(states: tuple[State, ...]) -> Expr:
    """What begins a marker, and never leaves it."""
    edges = states[_HOME].edges
    return choice(*(seq(charset, _unfinished(states, target)) for charset, target in edges if target != _HOME))


def _home(states: tuple[State, ...], start: int) -> Expr:
    """What leads from a state to the one in which nothing of a marker has begun."""
    inner = _inner(states, start)
    tails = {number: choice(*(edge for edge, to in states[number].edges if to == _HOME)) for number in inner}
    return EMPTY if start == _HOME else eliminated(start, inner, tails, None) or NOTHING


def _unfinished(states: tuple[State, ...], start: int) -> Expr:
    """What may follow in a state in which a marker has begun, without ever leaving such states."""
    inner = _inner(states, start)
    return eliminated(start, inner, dict.fromkeys(inner, EMPTY), None) or NOTHING


def _inner(states: tuple[State, ...], start: int) -> dict[int, dict[int, CharSet]]:
    """The steps of all states that lead nowhere else but to where a marker has begun."""
    found: dict[int, dict[int, CharSet]] = {}
    waiting = [start]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found[number] = {to: edge for edge, to in states[number].edges if to != _HOME and edge.ranges}
            waiting += found[number]
    return found
