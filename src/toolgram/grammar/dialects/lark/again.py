"""Choices of the same rules are one rule: of many tools, those of their calls, wherever a call may stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from toolgram.grammar.dialects.lark.options import forks
from toolgram.grammar.dialects.lark.tree import Call, Fork, Loop, Node, Row, Tree, calls, fork, row
from toolgram.grammar.hashing import found_once
from toolgram.grammar.walk import fresh

_FEWEST = 3  # rules in a choice that becomes one
_Names = tuple[str, ...]


def written_once(tree: Tree) -> Tree:
    """The tree with a rule for each choice of rules that stands in several places."""
    found = Counter(names for node in tree.values() for names in _choices(node))
    rules = dict(tree)
    made: dict[_Names, str] = {}
    for names, times in found.items():
        if times > 1:
            made[names] = fresh("any", rules)
            rules[made[names]] = Fork(tuple(map(Call, names)))
    for name, node in tree.items() if made else ():
        if any(names in made for names in _choices(node)):
            rules[name] = _shorter(node, made)
    return rules


@found_once
def _choices(node: Node) -> tuple[_Names, ...]:
    """The choices of rules in a node."""
    return tuple([names for each in forks(node) if (names := _names_in(each))] if len(calls(node)) >= _FEWEST else [])


def _names_in(node: Fork) -> _Names:
    """The rules that a choice is of, if it is of several and of nothing else."""
    names = tuple(option.name for option in node.options if isinstance(option, Call) and not option.among)
    return names if len(names) == len(node.options) >= _FEWEST else ()


def _shorter(node: Node, made: Mapping[_Names, str]) -> Node:
    """The node with calls of the rules that were made."""
    if len(calls(node)) < _FEWEST:
        return node
    match node:
        case Row(items):
            return row(*(_shorter(item, made) for item in items))
        case Fork(options):
            name = made.get(_names_in(node))
            return fork(*(_shorter(option, made) for option in options)) if name is None else Call(name)
        case Loop(item, least, most):
            return Loop(_shorter(item, made), least, most)
        case _:
            return node
