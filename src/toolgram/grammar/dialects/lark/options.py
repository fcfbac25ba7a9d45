"""The options of forks: which rules are such, and what they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, takewhile

from toolgram.caching import weighed
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Lexeme,
    Loop,
    Node,
    Only,
    Row,
    Special,
    Tree,
    begins_anew,
    calls,
    items_of,
    leaves,
    row,
)
from toolgram.grammar.hashing import HashedOnce, found_once
from toolgram.grammar.ir import Literal

_WEIGHT = 300  # bytes that are remembered with a row, for each of its nodes


def options_of(tree: Tree) -> tuple[list[str], list[str]]:
    """The rules outside of options, and the options: rules that only forks call, or rows that are literals but for that
    call, at their end; two at least, which lead to none of them."""
    leads = _Leads(tree)
    entered: set[str] = set()  # options that are no good
    while True:
        outside: dict[str, None] = {}
        options: dict[str, None] = {}
        waiting = ["root"]
        while waiting:
            name = waiting.pop()
            if name not in outside:
                outside[name] = None
                several, others = called(tree[name])
                options |= dict.fromkeys(several)
                waiting += (*others, *entered.intersection(several))
        left = [name for name in options if name not in outside]
        inner = set(chain.from_iterable(calls(node) for name, node in tree.items() if name not in outside))
        apart = inner.isdisjoint(left) and inner.isdisjoint(outside)
        leading = set[str]() if apart else leads.to_any(left)
        if not leading:
            return list(outside), left if len(left) > 1 else []
        entered |= leading


@dataclass(frozen=True)
class _Leads:
    """Which options of a tree lead to others of them."""

    tree: Tree

    def to_any(self, options: Collection[str]) -> set[str]:
        """Those of the options that lead to any of them."""
        found: set[str] = set()
        waiting = list(options)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.users.get(name, ())
        return {name for name in options if not found.isdisjoint(self.inner(name))}

    @cached_property
    def users(self) -> Mapping[str, list[str]]:
        """The rules that call each rule."""
        users: dict[str, list[str]] = {}
        for name, node in self.tree.items():
            for used in calls(node):
                users.setdefault(used, []).append(name)
        return users

    def inner(self, option: str) -> Iterator[str]:
        """The rules that are called by what an option is made of."""
        return (used for item in made_of(self.tree, option) for used in calls(item))


def called(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules that a node calls as options of forks, or after literals alone, and the others."""
    return _called_by(node) if isinstance(node, HashedOnce) else ((), calls(node))


@found_once
def _called_by(node: Row | Fork | Loop) -> tuple[tuple[str, ...], tuple[str, ...]]:
    options = [option.name for each in forks(node) for option in each.options if isinstance(option, Call)]
    match node:
        case Row((*before, Call(name))) if all(map(_is_said, before)):
            options.append(name)
        case _:
            pass
    left = Counter(calls(node))
    left.subtract(options)
    return tuple(options), tuple(left.elements())


def forks(node: Node) -> Iterator[Fork]:
    """All forks in a node."""
    waiting = [node]
    while waiting:
        match waiting.pop():
            case Fork(options) as fork:
                yield fork
                waiting += options[::-1]
            case Row(items):
                waiting += items[::-1]
            case Loop(item):
                waiting.append(item)
            case _:
                pass


def _is_said(node: Node) -> bool:
    """Whether there are literals alone in a node."""
    return all(map(is_literal, leaves(node)))


def made_of(tree: Tree, name: str) -> tuple[Node, ...]:
    """What a rule is made of; if that is literals and another rule, also what that is made of."""
    items, seen = items_of(tree[name]), {name}
    while items and isinstance(last := items[-1], Call) and last.name not in seen and _only_literals(items[:-1]):
        if begins_anew(last, tree):
            break
        seen.add(last.name)
        items = (*items[:-1], *items_of(tree[last.name]))
    return items


def _only_literals(items: tuple[Node, ...]) -> bool:
    return literals_before(items) == len(items)


def literals_before(items: Iterable[Node]) -> int:
    """How many literals a row begins with."""
    return len(list(takewhile(is_literal, items)))


def literals_of(node: Node) -> tuple[Node, ...]:
    """The literals that a node begins with."""
    return tuple(takewhile(is_literal, items_of(node)))


def common(begins: Iterable[tuple[Node, ...]]) -> int:
    """How many nodes are the same at the beginning of all rows."""
    columns = zip(*(map(spelling_of, begin) for begin in begins), strict=False)
    return len(list(takewhile(lambda column: len(set(column)) == 1, columns)))


def is_literal(node: Node) -> bool:
    return isinstance(node, Lexeme) and isinstance(node.expr, Literal)


def spelling_of(node: Node) -> Hashable:
    """What is equal for lexemes, and for what is no row, fork or loop, that are the same but for their places."""
    match node:
        case Lexeme():
            return node.expr, node.tail, node.bare, node.merged, node.cut
        case Call(name, among):
            return Call, name, among
        case Only(condition, takes):
            return Only, condition, takes
        case Special(number):
            return Special, number
        case _:
            return node


def _weight(*items: Node) -> int:
    return _WEIGHT * len(items)


@weighed(_weight)
def row_again(*items: Node) -> Node:
    """A row; the very same one of the same nodes, so that what was found of it is known."""
    return row(*items)
