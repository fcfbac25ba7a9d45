"""A first look for lexemes that are cut in the wrong place: what may follow each, wherever it stands.

As if any two lexemes might come at the same place, and any follower of one after each of its occurrences: that is
quick, and finds too many conflicts, but never too few. In JSON it finds none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from toolgram.grammar.dialects.lark.lexing.alphabet import END
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Only, Row, Sealed, Tree, calls
from toolgram.grammar.ir import Expr, Literal, Sequence


def suspects(tree: Tree, lexicon: Lexicon, among: Iterable[int] | None = None) -> set[int]:
    """The numbers of the lexemes that may be in the way of one another; none means that the lexer is exact.

    With `among` only these are looked at, wherever they stand in the tree.
    """
    follow = _follow(tree, lexicon)
    found: set[int] = set()
    numbers = list(range(len(lexicon.exprs))) if among is None else sorted(among)
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
                pairs = product(ends, runs)
                yield from (pair for pair in pairs if _begin_alike(lexicon, *pair) and _may_hold_end(lexicon, *pair))


def _begin_alike(lexicon: Lexicon, one: int, other: int) -> bool:
    """Whether of the literals that two lexemes begin with, if they do, one begins with the other."""
    here, there = _opening(lexicon.exprs[one]), _opening(lexicon.exprs[other])
    return here.startswith(there) or there.startswith(here)


def _may_hold_end(lexicon: Lexicon, ended: int, running: int) -> bool:
    """Whether the character that the one ends with may be in the other, as it is where that runs on over the one: a key
    without quotes ends with a colon, and no word in its place has one."""
    expr = lexicon.exprs[ended]
    last = expr.items[-1] if isinstance(expr, Sequence) else expr
    closing = last.text[-1:] if isinstance(last, Literal) else ""
    return not closing or lexicon.alphabet.of_char(closing) & lexicon.letters[running].every != 0


def _opening(expr: Expr) -> str:
    first = expr.items[0] if isinstance(expr, Sequence) else expr
    return first.text if isinstance(first, Literal) else ""


def _follow(tree: Tree, lexicon: Lexicon) -> list[int]:
    """The characters that may follow each lexeme, by its number."""
    following = _Following(tree, lexicon)
    for name, node in tree.items():
        following.walk(node, END, name)
    after_rule = following.after_rule
    waiting = dict.fromkeys(tree)
    while waiting:
        name, _ = waiting.popitem()
        for inner in following.onward[name]:
            if after_rule[name] & ~after_rule[inner]:
                after_rule[inner] |= after_rule[name]
                waiting[inner] = None
    for name, numbers in following.last.items():
        for number in numbers:
            following.follow[number] |= after_rule[name]
    return [mask & ~END for mask in following.follow]


class _Following:
    """What may follow lexemes, by number, and rules, as far as it stands in the same rule; the rest is what follows
    that: after the rules that it may end with (`onward`), and the lexemes (`last`)."""

    def __init__(self, tree: Tree, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._begins = _begins(tree, lexicon)
        self.after_rule = dict.fromkeys(tree, 0)
        self.onward: dict[str, set[str]] = {name: set() for name in tree}
        self.follow = [0] * len(lexicon.letters)
        self.last: dict[str, set[int]] = {name: set() for name in tree}

    def walk(self, node: Node, after: int, rule: str) -> int:
        """Notes what may follow the leaves of a node of the rule; gives how it begins."""
        lexicon = self._lexicon
        if isinstance(node, Lexeme):
            number = lexicon.numbers[node]
            self.follow[number] |= after
            if after & END:
                self.last[rule].add(number)
            return lexicon.begins[number]
        if isinstance(node, Call):
            self.after_rule[node.name] |= after
            if after & END:
                self.onward[rule].add(node.name)
            return self._begins[node.name]
        if isinstance(node, Row):
            begin = END
            for item in reversed(node.items):
                first = self.walk(item, after, rule)
                after, begin = _then(first, after), _then(first, begin)
            return begin
        if isinstance(node, Fork):
            begin = 0
            for option in node.options:
                begin |= self.walk(option, after, rule)
            return begin
        if isinstance(node, Loop):
            again = 0 if node.max == 1 else _begin(node.item, self._begins, lexicon) & ~END
            begin = self.walk(node.item, after | again, rule)
            return begin if node.min else begin | END
        return _begin(node, self._begins, lexicon)


def _begins(tree: Tree, lexicon: Lexicon) -> dict[str, int]:
    begins = dict.fromkeys(tree, 0)
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


def _begin(node: Node, begins: Mapping[str, int], lexicon: Lexicon) -> int:
    """The characters that a node may begin with, and END where it may be empty."""
    if isinstance(node, Lexeme):
        return lexicon.begins[lexicon.numbers[node]]
    if isinstance(node, Call):
        return begins[node.name]
    if isinstance(node, Row):
        begin = END
        for item in node.items:
            begin = begin & ~END | _begin(item, begins, lexicon)
            if not begin & END:
                break
        return begin
    if isinstance(node, Fork):
        begin = 0
        for option in node.options:
            begin |= _begin(option, begins, lexicon)
        return begin
    if isinstance(node, Loop):
        begin = _begin(node.item, begins, lexicon)
        return begin if node.min else begin | END
    if isinstance(node, Sealed):
        return lexicon.alphabet.of_set(node.first)
    return END if isinstance(node, Only) else 0


def _then(begin: int, after: int) -> int:
    """What may come where a node begins so and is followed by that, which is END where its rule may end there."""
    return begin & ~END | after if begin & END else begin
