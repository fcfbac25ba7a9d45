"""Members in any order as rules, for the dialects that have nothing else: one for each set of those that are left."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from operator import is_
from typing import TypeGuard

from toolgram.grammar.hashing import facts_of, found_once
from toolgram.grammar.ir import (
    EMPTY,
    MUST,
    NOTHING,
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Members,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    children,
    choice,
    must_be_there,
    optional,
    repeat,
    seq,
)
from toolgram.grammar.walk import MEMBERS, fresh, is_plain, kinds_in, size, with_children
from toolgram.work import give_way

MOST_MEMBERS = 60
"""Members that come in any order anywhere: llguidance has a bit for each of 64 that says whether it is taken."""
_MOST = 6  # members that come in any order where this takes a rule for each set of them, of which there are 64
_MOST_WRITTEN = 2_000  # members in these rules, as each must have those that must be there, too
_MOST_IN_ALL = 4_000  # of these in a grammar, and for each member of it
_FOR_EACH = 6  # so many more: two of them take twelve, six of them 448
_WORD = re.compile(r"\w+")
_LARGEST = 4  # parts of a member that is written wherever it may come


def in_rules(rules: Rules, kept: int = 0) -> Rules:
    """The rules, with one for each set of members that may be left; where these are too many, members in order.

    Up to `kept` members are left as they are, where none of them may end with the same members once more: llguidance
    1.9 takes what follows those inside for what follows those outside, and the other way round.
    """
    found = [name for name, expr in rules.items() if _most_members(expr)]
    endless = _ending_with_themselves(rules, found) if kept else frozenset[Members]()
    changing = found if endless else [name for name in found if _most_members(rules[name]) > kept]
    if not changing:
        return rules
    writing = _Writing(dict(rules), kept, endless, most_free(rules))
    for name in changing:
        writing.rules[name] = writing.without_members(rules[name], name)
    return writing.rules


def most_free(rules: Rules) -> int:
    """How many optional members may come in any order where each set of them takes a rule: as many in each object of a
    grammar, so that it is as large as what it says; -1 where none do."""
    found = _all_members(rules.values())
    room = _MOST_IN_ALL + _FOR_EACH * sum(len(expr.items) for expr in found)
    for most in range(_MOST, -1, -1):
        if sum(_written(expr, most) or 0 for expr in found) <= room:
            return most
    return -1


def has_few_orders(expr: Members, most: int) -> bool:
    """Whether a rule is written for each set of members that may be left; `most` as `most_free` finds it."""
    return _written(expr, most) is not None


def _written(expr: Members, most: int) -> int | None:
    """How many members there are in the rules for each set of them; None where these are not written."""
    written, free, needed = 0, 0, 0
    for times in expr.occurs + "1":
        if times == "1":  # before which any of those in front of it may have been
            written += 2**free * (1 + len(expr.occurs) - needed)
            needed += 1
        free += times in "?!"
        if free > most or written > _MOST_WRITTEN:
            return None
    return written


def _all_members(exprs: Iterable[Expr]) -> dict[Members, None]:
    return dict.fromkeys(chain.from_iterable(map(_members_in, exprs)))


def _members_in(expr: Expr) -> tuple[Members, ...]:
    return _members_of(expr) if kinds_in(expr) & MEMBERS else ()


@found_once
def _members_of(expr: Expr) -> tuple[Members, ...]:
    inner = chain.from_iterable(map(_members_in, children(expr)))
    return (expr, *inner) if isinstance(expr, Members) else tuple(inner)


def _ending_with_themselves(rules: Rules, names: Iterable[str]) -> frozenset[Members]:
    """Members of these rules of which one may end with the same members."""
    return frozenset(expr for expr in _all_members(map(rules.__getitem__, names)) if _ends_with_itself(expr, rules))


def _ends_with_itself(expr: Members, rules: Rules) -> bool:
    """What was found of it holds for as long as the rules are the same that it may end with."""
    facts = facts_of(expr)
    known: tuple[bool, Rules] | None = facts.get(_ends_with_itself)
    if known is None or not all(map(is_, map(rules.get, known[1]), known[1].values())):
        found = _last_of(expr, rules)
        ends = {last.name: rules[last.name] for last in found if isinstance(last, Ref)}
        facts[_ends_with_itself] = known = expr in found, ends
    return known[0]


def _last_of(expr: Members, rules: Rules) -> set[Expr]:
    """The rules and the members that any of these may end with."""
    found: set[Expr] = set()
    waiting: list[Expr] = list(expr.items)
    while waiting:
        for last in _last(waiting.pop()):
            if last not in found:
                found.add(last)
                waiting += [rules[last.name]] if isinstance(last, Ref) else children(last)
    return found


def _last(expr: Expr) -> tuple[Expr, ...]:
    """The rules and the members that may be the last part of an expression; any rule may be empty."""
    return () if is_plain(expr) else _last_in(expr)


@found_once
def _last_in(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Ref() | Members():
            return (expr,)
        case Sequence(items):
            needed = next((at for at in reversed(range(len(items))) if not _may_be_empty(items[at])), 0)
            return tuple(chain.from_iterable(map(_last, reversed(items[needed:]))))
        case Choice() | Repeat():
            return tuple(chain.from_iterable(map(_last, children(expr))))
        case _:
            return ()


@found_once
def _may_be_empty(expr: Expr) -> bool:
    match expr:
        case Ref() | Text():
            return True
        case Literal(text) | Token(text):
            return not text
        case Sequence(items):
            return all(map(_may_be_empty, items))
        case Choice(options):
            return any(map(_may_be_empty, options))
        case Repeat(item, low):
            return not low or _may_be_empty(item)
        case CharSet() | Except() | Members():
            return False


def _most_members(expr: Expr) -> int:
    """How many items the members in an expression have that have most of them; 0 where there are none."""
    return _largest(expr) if kinds_in(expr) & MEMBERS else 0


@found_once
def _largest(expr: Expr) -> int:
    own = len(expr.items) if isinstance(expr, Members) else 0
    return max(own, *map(_most_members, children(expr)), 0)


@dataclass(slots=True)
class _Writing:
    """Adds to the rules; what is written twice has one."""

    rules: dict[str, Expr]
    kept: int
    endless: frozenset[Members]
    most: int
    _named: dict[Expr, Ref] = field(default_factory=dict[Expr, Ref])
    _due: list[tuple[str, Members]] = field(default_factory=list[tuple[str, Members]])

    def without_members(self, expr: Expr, rule: str) -> Expr:
        if _most_members(expr) <= (0 if self.endless else self.kept):
            return expr
        if isinstance(expr, Choice) and EMPTY in expr.options and any(map(self._may_be_row, expr.options)):
            return choice(*(self._row(option, rule) for option in expr.options if option != EMPTY))
        made = with_children(expr, lambda part: self.without_members(part, rule))
        if not isinstance(made, Members) or self._is_kept(expr):
            return made
        if not has_few_orders(made, self.most):
            return self._in_order(made, rule)
        items = tuple(
            item if size(item) <= _LARGEST else self._rule(item, f"{rule}-{_word_in(item)}", item)
            for item in made.items
        )
        ways = self._ways(Members(items, made.occurs, made.between), rule)
        while self._due:
            name, left = self._due.pop()
            self.rules[name] = self._ways(left, rule)
        return ways

    def _ways(self, expr: Members, rule: str) -> Expr:
        return choice(*(seq(item, self._left(rest, rule)) for item, rest in expr.ways()))

    def _left(self, rest: Expr, rule: str) -> Expr:
        """What follows one of the members, with rules for those that are left."""
        if not isinstance(rest, Members):
            return with_children(rest, lambda part: self._left(part, rule)) if _most_members(rest) else rest
        known = rest in self._named
        ref = self._rule(rest, f"{rule}-left", rest)
        if not known:
            self._due.append((ref.name, rest))
        return ref

    def _rule(self, key: Expr, hint: str, body: Expr) -> Ref:
        if key not in self._named:
            give_way()
            self._named[key] = Ref(fresh(hint, self.rules))
            self.rules[self._named[key].name] = body
        return self._named[key]

    def _may_be_row(self, expr: Expr) -> TypeGuard[Members]:
        """Whether these are members that, where none of them need be there, are a sequence of what may be left out."""
        if not isinstance(expr, Members) or expr.between or must_be_there(expr.occurs):
            return False
        return not self._is_kept(expr) and not has_few_orders(expr, self.most)

    def _is_kept(self, expr: Expr) -> bool:
        return isinstance(expr, Members) and len(expr.items) <= self.kept and expr not in self.endless

    def _row(self, expr: Expr, rule: str) -> Expr:
        if not self._may_be_row(expr):
            return self.without_members(expr, rule)
        pairs = zip(expr.items, expr.occurs, strict=True)
        return seq(*(_times(self.without_members(item, rule), times) for item, times in pairs))

    def _in_order(self, expr: Members, rule: str) -> Expr:
        pairs = list(zip(expr.items, expr.occurs, strict=True))
        anchor = next((at for at, times in enumerate(expr.occurs) if times in MUST), -1)
        if anchor >= 0:
            before = [_times(seq(item, expr.between), times) for item, times in pairs[:anchor]]
            after = [_times(seq(expr.between, item), times) for item, times in pairs[anchor + 1 :]]
            return seq(*before, expr.items[anchor], *after)
        here: Expr = NOTHING
        following = EMPTY  # another one, from here on
        for index in reversed(range(len(pairs))):
            item, times = pairs[index]
            again = EMPTY if times == "?" else repeat(seq(expr.between, item))
            body = choice(seq(item, again, following), here)
            here = self._rule(body, f"{rule}-from", body) if index else body
            following = optional(seq(expr.between, here))
        return here


def _word_in(item: Expr) -> str:
    """What a person would call a member: the last word of its first text, which has the key."""
    parts = item.items if isinstance(item, Sequence) else (item,)
    texts = [part.text for part in parts if isinstance(part, Literal)]
    words = _WORD.findall(texts[0]) if texts else []
    return words[-1] if words else "member"


def _times(expr: Expr, occurs: str) -> Expr:
    return expr if occurs in MUST else optional(expr) if occurs == "?" else repeat(expr)
