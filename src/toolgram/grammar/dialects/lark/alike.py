"""What all options of a fork begin with, written once before it: of many calls, what stands before the names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import takewhile

from toolgram.grammar.dialects.lark.options import (
    common,
    forks,
    literals_before,
    made_of,
    options_of,
    row_again,
)
from toolgram.grammar.dialects.lark.tree import Call, Fork, Lexeme, Loop, Node, Row, Tree, fork, items_of, row


def opened_once(tree: Tree) -> Tree:
    """The tree with what the options of a fork begin with written once, before the fork."""
    outside, options = options_of(tree)
    same = _begin_alike(tree, (_calls_among(node, options) for name in outside for node in forks(tree[name])))
    if not same:
        return tree
    shorter = {name: row_again(*_left(tree, name, count)) for name, count in same.items()}
    rests = {name: rest for name, rest in shorter.items() if isinstance(rest, Call)}
    return {**tree, **shorter, **{name: _opened(tree[name], tree, same, rests) for name in outside}}


def _begin_alike(tree: Tree, forks: Iterable[set[str]]) -> dict[str, int]:
    """How many lexemes are the same at the beginning of all options that are in the same forks, if there are any.

    At least one is left to each of them, or the rule that follows them all.
    """
    groups: dict[str, set[str]] = {}  # by each name that is in one
    for names in forks:
        group = names.union(*(groups[name] for name in names if name in groups))
        groups |= dict.fromkeys(group, group)
    found: dict[str, int] = {}
    for group in {id(group): group for group in groups.values()}.values():
        begins = [_shareable(tree, name) for name in group]
        if len(group) > 1 and (count := common(begins)):
            found |= dict.fromkeys(group, count)
    return found


def _calls_among(node: Fork, names: Collection[str]) -> set[str]:
    return {option.name for option in node.options if isinstance(option, Call) and option.name in names}


def _left(tree: Tree, name: str, count: int) -> tuple[Node, ...]:
    """What is left of a rule without so many lexemes; a rule that it ends with stays one, where it can."""
    items = items_of(tree[name])
    return (items if count < len(items) else made_of(tree, name))[count:]


def _shareable(tree: Tree, name: str) -> tuple[Node, ...]:
    """The lexemes that an option may have in common with others: literals, or the id of a call among them."""
    own, items = items_of(tree[name]), made_of(tree, name)
    ends_in_rule = isinstance(own[-1], Call) and literals_before(own) == len(own) - 1
    begin = tuple(takewhile(lambda item: isinstance(item, Lexeme), items))
    return items[: max(len(begin) - 1, len(own) - 1 if ends_in_rule else 0)]


def _opened(node: Node, tree: Tree, same: Mapping[str, int], rests: Mapping[str, Call]) -> Node:
    """A node with what the options of its forks begin with before these; options that are no rules may begin so too.

    `rests`: options of which no more is left than another rule.
    """
    match node:
        case Row(items):
            return row(*(_opened(item, tree, same, rests) for item in items))
        case Loop(item, least, most):
            return Loop(_opened(item, tree, same, rests), least, most)
        case Fork(options):
            first = next((one.name for one in options if isinstance(one, Call) and one.name in same), "")
            if not first:
                return fork(*(_opened(option, tree, same, rests) for option in options))
            begin = made_of(tree, first)[: same[first]]
            alike: list[Node] = []
            others: list[Node] = []
            for option in options:
                if isinstance(option, Call) and option.name in same:
                    alike.append(replace(rests[option.name]) if option.name in rests else option)
                elif common([begin, items_of(option)]) == len(begin):
                    alike.append(row(*items_of(option)[len(begin) :]))
                else:
                    others.append(_opened(option, tree, same, rests))
            once = (replace(lexeme) for lexeme in begin if isinstance(lexeme, Lexeme))
            return fork(row(*once, fork(*alike)), *others)
        case _:
            return node
