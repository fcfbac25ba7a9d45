"""Rewrites a tree of lexemes until the lexer can cut no text in the wrong place; every step keeps the language.

A lexeme that runs on over what follows it grows by what follows (text up to a marker, and the marker), which is exact
as long as the whole is regular; a literal that is in another's way is cut in two; and what is left is taken apart, in
the end into single characters, which are always safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, pairwise

from toolgram.grammar.dialects.lark_lexemes import Lexicon
from toolgram.grammar.dialects.lark_network import Conflict, conflicts
from toolgram.grammar.dialects.lark_tree import (
    Call,
    Fork,
    Lexeme,
    Loop,
    Node,
    Row,
    Special,
    Tree,
    calls,
    fork,
    leaves,
    opened,
    row,
    size,
)
from toolgram.grammar.ir import EMPTY, Expr, Literal, Repeat, Sequence, Text, choice, repeat, seq

_MOST_MERGES = 4  # of one lexeme with what follows it
_MOST_ATTEMPTS = 1  # at a lexeme that did not grow
_ROOM_TO_GROW = 200  # in leaves, over three times what there was; beyond, lexemes are taken apart instead
_LARGEST_LEXEME = 300
_LARGEST_WIDENED = 120
_MOST_JOINING_PASSES = 24  # after these, lexemes are only taken apart, which comes to an end


def repaired(tree: Tree) -> Tree:
    """The tree with the same sentences, none of which llguidance's lexer gets wrong."""
    attempts: dict[Lexeme, int] = {}
    before: dict[tuple[Expr, str], str] = {}
    largest = 3 * _weight(tree) + _ROOM_TO_GROW
    # Nearly every text runs on over the marker that ends it, so texts grow before anything is looked at.
    texts = {leaf for leaf in _lexemes(tree) if isinstance(leaf.expr, Text)}
    tree = _kept(tree, _Growth(dict(tree), texts, before).tree(), largest)
    for number in count():
        lexicon = Lexicon(leaf.expr for leaf in _lexemes(tree))
        found = conflicts(tree, lexicon)
        if not found:
            break
        joins = number < _MOST_JOINING_PASSES
        growing = _to_grow(found, attempts) if joins and _weight(tree) < largest else set[Lexeme]()
        for lexeme in growing:
            attempts[lexeme] = attempts.get(lexeme, 0) + 1
        pieces = _to_cut(found, growing, lexicon)
        if pieces:
            wide = {name: _widened(node, pieces) for name, node in tree.items()} if joins else tree
            tree = {name: _replaced(node, pieces) for name, node in wide.items()}
        if growing:
            tree = _kept(tree, _Growth(dict(tree), growing, before).tree(), largest)
    return tree


def _kept(tree: Tree, grown: Tree, largest: int) -> Tree:
    return grown if _weight(grown) <= largest else tree


def _weight(tree: Tree) -> int:
    return sum(1 for node in tree.values() for _ in leaves(node))


def _lexemes(tree: Tree) -> Iterable[Lexeme]:
    return (leaf for node in tree.values() for leaf in leaves(node) if isinstance(leaf, Lexeme))


def _to_grow(found: list[Conflict], attempts: Mapping[Lexeme, int]) -> set[Lexeme]:
    return {
        conflict.ended
        for conflict in found
        if not (conflict.ended.cut or isinstance(conflict.running.expr, Literal))
        and conflict.ended.merged < _MOST_MERGES
        and attempts.get(conflict.ended, 0) < _MOST_ATTEMPTS
        and size(conflict.ended.expr) < _LARGEST_LEXEME
    }


def _to_cut(found: list[Conflict], growing: set[Lexeme], lexicon: Lexicon) -> dict[Lexeme, Node]:
    """The lexemes to take apart, and into what: those that run on where nothing grows that could change it."""
    pieces: dict[Lexeme, Node] = {}
    places: dict[Lexeme, set[int]] = {}
    for conflict in found:
        running = conflict.running
        if conflict.ended in growing or running in growing:
            continue
        if isinstance(running.expr, Literal) and not conflict.ended.cut:
            at = lexicon.boundaries(running.expr.text, conflict.ended.expr, conflict.over)
            places.setdefault(running, {0, len(running.expr.text)}).update(at)
            cuts = pairwise(sorted(places[running]))
            pieces[running] = row(*(Lexeme(Literal(running.expr.text[begin:end]), cut=True) for begin, end in cuts))
        else:
            pieces[running] = opened(running, wholly=running.cut or isinstance(running.expr, Text | Literal))
    return pieces


def _widened(node: Node, pieces: Mapping[Lexeme, Node]) -> Node:
    """The node with what is regular around a lexeme that is to be taken apart made one lexeme, where it is small."""
    match node:
        case Row(items):
            return row(*(_widened_run(run, pieces) for run in _runs(items)))
        case Fork() | Loop() if (whole := _whole(node, pieces)) is not None:
            return whole
        case Fork(options):
            return fork(*(_widened(option, pieces) for option in options))
        case Loop(item, least, most):
            return Loop(_widened(item, pieces), least, most)
        case _:
            return node


def _runs(items: tuple[Node, ...]) -> list[list[Node]]:
    """The items in runs of what is regular, and what is not one by one."""
    runs: list[list[Node]] = []
    joins = False
    for item in items:
        regular = _expression(item) is not None
        if regular and joins:
            runs[-1].append(item)
        else:
            runs.append([item])
        joins = regular
    return runs


def _widened_run(run: list[Node], pieces: Mapping[Lexeme, Node]) -> Node:
    if len(run) == 1:
        return _widened(run[0], pieces)
    whole = _whole(Row(tuple(run)), pieces)
    return row(*(_widened(item, pieces) for item in run)) if whole is None else whole


def _whole(node: Node, pieces: Mapping[Lexeme, Node]) -> Lexeme | None:
    spelled = _expression(node)
    if spelled is None or size(spelled) > _LARGEST_WIDENED:
        return None
    inside = [leaf for leaf in leaves(node) if isinstance(leaf, Lexeme)]
    if any(leaf.cut for leaf in inside) or not any(
        leaf in pieces and not isinstance(leaf.expr, Literal) for leaf in inside
    ):
        return None
    return Lexeme(spelled, merged=_MOST_MERGES)


def _replaced(node: Node, pieces: Mapping[Lexeme, Node]) -> Node:
    match node:
        case Lexeme():
            return pieces.get(node, node)
        case Row(items):
            return row(*(_replaced(item, pieces) for item in items))
        case Fork(options):
            return fork(*(_replaced(option, pieces) for option in options))
        case Loop(item, least, most):
            return Loop(_replaced(item, pieces), least, most)
        case _:
            return node


@dataclass
class _Growth:
    """One pass that lets lexemes grow by what follows them."""

    rules: dict[str, Node]
    growing: set[Lexeme]
    before: dict[tuple[Expr, str], str]
    _ends: dict[str, bool] = field(default_factory=dict[str, bool])
    _recursive: dict[str, bool] = field(default_factory=dict[str, bool])

    def tree(self) -> Tree:
        """The rules after the pass, those that are no longer used left out."""
        for name in list(self.rules):
            self.rules[name] = self._grown(self.rules[name])
        return _reachable(self.rules, ["root"])

    def _grown(self, node: Node) -> Node:
        match node:
            case Row(items):
                rest: tuple[Node, ...] = ()
                for item in reversed(items):
                    grown = self._grown(item)
                    rest = (self._joined(grown, rest),) if rest and self._ends_growing(grown) else (grown, *rest)
                return row(*rest)
            case Fork(options):
                return fork(*map(self._grown, options))
            case Loop(item, least, most):
                rotated = self._rotated(item, least, most, ())
                return Loop(self._grown(item), least, most) if rotated is None else rotated
            case _:
                return node

    def _ends_growing(self, node: Node) -> bool:
        """Whether a lexeme that is to grow may come last in the node."""
        match node:
            case Lexeme():
                return node in self.growing
            case Row(items):
                return bool(items) and self._ends_growing(items[-1])
            case Fork(options):
                return any(map(self._ends_growing, options))
            case Loop(item):
                return self._ends_growing(item)
            case Call(name):
                if name not in self._ends:
                    self._ends[name] = False  # a recursive rule cannot be put in the place of its call
                    self._ends[name] = self._ends_growing(self.rules[name]) and not self._is_recursive(name)
                return self._ends[name]
            case Special():
                return False

    def _is_recursive(self, name: str) -> bool:
        """Whether a rule calls itself, however deep; growing does not change that."""
        if name not in self._recursive:
            self._recursive[name] = name in _reachable(self.rules, calls(self.rules[name]))
        return self._recursive[name]

    def _joined(self, node: Node, rest: tuple[Node, ...]) -> Node:
        """The node and what follows it, where its last lexemes grow."""
        if not self._ends_growing(node):
            return row(node, *rest)
        match node:
            case Lexeme():
                return self._longer(node, rest)
            case Row(items):
                return row(*items[:-1], self._joined(items[-1], rest))
            case Fork(options):
                return _factored([self._joined(option, rest) for option in options])
            case Loop(item, least, most):
                rotated = self._rotated(item, least, most, rest)
                if rotated is not None:
                    return rotated
                before = _loop(item, max(least - 1, 0), None if most is None else most - 1)
                once = row(*before, self._joined(item, rest))
                return once if least else fork(once, row(*rest))
            case Call(name):
                return self._joined(self.rules[name], rest)
            case Special():
                return row(node, *rest)

    def _rotated(self, item: Node, least: int, most: int | None, rest: tuple[Node, ...]) -> Node | None:
        """`(x t)+ rest` as `x (t x)* t rest`, where `t` is followed by `x` or by the rest in plain sight."""
        if most == 1 or not (isinstance(item, Row) and len(item.items) > 1 and item.items[-1] in self.growing):
            return None
        *before, last = item.items
        again = _loop(self._joined(last, tuple(before)), max(least - 1, 0), None if most is None else most - 1)
        once = row(*before, *again, self._joined(last, rest))
        return once if least else fork(once, row(*rest))

    def _longer(self, lexeme: Lexeme, rest: tuple[Node, ...]) -> Node:
        """The lexeme with the beginning of what follows it taken in."""
        if not rest:
            return lexeme
        following, *others = rest
        tail = tuple(others)
        match following:
            case Lexeme():
                taken, left = _until_marker(lexeme, following)
                longer = _merged(lexeme, taken)
                return row(longer, *left, *tail) if left or not _is_before_marker(longer) else self._longer(longer, tail)
            case Special():
                return row(lexeme, *rest)
            case Row(items):
                return self._longer(lexeme, (*items, *tail))
            case Call(name) if self._is_recursive(name):
                return row(self._before_rule(lexeme, name) if _runs_on(lexeme.expr) else row(lexeme, following), *tail)
            case Call(name):
                return self._longer(lexeme, (self._inside(name), *tail))
            case Fork(options):
                spelled = _optional_spelling(following)
                if spelled is not None:
                    return self._longer(_merged(lexeme, spelled), tail)
                return _factored([self._longer(lexeme, (option, *tail)) for option in options])
            case Loop(item, least, most):
                spelled = _optional_spelling(following)
                if spelled is not None:
                    return self._longer(_merged(lexeme, spelled), tail)
                rotated = self._rotated(item, least, most, tail)
                if rotated is not None:
                    return self._longer(lexeme, (rotated,))
                again = _loop(item, max(least - 1, 0), None if most is None else most - 1)
                once = self._longer(lexeme, (item, *again, *tail))
                return once if least else fork(once, self._longer(lexeme, tail))

    def _before_rule(self, lexeme: Lexeme, name: str) -> Node:
        """The lexeme and a recursive rule as a rule of its own, which the recursion then comes back to."""
        key = (lexeme.expr, name)
        if self.before.get(key) not in self.rules:
            self.before[key] = new = self._fresh(f"before-{name}")
            self.rules[new] = self._longer(lexeme, (self._inside(name),))
        return Call(self.before[key])

    def _fresh(self, name: str) -> str:
        while name in self.rules:
            name += "-again"
        return name

    def _inside(self, name: str) -> Node:
        """What the rule is made of; the rest of a row becomes a rule, so that it is not written twice."""
        node = self.rules[name]
        if isinstance(node, Row) and len(node.items) > 2:
            rest = self._fresh(f"{name}-rest")
            self.rules[rest] = Row(node.items[1:])
            node = self.rules[name] = Row((node.items[0], Call(rest)))
        return node


def _runs_on(expr: Expr) -> bool:
    """Whether it ends in any number of characters."""
    last = expr.items[-1] if isinstance(expr, Sequence) else expr
    return isinstance(last, Text | Repeat)


def _loop(item: Node, least: int, most: int | None) -> tuple[Node, ...]:
    return () if most == 0 else (Loop(item, least, most),)


def _merged(lexeme: Lexeme, taken: Expr) -> Lexeme:
    return Lexeme(seq(lexeme.expr, taken), lexeme.name, lexeme.merged + 1)


def _factored(options: list[Node]) -> Node:
    """A fork of rows; those that begin with the same lexeme are one row, which forks only where they differ."""
    groups: dict[object, list[tuple[Node, ...]]] = {}
    for option in options:
        for items in map(_items, option.options if isinstance(option, Fork) else (option,)):
            first = items[0] if items else None
            key = (first.expr, first.merged, first.cut) if isinstance(first, Lexeme) else len(groups)
            groups.setdefault(key, []).append(items)
    return fork(*map(_row_of, groups.values()))


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Row) else (node,)


def _row_of(rows: list[tuple[Node, ...]]) -> Node:
    """Rows that begin alike as one; what is the very same node at the end of each is written once as well."""
    if len(rows) == 1:
        return row(*rows[0])
    first, *shortest = min(rows, key=len)
    same = 0
    while same < len(shortest) and all(items[-1 - same] is shortest[-1 - same] for items in rows):
        same += 1
    between = fork(*(row(*items[1 : len(items) - same]) for items in rows))
    return row(first, between, *shortest[len(shortest) - same :])


def _until_marker(lexeme: Lexeme, following: Lexeme) -> tuple[Expr, tuple[Lexeme, ...]]:
    """What a text, or one with a literal behind it, takes of another literal: up to the end of the first marker that
    it must not contain; and what is left."""
    *_, last, begun = (EMPTY, *lexeme.expr.items) if isinstance(lexeme.expr, Sequence) else (EMPTY, lexeme.expr)
    if not isinstance(begun, Literal):
        last, begun = begun, EMPTY
    if not (isinstance(last, Text) and isinstance(following.expr, Literal)):
        return following.expr, ()
    text = begun.text + following.expr.text
    ends = [text.index(marker) + len(marker) for marker in last.without if marker in text]
    end = min(ends, default=0)
    if not len(begun.text) < end < len(text):
        return following.expr, ()
    return Literal(text[len(begun.text) : end]), (Lexeme(Literal(text[end:])),)


def _is_before_marker(lexeme: Lexeme) -> bool:
    """Whether a text has taken a literal that it may contain, so that it is not told by it where to end."""
    match lexeme.expr:
        case Sequence((*_, Text(without), Literal(text))):
            return lexeme.merged < _MOST_MERGES and not any(marker in text for marker in without)
        case _:
            return False


def _optional_spelling(node: Node) -> Expr | None:
    """The node as an expression if it is regular, small and may be empty, so that a lexeme can take it whole."""
    spelled = _expression(node)
    return spelled if spelled is not None and size(spelled) <= 40 and _may_be_empty(node) else None


def _expression(node: Node) -> Expr | None:
    match node:
        case Lexeme(expr):
            return expr
        case Row(items):
            parts = [_expression(item) for item in items]
            return None if None in parts else seq(*(part for part in parts if part is not None))
        case Fork(options):
            parts = [_expression(option) for option in options]
            return None if None in parts else choice(*(part for part in parts if part is not None))
        case Loop(item, least, most):
            part = _expression(item)
            return None if part is None else repeat(part, least, most)
        case _:
            return None


def _may_be_empty(node: Node) -> bool:
    match node:
        case Row(items):
            return all(map(_may_be_empty, items))
        case Fork(options):
            return any(map(_may_be_empty, options))
        case Loop(item, least):
            return not least or _may_be_empty(item)
        case _:
            return False


def _reachable(rules: Mapping[str, Node], names: Iterable[str]) -> dict[str, Node]:
    """The rules that these names lead to, in order of first use."""
    found: dict[str, Node] = {}
    waiting = list(names)[::-1]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rules[name]
            waiting.extend(reversed(list(calls(rules[name]))))
    return found
