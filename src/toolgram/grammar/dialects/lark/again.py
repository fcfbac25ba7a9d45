"""Choices of the same rules are one rule: of many tools, those of their calls, wherever a call may stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import is_

from toolgram.grammar.dialects.lark.options import forks
from toolgram.grammar.dialects.lark.tree import Call, Fork, Loop, Node, Row, Tree, calls, fork, row
from toolgram.grammar.walk import fresh

_FEWEST = 3  # rules in a choice that becomes one
_Names = tuple[str, ...]


def written_once(tree: Tree) -> Tree:
    """The tree with a rule for each choice of rules that stands in several places."""
    large = {name: node for name, node in tree.items() if len(calls(node)) >= _FEWEST}
    found = Counter(names for node in large.values() for each in forks(node) if (names := _names_in(each)))
    rules = dict(tree)
    made: dict[_Names, str] = {}
    for names, times in found.items():
        if times > 1:
            made[names] = fresh("any", rules)
            rules[made[names]] = Fork(tuple(map(Call, names)))
    return rules | {name: _shorter(node, made) for name, node in large.items()} if made else tree


def _names_in(node: Fork) -> _Names:
    """The rules that a choice is of, if it is of several and of nothing else."""
    names = tuple(option.name for option in node.options if isinstance(option, Call) and not option.among)
    return names if len(names) == len(node.options) >= _FEWEST else ()


def _shorter(node: Node, made: Mapping[_Names, str]) -> Node:
    """The node with calls of the rules that were made; itself, of which much may be known, where there are none."""
    if len(calls(node)) < _FEWEST:
        return node
    match node:
        case Row(items):
            shorter = [_shorter(item, made) for item in items]
            return node if all(map(is_, shorter, items)) else row(*shorter)
        case Fork(options):
            if (name := made.get(_names_in(node))) is not None:
                return Call(name)
            shorter = [_shorter(option, made) for option in options]
            return node if all(map(is_, shorter, options)) else fork(*shorter)
        case Loop(item, least, most):
            inner = _shorter(item, made)
            return node if inner is item else Loop(inner, least, most)
        case _:
            return node
