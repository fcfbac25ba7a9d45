"""Texts that are none of some, as a tree of choices: at each character another one and then anything, or on.

`Except` says this in one piece. A dialect that has a short way to say it takes that; all else reads the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from toolgram.caching import counted, weighed
from toolgram.grammar import ir
from toolgram.grammar.ir import (
    EMPTY,
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Ref,
    Rules,
    choice,
    not_chars,
    repeat,
    seq,
)
from toolgram.grammar.walk import EXCEPT, fresh, kinds_in, weight, with_children

NESTING = 8
"""Levels inside one expression before a rule breaks it."""


class Letters(NamedTuple):
    """What texts are made of: what begins with a character that is none of some, at the start and later on; how a
    character is spelled; and what closes a text."""

    first: Callable[[str], Expr]
    then: Callable[[str], Expr]
    spelled: Callable[[str], str]
    close: str


@dataclass(frozen=True, slots=True)
class OtherTexts:
    """Writes texts that are none of some; `later` makes a rule."""

    letters: Letters
    later: Callable[[Callable[[], Expr]], Expr]

    def after_prefix(self, texts: Sequence[str], depth: int = 0) -> Expr:
        """The rest of a text, and what closes it, that is none of `texts`, which share their first characters."""
        if len(texts) == 1 and depth:
            return self._after_prefix_of(texts[0], depth)
        letters = self.letters
        branches: dict[str, list[str]] = {}
        for text in texts:
            branches.setdefault(text[depth : depth + 1], []).append(text)
        options = [(letters.then if depth else letters.first)("".join(branches))]
        for first, group in branches.items():
            if first:
                options.append(seq(letters.spelled(first), self._after_more(group, depth + 1)))
        if "" not in branches:
            options.append(Literal(letters.close))
        return choice(*options)

    def _after_prefix_of(self, text: str, depth: int) -> Expr:
        """The same for a single text, from its end; its options differ, which need not be checked at each character."""
        stop = depth - depth % NESTING + NESTING
        rest = self.letters.then("") if len(text) < stop else self._after_more([text], stop)
        close = Literal(self.letters.close)
        for char in reversed(text[depth:stop]):
            further = rest.items if isinstance(rest, ir.Sequence) else (rest,)
            taken = ir.Sequence((Literal(self.letters.spelled(char)), *further))
            rest = Choice((self.letters.then(char), taken, close))
        return rest

    def _after_more(self, texts: Sequence[str], depth: int) -> Expr:
        if depth % NESTING:
            return self.after_prefix(texts, depth)
        return self.later(lambda: self.after_prefix(texts, depth))


@dataclass(slots=True)
class Trees:
    """Writes `Except` as such trees, and adds the rules that these take to those there are."""

    rules: dict[str, Expr]
    _made: dict[Expr, Ref] = field(default_factory=dict[Expr, Ref])
    """The rules made for such expressions, and for any number of the characters of a string, and its quote."""

    def rule(self, expr: Except, inside: str) -> Ref:
        """The rule for the expression, which is named like the rule that it is in, where it is met first."""
        if expr not in self._made:
            rest, wanted = self._rest(expr), f"{inside}-key"
            known = _tree(expr, rest, wanted)
            if self.rules.keys().isdisjoint(known):
                self.rules.update(known)
                self._made[expr] = Ref(wanted)
            else:
                self._made[expr] = write_tree(expr.texts, partial(_other, expr, rest), wanted, self.rules, expr.quote)
        return self._made[expr]

    def _rest(self, expr: Except) -> Ref:
        rest = seq(repeat(expr.char), expr.quote)
        if rest not in self._made:
            self._made[rest] = Ref(fresh("string-rest", self.rules))
            self.rules[self._made[rest].name] = rest
        return self._made[rest]


def write_tree(
    texts: Sequence[str], then: Callable[[str], Expr], wanted: str, rules: dict[str, Expr], quote: str = '"'
) -> Ref:
    """Adds the rules for a string that is none of these, with names like the one that is wanted.

    `then` gives what begins with a character that is none of some.
    """
    due: list[tuple[str, Callable[[], Expr]]] = []  # not at once: texts may be longer than calls are deep

    def later(make: Callable[[], Expr]) -> Ref:
        name = fresh(wanted, rules)
        rules[name] = EMPTY  # holds the name
        due.append((name, make))
        return Ref(name)

    tree = OtherTexts(Letters(then, then, str, quote), later)
    whole = later(lambda: seq(quote, tree.after_prefix(texts)))
    for name, make in due:  # which grows
        rules[name] = make()
    return whole


def _weight(expr: Except, *_: object) -> int:
    return 10 * weight(expr)  # most characters are a choice of their own


@weighed(_weight)
def _tree(expr: Except, rest: Ref, wanted: str) -> Rules:
    """The rules of a tree that is in no rules yet, the first of them named as wanted."""
    rules: dict[str, Expr] = {}
    write_tree(expr.texts, partial(_other, expr, rest), wanted, rules, expr.quote)
    return rules


def _other(expr: Except, rest: Expr, but: str) -> Expr:
    """A character that is none of these, and the rest of the string."""
    if not but:
        return seq(expr.char, rest)
    raw = _without(expr.raw, but)
    return seq(choice(raw, expr.escaped) if raw.ranges else expr.escaped, rest)


@counted(512)
def _without(charset: CharSet, chars: str) -> CharSet:
    return not_chars(chars, *not_chars(*charset.ranges).ranges)


def in_trees(rules: Rules) -> dict[str, Expr]:
    """The rules with each `Except` as a tree."""
    written = dict(rules)
    trees = Trees(written)
    for name, expr in rules.items():
        written[name] = _in_trees(expr, name, trees)
    return written


def _in_trees(expr: Expr, rule: str, trees: Trees) -> Expr:
    if not kinds_in(expr) & EXCEPT:
        return expr
    if isinstance(expr, Except):
        return trees.rule(expr, rule)
    return with_children(expr, lambda part: _in_trees(part, rule, trees))
