"""A first look for lexemes that are cut in the wrong place: what may follow each, wherever it stands.

As if any two lexemes might come at the same place, and any follower of one after each of its occurrences: that is
quick, and finds too many conflicts, but never too few. In JSON it finds none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from toolgram.grammar.dialects.lark_lexicon import Lexicon
from toolgram.grammar.dialects.lark_tree import Call, Fork, Lexeme, Loop, Node, Row, Special, Tree, calls


class _Begin(NamedTuple):
    """The characters that a node may begin with, and whether it may be empty."""

    first: int
    empty: bool


class _After(NamedTuple):
    """What may follow a node in its rule: characters, and whether the rule may end there."""

    first: int
    ends: bool


def suspects(tree: Tree, lexicon: Lexicon) -> set[int]:
    """The numbers of the lexemes that may be in the way of one another; none means that the lexer is exact."""
    follow = _follow(tree, lexicon)
    numbers = range(len(follow))
    by_first: dict[int, list[int]] = {}
    for number in numbers:
        by_first.setdefault(lexicon.letters[number].first, []).append(number)
    found: set[int] = set()
    for first, alike in by_first.items():
        rivals = [number for other, some in by_first.items() if first & other for number in some]
        for ended in alike:
            for running in rivals:
                if follow[ended] and lexicon.may_run_on(ended, running, follow[ended]):
                    found.update((ended, running))
    return found


def _follow(tree: Tree, lexicon: Lexicon) -> list[int]:
    """The characters that may follow each lexeme, by its number."""
    begins = _begins(tree, lexicon)
    after_rule = dict.fromkeys(tree, 0)
    onward: dict[str, set[str]] = {name: set() for name in tree}  # the rules that end where a rule ends
    follow = [0] * len(lexicon.letters)
    last: dict[str, set[int]] = {name: set() for name in tree}  # the lexemes that a rule may end with
    for name, node in tree.items():
        for leaf, after in _walk(node, _After(0, True), begins, lexicon):
            if isinstance(leaf, Call):
                after_rule[leaf.name] |= after.first
                if after.ends:
                    onward[name].add(leaf.name)
            elif isinstance(leaf, Lexeme):
                number = lexicon.numbers[leaf.expr]
                follow[number] |= after.first
                if after.ends:
                    last[name].add(number)
    waiting = dict.fromkeys(tree)
    while waiting:
        name, _ = waiting.popitem()
        for inner in onward[name]:
            if after_rule[name] & ~after_rule[inner]:
                after_rule[inner] |= after_rule[name]
                waiting[inner] = None
    for name, numbers in last.items():
        for number in numbers:
            follow[number] |= after_rule[name]
    return follow


def _begins(tree: Tree, lexicon: Lexicon) -> dict[str, _Begin]:
    begins = dict.fromkeys(tree, _Begin(0, empty=False))
    users: dict[str, set[str]] = {name: set() for name in tree}
    for name, node in tree.items():
        for used in calls(node):
            users[used].add(name)
    waiting = dict.fromkeys(tree)
    while waiting:
        name, _ = waiting.popitem()
        begin = _begin(tree[name], begins, lexicon)
        if begin != begins[name]:
            begins[name] = begin
            waiting.update(dict.fromkeys(users[name]))
    return begins


def _begin(node: Node, begins: dict[str, _Begin], lexicon: Lexicon) -> _Begin:
    match node:
        case Lexeme(expr):
            letters = lexicon.letters[lexicon.numbers[expr]]
            return _Begin(letters.first, letters.nullable)
        case Special():
            return _Begin(0, empty=False)
        case Call(name):
            return begins[name]
        case Row(items):
            first = 0
            for item in items:
                begin = _begin(item, begins, lexicon)
                first |= begin.first
                if not begin.empty:
                    return _Begin(first, empty=False)
            return _Begin(first, empty=True)
        case Fork(options):
            parts = [_begin(option, begins, lexicon) for option in options]
            first = 0
            for part in parts:
                first |= part.first
            return _Begin(first, any(part.empty for part in parts))
        case Loop(item, least):
            begin = _begin(item, begins, lexicon)
            return _Begin(begin.first, begin.empty or not least)


def _walk(
    node: Node, after: _After, begins: dict[str, _Begin], lexicon: Lexicon
) -> Iterator[tuple[Lexeme | Special | Call, _After]]:
    """The leaves of a node, each with what may follow it."""
    match node:
        case Row(items):
            for item in reversed(items):
                yield from _walk(item, after, begins, lexicon)
                begin = _begin(item, begins, lexicon)
                after = _After(begin.first | (after.first if begin.empty else 0), begin.empty and after.ends)
        case Fork(options):
            for option in options:
                yield from _walk(option, after, begins, lexicon)
        case Loop(item, _, most):
            again = 0 if most == 1 else _begin(item, begins, lexicon).first
            yield from _walk(item, _After(after.first | again, after.ends), begins, lexicon)
        case Lexeme() | Special() | Call():
            yield node, after
