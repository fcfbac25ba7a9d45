"""The options of forks, each looked at by itself: in the grammar of many tools, the calls of each of them.

What all options begin with is written once, before the fork. Then each begins with literals of its own, the name of a
tool among them, and a lexer that has read these is in that option alone: what is inside of it is in the way of nothing
outside. So it is looked at once, whichever grammars it is in, and sealed: the rest of a grammar is looked at as if
nobody could see inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from typing import NamedTuple

from toolgram.caching import TOGETHER, weighed
from toolgram.grammar.dialects.lark.lexing.crowds import first_of_safe
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Lexeme,
    Loop,
    Node,
    Row,
    Sealed,
    Special,
    Tree,
    calls,
    fork,
    items_of,
    leaves,
    lexemes,
    lexemes_in,
    reachable,
    row,
)
from toolgram.grammar.hashing import HashedOnce, found_once
from toolgram.grammar.ir import NOTHING, CharSet, Literal, Rules, not_chars
from toolgram.grammar.walk import fresh, names_in

_WEIGHT = 300  # bytes that are remembered with a part, for each of its rules and words


class Part(NamedTuple):
    """What follows the literals that an option begins with, and the rules that it needs.

    `known_by` is the same for what is the same in different grammars.
    """

    inside: Node
    rules: Tree
    known_by: tuple[Hashable, ...]


def opened_once(tree: Tree) -> Tree:
    """The tree with what the options of a fork begin with written once, before the fork."""
    outside, options = _options(tree)
    same = _begin_alike(tree, (_calls_among(node, options) for name in outside for node in _forks(tree[name])))
    if not same:
        return tree
    shorter = {name: _row_again(*_items(tree, name)[count:]) for name, count in same.items()}
    return {**tree, **shorter, **{name: _opened(tree[name], tree, same) for name in outside}}


def named(tree: Tree) -> tuple[Tree, frozenset[str]]:
    """The tree with rules for the options that are written in a fork itself, as those of small calls are, which
    `unsealed` puts back; and their names."""
    rules = dict(tree)
    made: set[str] = set()

    def rule_of(option: Node) -> Node:
        made.add(name := fresh(f"{calls(option)[0]}-option", rules))
        rules[name] = option
        return Call(name)

    def changed(node: Node) -> Node:
        match node:
            case Row(items):
                return row(*map(changed, items))
            case Fork(options):
                written = [option for option in options if _is_written(option)]
                names = {id(option): rule_of(option) for option in written} if len(written) > 1 else {}
                return fork(*(names.get(id(option)) or changed(option) for option in options))
            case Loop(item, least, most):
                return Loop(changed(item), least, most)
            case _:
                return node

    waiting, seen = ["root"], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            if any(map(_is_written, chain.from_iterable(each.options for each in _forks(rules[name])))):
                rules[name] = changed(rules[name])
            waiting += _called(rules[name])[1]
    return rules, frozenset(made)


def _is_written(option: Node) -> bool:
    """Whether an option is no rule, but begins with a literal and leads to one."""
    return isinstance(option, Row) and _begin(option.items) > 0 and bool(calls(option))


def sealed(tree: Tree, words: Rules, spelled: Rules) -> tuple[Tree, dict[str, Part]]:
    """The tree with its options sealed that are safe inside, and these by the names of their rules.

    None are where they are but a small part of it. `spelled` are the words as the lexer has them. Raises TooLarge where
    looking at them takes too much work.
    """
    options = {name: _items(tree, name) for name in _options(tree)[1]}
    begins = {name: items[: _begin(items)] for name, items in options.items()}
    alike = Counter(tuple(map(_spelled, begin)) for begin in begins.values())
    parts = {
        name: _part(tree, options[name][len(begin) :], words)
        for name, begin in begins.items()
        if len(begin) < len(options[name]) and alike[tuple(map(_spelled, begin))] == 1
    }
    covered = set(parts).union(*(part.rules for part in parts.values()))
    if 2 * len(covered) < len(tree):  # too little to be worth it
        return tree, {}
    safe = _safe(parts, spelled)
    stubs = {name: row(*begins[name], Sealed(name, first)) for name, first in safe.items()}
    return reachable({**tree, **stubs}, ["root"]), {name: parts[name] for name in safe}


def unsealed(tree: Tree, parts: Mapping[str, Part], made: Collection[str]) -> Tree:
    """The tree with all that is sealed put in, what stands in several places as a rule; and rules that were `made` for
    options where these were."""
    places = Counter(leaf.name for node in tree.values() for leaf in leaves(node) if isinstance(leaf, Sealed))
    rules = dict(tree)
    shared = {name: fresh(f"{name}-inside", rules) for name, count in places.items() if count > 1}
    rules |= {new: parts[name].inside for name, new in shared.items()}

    def put_in(node: Node) -> Node:
        match node:
            case Sealed(name, _):
                return Call(shared[name]) if name in shared else parts[name].inside
            case Call(name) if name in made:
                return put_in(tree[name])
            case Row(items) if changes(node):
                return _row_again(*map(put_in, items))
            case Fork(options) if changes(node):
                return fork(*map(put_in, options))
            case Loop(item, least, most):
                return Loop(put_in(item), least, most)
            case _:
                return node

    def changes(node: Node) -> bool:
        return any(isinstance(leaf, Sealed) or (isinstance(leaf, Call) and leaf.name in made) for leaf in leaves(node))

    for part in parts.values():
        rules |= part.rules
    return reachable({**rules, **{name: put_in(node) for name, node in tree.items()}}, ["root"])


def _options(tree: Tree) -> tuple[list[str], list[str]]:
    """The rules outside of options, and the options: rules that only forks call, two at least, and that lead to none
    of them."""
    entered: set[str] = set()  # options that are no good
    while True:
        outside: dict[str, None] = {}
        options: dict[str, None] = {}
        waiting = ["root"]
        while waiting:
            name = waiting.pop()
            if name not in outside:
                outside[name] = None
                several, others = _called(tree[name])
                options |= dict.fromkeys(several)
                waiting += (*others, *entered.intersection(several))
        left = [name for name in options if name not in outside]
        inside = reachable(tree, [inner for name in left for item in _items(tree, name) for inner in calls(item)])
        if inside.keys().isdisjoint(left):
            return list(outside), left if len(left) > 1 else []
        entered.update(inside.keys() & left)


def _called(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules that a node calls as options of forks, and the others."""
    return _called_by(node) if isinstance(node, HashedOnce) else ((), calls(node))


@found_once
def _called_by(node: Row | Fork | Loop) -> tuple[tuple[str, ...], tuple[str, ...]]:
    options = [option.name for each in _forks(node) for option in each.options if isinstance(option, Call)]
    left = Counter(calls(node))
    left.subtract(options)
    return tuple(options), tuple(left.elements())


def _forks(node: Node) -> tuple[Fork, ...]:
    """All forks in a node."""
    return _forks_in(node) if isinstance(node, HashedOnce) else ()


@found_once
def _forks_in(node: Row | Fork | Loop) -> tuple[Fork, ...]:
    match node:
        case Fork(options):
            return (node, *chain.from_iterable(map(_forks, options)))
        case Row(items):
            return tuple(chain.from_iterable(map(_forks, items)))
        case Loop(item):
            return _forks(item)


def _calls_among(node: Fork, names: Collection[str]) -> set[str]:
    return {option.name for option in node.options if isinstance(option, Call) and option.name in names}


def _items(tree: Tree, name: str) -> tuple[Node, ...]:
    """What a rule is made of; if that is literals and another rule, also what that is made of."""
    items, seen = items_of(tree[name]), {name}
    while items and isinstance(last := items[-1], Call) and last.name not in seen and _begin(items) == len(items) - 1:
        seen.add(last.name)
        items = (*items[:-1], *items_of(tree[last.name]))
    return items


def _begin(items: Iterable[Node]) -> int:
    """How many literals a row begins with."""
    return len(list(takewhile(_is_literal, items)))


def _is_literal(node: Node) -> bool:
    return isinstance(node, Lexeme) and isinstance(node.expr, Literal)


def _begin_alike(tree: Tree, forks: Iterable[set[str]]) -> dict[str, int]:
    """How many literals are the same at the beginning of all options that are in the same forks, if there are any.

    At least one is left to each of them.
    """
    groups: dict[str, set[str]] = {}  # by each name that is in one
    for names in forks:
        group = names.union(*(groups[name] for name in names if name in groups))
        groups |= dict.fromkeys(group, group)
    found: dict[str, int] = {}
    for group in {id(group): group for group in groups.values()}.values():
        rows = [_items(tree, name) for name in group]
        begins = [items[: max(_begin(items) - 1, 0)] for items in rows]
        if len(group) > 1 and (count := _common(begins)):
            found |= dict.fromkeys(group, count)
    return found


def _common(begins: Collection[tuple[Node, ...]]) -> int:
    """How many literals are the same at the beginning of all."""
    columns = zip(*(map(_spelled, begin) for begin in begins), strict=False)
    return len(list(takewhile(lambda column: len(set(column)) == 1, columns)))


def _spelled(node: Node) -> Hashable:
    """What is equal for lexemes, and for what is no row, fork or loop, that are the same but for their places."""
    match node:
        case Lexeme():
            return node.expr, node.tail, node.bare, node.merged, node.cut
        case Call(name):
            return Call, name
        case Special(number):
            return Special, number
        case _:
            return node


def _opened(node: Node, tree: Tree, same: Mapping[str, int]) -> Node:
    """A node with what the options of its forks begin with before these; options that are no rules may begin so too."""
    match node:
        case Row(items):
            return row(*(_opened(item, tree, same) for item in items))
        case Loop(item, least, most):
            return Loop(_opened(item, tree, same), least, most)
        case Fork(options):
            first = next((one.name for one in options if isinstance(one, Call) and one.name in same), "")
            if not first:
                return fork(*(_opened(option, tree, same) for option in options))
            begin = _items(tree, first)[: same[first]]
            alike: list[Node] = []
            others: list[Node] = []
            for option in options:
                if isinstance(option, Call) and option.name in same:
                    alike.append(option)
                elif _common([begin, items_of(option)]) == len(begin):
                    alike.append(row(*items_of(option)[len(begin) :]))
                else:
                    others.append(_opened(option, tree, same))
            once = (replace(lexeme) for lexeme in begin if isinstance(lexeme, Lexeme))
            return fork(row(*once, fork(*alike)), *others)
        case _:
            return node


def _part(tree: Tree, items: tuple[Node, ...], words: Rules) -> Part:
    inner = _row_again(*items)
    rules = reachable(tree, calls(inner))
    needed: dict[str, None] = {}
    waiting = [name for node in (*items, *rules.values()) for name in _words_in(node)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = None
            waiting += names_in(words[name])
    return Part(inner, rules, (*map(_content, items), *rules.items(), *((name, words[name]) for name in needed)))


def _weight(*items: Node) -> int:
    return _WEIGHT * len(items)


@weighed(_weight)
def _row_again(*items: Node) -> Node:
    """A row; the very same one of the same nodes, so that what was found of it is known."""
    return row(*items)


def _content(node: Node) -> Hashable:
    """What is equal for nodes that are made alike."""
    return _content_of(node) if isinstance(node, HashedOnce) else _spelled(node)


@found_once
def _content_of(node: Row | Fork | Loop) -> Hashable:
    match node:
        case Row(parts) | Fork(parts):
            return type(node), *map(_content, parts)
        case Loop(item, least, most):
            return _content(item), least, most


def _words_in(node: Node) -> tuple[str, ...]:
    """The words that the lexemes of a node refer to."""
    if isinstance(node, HashedOnce):
        return _words_of(node)
    return names_in(node.expr) if isinstance(node, Lexeme) else ()


@found_once
def _words_of(node: Row | Fork | Loop) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for lexeme in lexemes_in(node) for name in names_in(lexeme.expr)))


def _safe(parts: Mapping[str, Part], spelled: Rules) -> dict[str, CharSet]:
    """Those of the parts inside of which no lexeme is in the way of another, and what each may begin with."""
    known = {name: TOGETHER.recall(_safe, part.known_by) for name, part in parts.items()}
    new = {name: parts[name] for name, found in known.items() if found is None}
    if new:
        looked = _looked_at(new, spelled)
        for name, part in new.items():
            known[name] = looked.get(name, NOTHING)  # which is no set of characters: that it is not safe is known, too
            TOGETHER.note(_safe, part.known_by, known[name], _WEIGHT * len(part.known_by))
    return {name: first for name, first in known.items() if isinstance(first, CharSet)}


vars(_safe)["cache_clear"] = partial(TOGETHER.clear, _safe)  # as lru_cache names it


def _looked_at(parts: Mapping[str, Part], spelled: Rules) -> dict[str, CharSet]:
    """The same, of parts that are not known."""
    trees = {name: {name: part.inside, **part.rules} for name, part in parts.items()}
    together: dict[str, Node] = {}
    for tree in trees.values():
        together |= tree
    lexicon = Lexicon(lexemes(together), spelled, inside=True)
    firsts = {name: first_of_safe(tree, name, lexicon) for name, tree in trees.items()}
    return {name: lexicon.alphabet.set_of(first) or not_chars() for name, first in firsts.items() if first}
