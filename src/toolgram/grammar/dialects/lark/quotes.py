"""Where the strings lie in an expression: what is read from a quote to the next like it is one lexeme.

A lexeme that begins with a quote and ends with the next one can never run on over another such, nor be cut short by
one, so that nothing needs to be searched for; and llguidance is at its best with whole strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from toolgram.caching import counted
from toolgram.grammar import ir
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import (
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Text,
    children,
)
from toolgram.grammar.walk import CHARACTERS, Uses, found_given, is_plain, kinds_in

START, INSIDE, ESCAPED, DONE, OTHER = (1 << number for number in range(5))
"""Before the string; in it; after a backslash in it; after its second quote; anywhere else."""
_MORE = 2
"""States that each other kind of quotes takes: in such a string, and after a backslash in it."""

Relation = tuple[int, ...]
"""For each of these states, by number, the states that a text of an expression may lead to, as a bit mask."""

_LONGEST_KNOWN = 100  # of a text that is remembered


class Quotes:
    """What the rules and their expressions do to a string that is being read, be it JSON's or one of Python."""

    def __init__(self, rules: Rules, used: Uses, components: Iterable[Sequence[str]]) -> None:
        """`components`: the rules that lead to one another, each after those that it leads to."""
        self._reading = _PYTHON if any(map(_is_between_others, rules.values())) else _JSON
        self._of_rule: dict[str, Relation] = {}
        for component in components:
            if len(component) == 1 and component[0] not in used[component[0]]:
                self._of_rule[component[0]] = self._relation(rules[component[0]])
            else:
                self._settle(component, rules, used)

    def _settle(self, component: Sequence[str], rules: Rules, used: Uses) -> None:
        """Work out the rules of one component, which need one another: their least fixed point."""
        self._of_rule.update(dict.fromkeys(component, self._reading.nowhere))
        users: dict[str, list[str]] = {name: [] for name in component}
        for name in component:
            for part in used[name]:
                users.get(part, []).append(name)
        waiting = dict.fromkeys(component)
        while waiting:
            name, _ = waiting.popitem()  # from the last rule upwards: rules mostly use rules that come later
            relation = self._relation(rules[name])
            if relation != self._of_rule[name]:
                self._of_rule[name] = relation
                waiting.update(dict.fromkeys(users[name]))

    @property
    def kinds(self) -> str:
        """The quotes between which there are strings."""
        return self._reading.quotes

    def stays_inside(self, rule: str) -> bool:
        """Whether a rule's texts do not lead out of a string, or end it at most."""
        relation = self._of_rule[rule]
        return any(not _image(inside, relation) & (START | OTHER) for inside in self._reading.inside)

    def after(self, states: int, expr: Expr) -> int:
        """The states that an expression of the rules leads to from these."""
        return _image(states, self._relation(expr))

    def is_string(self, expr: Expr) -> bool:
        """Whether each text of an expression of the rules is a string, from its quote to the next."""
        return self.after(START, expr) == DONE

    def is_inside(self, states: int) -> bool:
        """Whether these are states inside one string."""
        within = (inside | escaped for inside, escaped in self._reading.inside.items())
        return any(states and not states & ~each for each in within)

    def after_text(self, states: int, text: str) -> int:
        """The states that a text leads to from these."""
        return _image(states, self._reading.of_text(text))

    def string_begin(self, text: str) -> int:
        """The place of the first quote in the text that may begin a string, else its end."""
        found = self._reading.begin.search(text)
        return found.end() - 1 if found else len(text)

    def string_end(self, text: str, state: int, begin: int = 0) -> int | None:
        """The place after the quote that ends the string which a text is in from `begin` on; None if there is none."""
        return self._reading.string_end(text, state, begin)

    def _relation(self, expr: Expr) -> Relation:
        return self._reading.of_expr(expr, self._of_rule)


class _Reading:
    """What characters, texts and expressions do to a string between some quotes, of the kind that opens it."""

    def __init__(self, quotes: str) -> None:
        self.quotes = quotes
        self._size = 5 + _MORE * (len(quotes) - 1)
        more = [(1 << number, 2 << number) for number in range(5, self._size, _MORE)]
        self.inside = dict([(INSIDE, ESCAPED), *more])
        """The states inside a string, each with that after a backslash there."""
        self.nowhere: Relation = (0,) * self._size
        self.begin = re.compile(rf"(?:^|[\s{{\[(:,=>])[{quotes}]")
        self._any_mark = re.compile(rf"[{quotes}\\]")
        self._mark = {quote: re.compile(rf"[{quote}\\]") for quote in quotes}
        self._begun: dict[int, tuple[str, int]] = {}  # by the state in a string its quote, and how much is escaped
        self._same = _same(self._size)
        self._plain = self._relation({})
        self._outside: Relation = (OTHER,) * self._size
        self._marks = {"\\": self._relation(self.inside)}
        for quote, (inside, escaped) in zip(quotes, self.inside.items(), strict=True):
            self._begun |= {inside: (quote, 0), escaped: (quote, 1)}
            self._marks[quote] = self._relation({START: inside, inside: DONE})
        self.of_expr = found_given(self._made)
        self._of_plain = found_once(self._made_plain)
        self._of_short_text = counted(512)(self._of_marks)

    def _relation(self, changed: Mapping[int, int]) -> Relation:
        """What a character does that leaves a string as it is, but for these states."""
        stays = {state: inside for inside, escaped in self.inside.items() for state in (inside, escaped)}
        return tuple({**stays, **changed}.get(1 << number, OTHER) for number in range(self._size))

    def _made(self, expr: Expr, by_rule: Mapping[str, Relation]) -> Relation:
        """What an expression does, where the rules that it uses do that."""
        if isinstance(expr, Literal):
            return self.of_text(expr.text)
        if isinstance(expr, Ref):
            return by_rule[expr.name]
        return self._of_plain(expr) if is_plain(expr) else self._of_parts(expr, by_rule)

    def _made_plain(self, expr: Expr) -> Relation:
        return self._of_parts(expr, {})

    def _of_parts(self, expr: Expr, by_rule: Mapping[str, Relation]) -> Relation:
        if isinstance(expr, ir.Sequence):
            return reduce(_then, [self._made(item, by_rule) for item in expr.items], self._same)
        if isinstance(expr, Choice):
            return reduce(_either, [self._made(option, by_rule) for option in expr.options], self.nowhere)
        if isinstance(expr, CharSet):
            return self._of_set(expr)
        if isinstance(expr, Repeat):
            return _times(self._made(expr.item, by_rule), expr.min, expr.max)
        if isinstance(expr, Members):
            one = reduce(_either, [self._made(item, by_rule) for item in expr.items], self.nowhere)
            return _then(one, _times(_then(self.of_text(expr.between), one), 0, None))
        if isinstance(expr, Text):
            raw = (self._plain, *(relation for char, relation in self._marks.items() if char not in expr.without))
            return _times(reduce(_either, raw), 0, None)
        return self._made(expr.every, by_rule) if isinstance(expr, Except) else self._outside

    def of_text(self, text: str) -> Relation:
        """What a text does."""
        return self._of_short_text(text) if len(text) <= _LONGEST_KNOWN else self._of_marks(text)

    def _of_marks(self, text: str) -> Relation:
        relation = same = self._same
        place = 0
        for mark in self._any_mark.finditer(text):
            relation = _then(relation, self._plain if mark.start() > place else same)
            relation = _then(relation, self._marks[mark[0]])
            place = mark.end()
        return _then(relation, self._plain if len(text) > place else same)

    def _of_set(self, charset: CharSet) -> Relation:
        parts = [relation for char, relation in self._marks.items() if char in charset]
        if sum(high - low + 1 for low, high in charset.ranges) > len(parts):
            parts.append(self._plain)
        return reduce(_either, parts, self.nowhere)

    def string_end(self, text: str, state: int, begin: int) -> int | None:
        """The place after the quote that ends the string which a text is in from `begin` on; None if there is none."""
        begun = (text[begin], 1) if state == START else self._begun.get(state)
        if begun is None:
            return None
        quote, place = begun[0], begin + begun[1]
        while mark := self._mark[quote].search(text, place):
            if mark[0] == quote:
                return mark.end()
            place = mark.end() + 1
        return None


def _is_between_others(expr: Expr) -> bool:
    """Whether there are characters of a string of Python in an expression that is not between JSON's quotes."""
    return kinds_in(expr) & CHARACTERS != 0 and _has_others(expr)


@found_once
def _has_others(expr: Expr) -> bool:
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, CharSet):
            if "'" not in part and '"' in part and "\\" not in part:
                return True
        elif kinds_in(part) & CHARACTERS:
            waiting += children(part)
    return False


def _image(states: int, relation: Relation) -> int:
    image = 0
    for targets in relation:
        if states & 1:
            image |= targets
        states >>= 1
    return image


@counted(512)
def _then(first: Relation, second: Relation) -> Relation:
    return tuple(_image(states, second) for states in first)


@counted(512)
def _either(one: Relation, other: Relation) -> Relation:
    return tuple(here | there for here, there in zip(one, other, strict=True))


@counted(512)
def _times(item: Relation, least: int, most: int | None) -> Relation:
    """A repetition; where its count may vary, as if it might do so without bound."""
    if least == most:
        return _power(item, least)
    more = _same(len(item))
    while (longer := _either(more, _then(more, item))) != more:
        more = longer
    return _then(_power(item, least), more)


def _power(item: Relation, count: int) -> Relation:
    if count == 0:
        return _same(len(item))
    half = _power(item, count // 2)
    twice = _then(half, half)
    return _then(twice, item) if count % 2 else twice


def _same(size: int) -> Relation:
    """What the empty text does."""
    return tuple(1 << number for number in range(size))


_JSON, _PYTHON = _Reading('"'), _Reading("\"'")
