"""What is taken of members, said where Lark can say it: at the end of an option of a rule."""

from __future__ import annotations

from toolgram.grammar.dialects.lark.tree import (
    Fork,
    Loop,
    Node,
    Only,
    Tree,
    call_of,
    fork,
    is_among,
    items_of,
    leaves,
    row,
)
from toolgram.grammar.walk import fresh


def apart(tree: Tree) -> Tree:
    """The tree with each `Only` at the beginning of an option of a rule: what has one elsewhere becomes a rule."""
    rules = dict(tree)
    waiting = [name for name, node in tree.items() if is_among(node)]

    def named(node: Node, rule: str) -> Node:
        name = fresh(f"{rule}-among", rules)
        rules[name] = node
        waiting.append(name)
        return call_of(name, node)

    def option(node: Node, rule: str) -> Node:
        first, *others = items_of(node) or (row(),)
        said = [first]
        for at, item in enumerate(others):
            if isinstance(item, Only):
                return row(*said, named(row(*others[at:]), rule))
            said.append(item)
        return row(*(named(each, rule) if isinstance(each, Fork | Loop) and _has_only(each) else each for each in said))

    for rule in waiting:
        node = rules[rule]
        rules[rule] = fork(*(option(each, rule) for each in (node.options if isinstance(node, Fork) else (node,))))
    return rules


def _has_only(node: Node) -> bool:
    return any(isinstance(leaf, Only) for leaf in leaves(node))
