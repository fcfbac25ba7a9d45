"""What is taken of members, said where Lark can say it: at the end of an option of a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from toolgram.grammar.components import components
from toolgram.grammar.dialects.lark.options import common, literals_of
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Loop,
    Node,
    Only,
    Row,
    Tree,
    call_of,
    calls,
    fork,
    is_among,
    items_of,
    leaves,
    row,
)
from toolgram.grammar.hashing import found_once
from toolgram.grammar.ir import Expr, Literal, Members
from toolgram.grammar.walk import fresh


def any_order(expr: Members, name: str, begun: str, more: str, lowered: Callable[[Expr], Node]) -> dict[str, Node]:
    """Members as rules: one of them; what follows the literals that all begin with, if they do; and what follows one.
    The numbers of those that are taken are known."""
    items = [lowered(item) for item in expr.items]
    alike = common(map(literals_of, items))
    options: list[Node] = []
    before: list[str] = []  # what must be true before
    free: list[str] = []  # and what else at the end
    for index, (item, times) in enumerate(zip(items, expr.occurs, strict=True)):
        conditions = [*before, *([] if times == "*" else [f"bit_clear({index})"])]
        taken = Only(_all_of(conditions), None if times == "*" else index)
        options.append(row(taken, *items_of(item)[alike:], Call(more, among=True)))
        if times == "1":
            before = [f"bit_set({index})"]
        elif times == "!":
            free.append(f"bit_set({index})")
    ends = [*before, *free]
    left = [] if "*" in expr.occurs else [Only(f"ne([0:{len(expr.items)}], {2 ** len(expr.items) - 1})")]
    between = [lowered(Literal(expr.between))] if expr.between else []
    following = row(*left, *between, Call(name, among=True))
    one = fork(*options)
    first = {name: row(*items_of(items[0])[:alike], Call(begun, among=True)), begun: one} if alike else {name: one}
    return {**first, more: fork(row(*([Only(_all_of(ends))] if ends else [])), following)}


def _all_of(conditions: list[str]) -> str:
    """Conditions of llguidance as one; each `and` of it takes two."""
    *others, last = conditions or [""]
    return f"and({_all_of(others)}, {last})" if others else last


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

    for rule in waiting:  # which grows
        node = rules[rule]
        if _is_apart(node):
            continue
        options = node.options if isinstance(node, Fork) else (node,)
        rules[rule] = fork(*(option(each, rule) for each in options))
    return rules


@found_once
def _is_apart(node: Node) -> bool:
    """Whether each `Only` in a node is at the beginning of an option of it."""
    options = map(items_of, node.options if isinstance(node, Fork) else (node,))
    later = (items[1:] if items and isinstance(items[0], Only) else items for items in options)
    return not any(_has_only(item) for items in later for item in items)


def _has_only(node: Node) -> bool:
    return any(isinstance(leaf, Only) for leaf in leaves(node))


def entered(tree: Tree) -> Tree:
    """The tree with a rule that begins members anew where these are inside of themselves and may be read from elsewhere
    first: llguidance 1.9 stumbles over a rule that is begun anew while it is being read."""
    among = {name for name, node in tree.items() if is_among(node)}
    begun = [(name, called) for name, node in tree.items() for called in _anew(node) if called in among]
    ways = Counter([inner for _, called in begun for inner in _going_on(tree, called)])
    if not any(ways[called] > 1 for _, called in begun):
        return tree
    groups = components({name: calls(node) for name, node in tree.items()})
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    inside = dict.fromkeys(called for name, called in begun if group_of[called] == group_of[name] and ways[called] > 1)
    rules = dict(tree)
    entries: dict[str, str] = {}
    for name in inside:
        entries[name] = fresh(f"{name}-anew", rules)
        rules[entries[name]] = Call(name)
    return rules | {name: _entering(node, entries) for name, node in tree.items()}


@found_once
def _among(node: Node) -> tuple[str, ...]:
    """The rules that a node calls with what is taken of members."""
    return tuple([leaf.name for leaf in leaves(node) if isinstance(leaf, Call) and leaf.among])


@found_once
def _anew(node: Node) -> tuple[str, ...]:
    """Those that it calls without."""
    return tuple([leaf.name for leaf in leaves(node) if isinstance(leaf, Call) and not leaf.among])


def _going_on(tree: Tree, name: str) -> set[str]:
    """The rule, and those that it leads to with what is taken."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _among(tree[name])
    return found


def _entering(node: Node, entries: Mapping[str, str]) -> Node:
    if entries.keys().isdisjoint(calls(node)):
        return node
    match node:
        case Call(name, among):
            return node if among else Call(entries[name])
        case Row(items):
            return row(*(_entering(item, entries) for item in items))
        case Fork(options):
            return fork(*(_entering(option, entries) for option in options))
        case Loop(item, least, most):
            return Loop(_entering(item, entries), least, most)
        case _:
            return node
