"""The options of forks, each looked at by itself: in the grammar of many tools, the calls of each of them.

What all options begin with is written once, before the fork (`alike`). Then each begins with literals of its own, the
name of a tool among them, and a lexer that has read these is in that option alone: what is inside of it is in the way
of nothing outside. So it is looked at once, whichever grammars it is in, and sealed: the rest of a grammar is looked at
as if nobody could see inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import NamedTuple

from toolgram.caching import TOGETHER, remembers
from toolgram.grammar import ir
from toolgram.grammar.dialects.lark.beginnings import Option, option_of
from toolgram.grammar.dialects.lark.lexing.crowds import first_of_safe
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.lexing.values import values_of_each
from toolgram.grammar.dialects.lark.options import (
    called,
    forks,
    literals_before,
    options_of,
    row_again,
    spelling_of,
)
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Lexeme,
    Loop,
    Node,
    Row,
    Sealed,
    Tree,
    call_of,
    calls,
    fork,
    is_among,
    is_empty,
    items_of,
    leaves,
    lexemes,
    lexemes_in,
    reachable,
    row,
    together,
)
from toolgram.grammar.hashing import HashedOnce, facts_of, found_once, kept_with
from toolgram.grammar.ir import NOTHING, START, CharSet, Expr, Rules, Text, not_chars
from toolgram.grammar.walk import fresh, names_in

_WEIGHT = 300  # bytes that are remembered with a part, for each of its rules and words


@dataclass(eq=False, slots=True)
class Needed:
    """The rules and the words that a part needs, and what it begins with, once that is known.

    `known_by` is the same for what is the same in different grammars.
    """

    rules: Tree
    words: Rules
    known_by: tuple[Hashable, ...]
    first: Expr | None = None


class Part(NamedTuple):
    """What follows the literals that an option begins with, and what it needs."""

    inside: Node
    needed: Needed


def named(tree: Tree) -> tuple[Tree, frozenset[str]]:
    """The tree with rules for the options that are written in a fork itself, as those of small calls are, which
    `unsealed` puts back; and their names."""
    naming = _Naming(dict(tree), set())
    rules = naming.rules
    waiting, seen = ["root"], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            if any(map(_is_written, chain.from_iterable(each.options for each in forks(rules[name])))):
                rules[name] = naming.changed(rules[name])
            waiting += called(rules[name])[1]
    return rules, frozenset(naming.made)


class _Naming(NamedTuple):
    """Adds to the rules those that are `made` for options."""

    rules: dict[str, Node]
    made: set[str]

    def changed(self, node: Node) -> Node:
        """The node with calls of these."""
        match node:
            case Row(items):
                return row(*map(self.changed, items))
            case Fork(options):
                written = [option for option in options if _is_written(option)]
                names = {id(option): self._rule_of(option) for option in written} if len(written) > 1 else {}
                return fork(*(names.get(id(option)) or self.changed(option) for option in options))
            case Loop(item, least, most):
                return Loop(self.changed(item), least, most)
            case _:
                return node

    def _rule_of(self, option: Node) -> Node:
        """A call of a rule for the option.

        What comes after the rule that it leads to is none of it, if that leads to rules too: where any other message
        may follow a call, all of them would be looked at with each tool.
        """
        items = items_of(option)
        end = literals_before(items) + 1
        splits = isinstance(items[end - 1], Call) and any(map(calls, items[end:]))
        head = row(*items[:end]) if splits else option
        self.made.add(name := fresh(f"{calls(head)[0]}-option", self.rules))
        self.rules[name] = head
        called = call_of(name, head)
        return row(Fork((called,)), *items[end:]) if splits else called


def _is_written(option: Node) -> bool:
    """Whether an option is no rule, but begins with a literal and leads to one."""
    return isinstance(option, Row) and literals_before(option.items) > 0 and bool(calls(option))


def sealed(tree: Tree, made: Collection[str], words: Rules, spelled: Rules) -> tuple[Tree, dict[str, Part]]:
    """The tree with its options sealed that are safe inside, and these by the names of their rules.

    None are where they are but a small part of it. Rules that were `made` for others are back where these were.
    `spelled` are the words as the lexer has them. Raises TooLarge where looking at them takes too much work.
    """
    outside, names = options_of(tree)
    told = sorted(text for name in outside for text in _not_first(tree[name]))
    options = {name: option_of(tree, name, told) for name in names if not is_among(tree[name])}
    alike = Counter(text for option in options.values() for text in option.texts)
    parts = {
        name: _part(tree, option.inside, words)
        for name, option in options.items()
        if not is_empty(option.inside) and all(alike[text] == 1 for text in option.texts)
    }
    covered = set(parts).union(*(part.needed.rules for part in parts.values()))
    if 2 * len(covered) < len(tree):  # too little to be worth it
        return tree, {}
    safe = _safe(parts, spelled)
    stubs = {name: kept_with(tree[name], Option.sealed, options[name], name, first) for name, first in safe.items()}
    return unsealed({**tree, **stubs}, {}, set(made).difference(safe)), {name: parts[name] for name in safe}


def unsealed(tree: Tree, parts: Mapping[str, Part], made: Collection[str]) -> Tree:
    """The tree with all that is sealed put in, what stands in several places as a rule; and rules that were `made` for
    options where these were."""
    if not parts and not made:
        return reachable(tree, ["root"])
    places = Counter(name for node in tree.values() for name in _sealed_in(node) if name in parts)
    rules = dict(tree)
    shared = {name: fresh(f"{name}-inside", rules) for name, count in places.items() if count > 1}
    rules |= {new: parts[name].inside for name, new in shared.items()}
    putting = _Putting(tree, parts, made, shared)
    for part in parts.values():
        rules |= part.needed.rules
    return reachable({**rules, **{name: putting.into(node) for name, node in tree.items()}}, ["root"])


class _Putting(NamedTuple):
    """What is put in: what is sealed of parts, some of it `shared` by a rule so named; and rules that were `made`."""

    tree: Tree
    parts: Mapping[str, Part]
    made: Collection[str]
    shared: Mapping[str, str]

    def into(self, node: Node) -> Node:
        """The node with it."""
        match node:
            case Sealed(name, _) if name in self.parts:
                inside = self.parts[name].inside
                return call_of(self.shared[name], inside) if name in self.shared else inside
            case Call(name) if name in self.made:
                return self.into(self.tree[name])
            case _ if not self._changes(node):
                return node
            case Row(items):
                return self._into_row(node, items)
            case Fork(options):
                return fork(*map(self.into, options))
            case Loop(item, least, most):
                return Loop(self.into(item), least, most)
            case _:
                return node

    def _into_row(self, node: Row, items: tuple[Node, ...]) -> Node:
        """A row with it; the very same one as before, where no more is put in than what is sealed of an option."""
        match _sealed_in(node):
            case [name] if name not in self.shared and not self._calls_made(node):
                facts, inside = facts_of(node), self.parts[name].inside
                known: tuple[Node, Node] | None = facts.get(_Putting)
                if known is None or known[0] is not inside:
                    facts[_Putting] = known = inside, row_again(*map(self.into, items))
                return known[1]
            case _:
                return row_again(*map(self.into, items))

    def _changes(self, node: Node) -> bool:
        return any(name in self.parts for name in _sealed_in(node)) or self._calls_made(node)

    def _calls_made(self, node: Node) -> bool:
        return bool(self.made) and any(name in self.made for name in calls(node))


@found_once
def _sealed_in(node: Node) -> tuple[str, ...]:
    """The names of what is sealed in a node."""
    return tuple([leaf.name for leaf in leaves(node) if isinstance(leaf, Sealed)])


def _not_first(node: Node) -> Iterator[str]:
    """The texts that free text in a node must not begin with."""
    for lexeme in lexemes_in(node):
        text = lexeme.expr.items[0] if isinstance(lexeme.expr, ir.Sequence) else lexeme.expr
        if isinstance(text, Text):
            yield from (mark.removeprefix(START) for mark in text.without if mark.startswith(START))


def _part(tree: Tree, inner: Node, words: Rules) -> Part:
    """What follows the beginning of an option; that of another grammar, where it leads to the very same there."""
    if not isinstance(inner, HashedOnce):
        return Part(inner, _needed(inner, tree, words))
    facts = facts_of(inner)
    known: Needed | None = facts.get(_part)
    if known is None or not (_are_in(known.rules, tree) and _are_in(known.words, words)):
        facts[_part] = known = _needed(inner, tree, words)
    return Part(inner, known)


def _are_in(some: Mapping[str, object], rules: Mapping[str, object]) -> bool:
    return all(map(is_, map(rules.get, some), some.values()))


def _needed(inner: Node, tree: Tree, words: Rules) -> Needed:
    rules = reachable(tree, calls(inner))
    needed: dict[str, Expr] = {}
    waiting = [name for node in (inner, *rules.values()) for name in _words_in(node)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = words[name]
            waiting += names_in(words[name])
    return Needed(rules, needed, (_content(inner), *rules.items(), *needed.items()))


def _content(node: Node) -> Hashable:
    """What is equal for nodes that are made alike."""
    return _content_of(node) if isinstance(node, HashedOnce) else spelling_of(node)


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


@remembers
def _safe(parts: Mapping[str, Part], spelled: Rules) -> dict[str, CharSet]:
    """Those of the parts inside of which no lexeme is in the way of another, and what each may begin with."""
    new: dict[str, Part] = {}
    for name, (_, needed) in parts.items():
        if needed.first is None:
            needed.first = TOGETHER.recall(_safe, needed.known_by)
        if needed.first is None:
            new[name] = parts[name]
    if new:
        looked = _looked_at(new, spelled)
        for name, (_, needed) in new.items():
            needed.first = looked.get(name, NOTHING)  # which is no set of characters: that it is not safe is known, too
            TOGETHER.note(_safe, needed.known_by, needed.first, _WEIGHT * len(needed.known_by))
    return {name: first for name, part in parts.items() if isinstance(first := part.needed.first, CharSet)}


def _looked_at(parts: Mapping[str, Part], spelled: Rules) -> dict[str, CharSet]:
    """The same, of parts that are not known."""
    trees = {name: {name: part.inside, **part.needed.rules} for name, part in parts.items()}
    lexicon = Lexicon(lexemes(together(trees.values())), spelled, inside=True)
    values = values_of_each(trees, lexicon)
    firsts = {name: first_of_safe(tree, name, lexicon, values[name]) for name, tree in trees.items()}
    sets = {first: lexicon.alphabet.set_of(first) or not_chars() for first in set(firsts.values()) if first}
    return {name: sets[first] for name, first in firsts.items() if first}
