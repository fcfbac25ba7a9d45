"""Where JSON's strings lie in an expression: what is read from a quote to the next is one lexeme.

A lexeme that begins with a quote and ends with the next one can never run on over another such, nor be cut short by
one, so that nothing needs to be searched for; and llguidance is at its best with whole strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from toolgram.caching import counted
from toolgram.grammar import ir
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import CharSet, Choice, Except, Expr, Literal, Members, Ref, Repeat, Rules, Text
from toolgram.grammar.walk import Uses, is_plain

START, INSIDE, ESCAPED, DONE, OTHER = (1 << number for number in range(5))
"""Before the string; in it; after a backslash in it; after its second quote; anywhere else."""

Relation = tuple[int, ...]
"""For each of these states, by number, the states that a text of an expression may lead to, as a bit mask."""

_SAME: Relation = (START, INSIDE, ESCAPED, DONE, OTHER)
_NOWHERE: Relation = (0, 0, 0, 0, 0)
_QUOTE: Relation = (INSIDE, DONE, INSIDE, OTHER, OTHER)
_BACKSLASH: Relation = (OTHER, ESCAPED, INSIDE, OTHER, OTHER)
_PLAIN: Relation = (OTHER, INSIDE, INSIDE, OTHER, OTHER)
_OUTSIDE: Relation = (OTHER, OTHER, OTHER, OTHER, OTHER)
_BEGIN = re.compile(r'(?:^|[\s{\[(:,=>])"')
_LONGEST_KNOWN = 100  # of a text that is remembered
_MARK = re.compile(r'["\\]')


class Quotes:
    """What the rules and their expressions do to a string that is being read."""

    def __init__(self, rules: Rules, used: Uses, components: Iterable[Sequence[str]]) -> None:
        """`components`: the rules that lead to one another, each after those that it leads to."""
        self._known: dict[int, Relation] = {}  # by identity: the expressions are those of the rules
        self._of_rule: dict[str, Relation] = {}
        for component in components:
            if len(component) == 1 and component[0] not in used[component[0]]:
                self._of_rule[component[0]] = self._relation(rules[component[0]])
            else:
                self._settle(component, rules, used)

    def _settle(self, component: Sequence[str], rules: Rules, used: Uses) -> None:
        """Work out the rules of one component, which need one another: their least fixed point."""
        self._of_rule.update(dict.fromkeys(component, _NOWHERE))
        users: dict[str, list[str]] = {name: [] for name in component}
        for name in component:
            for part in used[name]:
                users.get(part, []).append(name)
        waiting = dict.fromkeys(component)
        while waiting:
            name, _ = waiting.popitem()  # from the last rule upwards: rules mostly use rules that come later
            relation = self._made(rules[name], self._made_anew)
            if relation != self._of_rule[name]:
                self._of_rule[name] = relation
                waiting.update(dict.fromkeys(users[name]))

    def stays_inside(self, rule: str) -> bool:
        """Whether a rule's texts do not lead out of a string, or end it at most."""
        return not _image(INSIDE, self._of_rule[rule]) & (START | OTHER)

    def after(self, states: int, expr: Expr) -> int:
        """The states that an expression of the rules leads to from these."""
        return _image(states, self._relation(expr))

    def is_string(self, expr: Expr) -> bool:
        """Whether each text of an expression of the rules is a string, from its quote to the next."""
        return self.after(START, expr) == DONE

    def _relation(self, expr: Expr) -> Relation:
        if is_plain(expr):
            return _of_plain(expr)
        relation = self._known.get(id(expr))
        if relation is None:
            relation = self._known[id(expr)] = self._made(expr, self._relation)
        return relation

    def _made_anew(self, expr: Expr) -> Relation:
        return _of_plain(expr) if is_plain(expr) else self._made(expr, self._made_anew)

    def _made(self, expr: Expr, of_part: Callable[[Expr], Relation]) -> Relation:
        if isinstance(expr, Ref):
            return self._of_rule[expr.name]
        return self._made_anew(expr.every) if isinstance(expr, Except) else _of_parts(expr, of_part)


@found_once
def _of_plain(expr: Expr) -> Relation:
    return _of_parts(expr, _of_plain)


def _of_parts(expr: Expr, of_part: Callable[[Expr], Relation]) -> Relation:
    match expr:
        case Literal():
            return _of_text(expr.text)
        case ir.Sequence():
            return reduce(_then, map(of_part, expr.items), _SAME)
        case Choice():
            return reduce(_either, map(of_part, expr.options), _NOWHERE)
        case CharSet():
            return _of_set(expr)
        case Repeat(item, least, most):
            return _times(of_part(item), least, most)
        case Members(items, _, between):
            one = reduce(_either, map(of_part, items), _NOWHERE)
            return _then(one, _times(_then(_of_text(between), one), 0, None))
        case Text(without):
            raw = (_PLAIN, *(relation for relation, char in _MARKS if char not in without))
            return _times(reduce(_either, raw), 0, None)
        case _:
            return _OUTSIDE


_MARKS = ((_QUOTE, '"'), (_BACKSLASH, "\\"))


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
    more = _SAME
    while (longer := _either(more, _then(more, item))) != more:
        more = longer
    return _then(_power(item, least), more)


def _power(item: Relation, count: int) -> Relation:
    if count == 0:
        return _SAME
    half = _power(item, count // 2)
    twice = _then(half, half)
    return _then(twice, item) if count % 2 else twice


def _of_text(text: str) -> Relation:
    return _of_short_text(text) if len(text) <= _LONGEST_KNOWN else _of_marks(text)


@counted(512)
def _of_short_text(text: str) -> Relation:
    return _of_marks(text)


def _of_marks(text: str) -> Relation:
    relation = _SAME
    place = 0
    for mark in _MARK.finditer(text):
        relation = _then(relation, _plain(mark.start() - place))
        relation = _then(relation, _QUOTE if mark[0] == '"' else _BACKSLASH)
        place = mark.end()
    return _then(relation, _plain(len(text) - place))


def _plain(count: int) -> Relation:
    return _PLAIN if count else _SAME


@found_once
def _of_set(charset: CharSet) -> Relation:
    marks = sum(char in charset for char in '"\\')
    parts: list[Relation] = [relation for relation, char in _MARKS if char in charset]
    if sum(high - low + 1 for low, high in charset.ranges) > marks:
        parts.append(_PLAIN)
    return reduce(_either, parts, _NOWHERE)


def after_text(states: int, text: str) -> int:
    """The states that a text leads to from these."""
    return _image(states, _of_text(text))


def string_begin(text: str) -> int:
    """The place of the first quote in the text that may begin a string, else its end."""
    found = _BEGIN.search(text)
    return found.end() - 1 if found else len(text)


def string_end(text: str, state: int) -> int | None:
    """The place after the quote in the text that ends the string that it is in; None if there is none."""
    place = {START: 1, INSIDE: 0, ESCAPED: 1}.get(state, len(text))
    while mark := _MARK.search(text, place):
        if mark[0] == '"':
            return mark.end()
        place = mark.end() + 1
    return None
