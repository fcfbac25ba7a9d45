"""A first look for lexemes that are cut in the wrong place: what may follow each, wherever it stands.

As if any two lexemes might come at the same place, and any follower of one after each of its occurrences: that is
quick, and finds too many conflicts, but never too few. In JSON it finds none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator
from itertools import product
from typing import NamedTuple

from toolgram.grammar.dialects.lark.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Row, Special, Tree, calls
from toolgram.grammar.ir import Literal


class _Begin(NamedTuple):
    """The characters that a node may begin with, and whether it may be empty."""

    first: int
    empty: bool


class _After(NamedTuple):
    """What may follow a node in its rule: characters, and whether the rule may end there."""

    first: int
    ends: bool


def suspects(tree: Tree, lexicon: Lexicon, among: Container[int] | None = None) -> set[int]:
    """The numbers of the lexemes that may be in the way of one another; none means that the lexer is exact.

    With `among` only these are looked at, wherever they stand in the tree.
    """
    follow = _follow(tree, lexicon)
    found: set[int] = set()
    numbers = [number for number in range(len(lexicon.exprs)) if among is None or number in among]
    for pairs in (_literals, _strings, _others):
        for ended, running in pairs(lexicon, follow, numbers):
            found.update((ended, running))
    return found


def _literals(lexicon: Lexicon, follow: list[int], numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Literals that run on over others."""
    texts = {expr.text: number for number in numbers if isinstance(expr := lexicon.exprs[number], Literal)}
    lengths = sorted({len(text) for text in texts})
    for text, running in texts.items():
        for length in lengths[: bisect_left(lengths, len(text))]:
            ended = texts.get(text[:length])
            if ended is not None and lexicon.alphabet.alike(lexicon.alphabet.of_char(text[length])) & follow[ended]:
                yield ended, running


def _strings(lexicon: Lexicon, follow: list[int], numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Strings that with what is after them run on over others: none is the beginning of another by itself."""
    by_tail: dict[str, list[int]] = {}
    for number in numbers:
        if (tail := lexicon.tails[number]) is not None:
            by_tail.setdefault(tail, []).append(number)
    for short, long in product(by_tail, by_tail):
        if len(short) < len(long) and long.startswith(short):
            over = lexicon.alphabet.alike(lexicon.alphabet.of_char(long[len(short)]))
            for ended in by_tail[short]:
                if over & follow[ended]:
                    yield from ((ended, running) for running in by_tail[long])


def _others(lexicon: Lexicon, follow: list[int], numbers: list[int]) -> Iterator[tuple[int, int]]:
    """All other pairs, by their characters alone: many lexemes have the same."""
    ended: dict[tuple[str, int, int], list[int]] = {}
    running: dict[tuple[str, int, int], list[int]] = {}
    for number in numbers:
        kind = "literal" if isinstance(lexicon.exprs[number], Literal) else "regex"
        kind = kind if lexicon.tails[number] is None else "string"
        _, first, later, _ = lexicon.letters[number]
        ended.setdefault((kind, first, follow[number]), []).append(number)
        running.setdefault((kind, first, lexicon.alphabet.alike(later)), []).append(number)
    for (kind, first, after), ends in ended.items():
        for (other, begin, later), runs in running.items():
            if (kind != other or kind == "regex") and first & begin and later & after:
                yield from product(ends, runs)


def _follow(tree: Tree, lexicon: Lexicon) -> list[int]:
    """The characters that may follow each lexeme, by its number."""
    begins = _begins(tree, lexicon)
    after_rule = dict.fromkeys(tree, 0)
    onward: dict[str, set[str]] = {name: set() for name in tree}  # the rules that end where a rule ends
    follow = [0] * len(lexicon.letters)
    last: dict[str, set[int]] = {name: set() for name in tree}  # the lexemes that a rule may end with
    for name, node in tree.items():
        found: list[tuple[Lexeme | Special | Call, _After]] = []
        _walk(node, _After(0, ends=True), begins, lexicon, found)
        for leaf, after in found:
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
    node: Node,
    after: _After,
    begins: dict[str, _Begin],
    lexicon: Lexicon,
    found: list[tuple[Lexeme | Special | Call, _After]],
) -> _Begin:
    """Finds the leaves of a node, each with what may follow it; how the node begins."""
    match node:
        case Lexeme() | Special() | Call():
            found.append((node, after))
            return _begin(node, begins, lexicon)
        case Row(items):
            first, empty = 0, True
            for item in reversed(items):
                begin = _walk(item, after, begins, lexicon, found)
                after = _After(begin.first | (after.first if begin.empty else 0), begin.empty and after.ends)
                first, empty = begin.first | (first if begin.empty else 0), empty and begin.empty
            return _Begin(first, empty)
        case Fork(options):
            first, empty = 0, False
            for option in options:
                begin = _walk(option, after, begins, lexicon, found)
                first, empty = first | begin.first, empty or begin.empty
            return _Begin(first, empty)
        case Loop(item, least, most):
            again = 0 if most == 1 else _begin(item, begins, lexicon).first
            begin = _walk(item, _After(after.first | again, after.ends), begins, lexicon, found)
            return _Begin(begin.first, begin.empty or not least)
