"""The options of forks, each looked at by itself: in the grammar of many tools, the calls of each of them.

What all options begin with is written once, before the fork (`alike`). Then each begins with literals of its own, the
name of a tool among them, and a lexer that has read these is in that option alone: what is inside of it is in the way
of nothing outside. So it is looked at once, whichever grammars it is in, and sealed: the rest of a grammar is looked at
as if nobody could see inside.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from toolgram.caching import TOGETHER, remembers
from toolgram.grammar import ir
from toolgram.grammar.dialects.lark.lexing.crowds import first_of_safe
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.options import (
    called,
    forks,
    is_literal,
    literals_before,
    made_of,
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
    Special,
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
)
from toolgram.grammar.hashing import HashedOnce, facts_of, found_once
from toolgram.grammar.ir import NOTHING, START, CharSet, Expr, Literal, Rules, Text, not_chars
from toolgram.grammar.walk import fresh, names_in

_MOST_TEXTS = 32  # that the literals spell with which an option begins
_NO_TEXT = "\ud800"  # stands in no text
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
        self.made.add(name := fresh(f"{calls(option)[0]}-option", self.rules))
        self.rules[name] = option
        return call_of(name, option)


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
    options = {name: _option(tree, made_of(tree, name), told) for name in names if not is_among(tree[name])}
    alike = Counter(text for option in options.values() for text in option.texts)
    parts = {
        name: _part(tree, option.after, words)
        for name, option in options.items()
        if option.after and all(alike[text] == 1 for text in option.texts)
    }
    covered = set(parts).union(*(part.needed.rules for part in parts.values()))
    if 2 * len(covered) < len(tree):  # too little to be worth it
        return tree, {}
    safe = _safe(parts, spelled)
    stubs = {name: options[name].with_inside(Sealed(name, first)) for name, first in safe.items()}
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
                return row_again(*map(self.into, items))
            case Fork(options):
                return fork(*map(self.into, options))
            case Loop(item, least, most):
                return Loop(self.into(item), least, most)
            case _:
                return node

    def _changes(self, node: Node) -> bool:
        if any(name in self.parts for name in _sealed_in(node)):
            return True
        return bool(self.made) and any(name in self.made for name in calls(node))


@found_once
def _sealed_in(node: Node) -> tuple[str, ...]:
    """The names of what is sealed in a node."""
    return tuple([leaf.name for leaf in leaves(node) if isinstance(leaf, Sealed)])


class _Option(NamedTuple):
    """What an option begins with, the texts that this spells, and what comes `after`.

    After what is `before`, it goes on as `then`, or is no more than `instead`, if that is given.
    """

    before: tuple[Node, ...]
    then: tuple[Node, ...]
    instead: tuple[Node, ...] | None
    texts: frozenset[str]
    after: tuple[Node, ...]

    def with_inside(self, inside: Node) -> Node:
        """The option with this in the place of what comes after its beginning."""
        way = row(*self.then, inside)
        return row(*self.before, way if self.instead is None else fork(way, row(*self.instead)))


def _option(tree: Tree, items: tuple[Node, ...], told: Sequence[str]) -> _Option:
    """An option by what it is made of; `told`, in order, are texts that free text must not begin with where it may
    begin. Up to the end of one of these such text can go on like the option, whose beginning goes on as far then."""
    length, texts = _beginning(items)
    before, after = items[:length], items[length:]
    plain = _Option(before, (), None, texts, after)
    if not after or not any(_is_begun(text, told) for text in texts):
        return plain
    ways = after[0].options if isinstance(after[0], Fork) else after[:1]
    full = [way for way in ways if not is_empty(way)]
    inner = _inside(tree, full[0])
    then, instead = inner[: literals_before(inner)], after[1:] if len(full) < len(ways) else None
    spelled = [_texts(row(*way)) for way in (then, instead) if way is not None]
    if len(full) > 1 or not then or None in spelled:
        return plain
    more = frozenset(text + end for text in texts for ends in spelled if ends for end in ends)
    return _Option(before, then, instead, more, (*inner[len(then) :], *after[1:]))


def _inside(tree: Tree, node: Node) -> tuple[Node, ...]:
    """What a way through an option is made of; members begin anew there."""
    if not isinstance(node, Call):
        return items_of(node)
    match tree[node.name]:
        case Row() as whole if is_among(whole):
            return _begun_anew(whole)
        case whole:
            return items_of(whole)


@found_once
def _begun_anew(node: Row) -> tuple[Node, ...]:
    match node.items:
        case (*literals, Call(name)) if all(map(is_literal, literals)):
            return (*literals, Call(name))
        case _:
            return (node,)


def _not_first(node: Node) -> Iterator[str]:
    """The texts that free text in a node must not begin with."""
    for lexeme in lexemes_in(node):
        text = lexeme.expr.items[0] if isinstance(lexeme.expr, ir.Sequence) else lexeme.expr
        if isinstance(text, Text):
            yield from (mark.removeprefix(START) for mark in text.without if mark.startswith(START))


def _is_begun(text: str, told: Sequence[str]) -> bool:
    """Whether a text is the beginning of any of others, which are in order."""
    at = bisect_right(told, text)
    return at < len(told) and told[at].startswith(text)


class _Beginning(NamedTuple):
    """How many items of a row are literals, or choices of such, and the texts that these spell."""

    length: int
    texts: frozenset[str]


def _beginning(items: tuple[Node, ...]) -> _Beginning:
    length, texts = 0, frozenset(("",))
    for item in items:
        more = _texts(item)
        if more is None or len(more) * len(texts) > _MOST_TEXTS:
            break
        length, texts = length + 1, frozenset(text + after for text in texts for after in more)
    return _Beginning(length, texts)


def _texts(node: Node) -> frozenset[str] | None:
    """The texts that literals spell; None where there is something else, or are too many."""
    match node:
        case Lexeme(Literal(text)):
            return frozenset((text,))
        case Special(number):
            return frozenset((f"{_NO_TEXT}{number};",))
        case Row(items):
            begin = _beginning(items)
            return begin.texts if begin.length == len(items) else None
        case Fork(options):
            found = [_texts(option) for option in options]
            texts = frozenset(text for each in found if each for text in each)
            return texts if None not in found and len(texts) <= _MOST_TEXTS else None
        case _:
            return None


def _part(tree: Tree, items: tuple[Node, ...], words: Rules) -> Part:
    """What follows the beginning of an option; that of another grammar, where it leads to the very same there."""
    inner = row_again(*items)
    if not isinstance(inner, HashedOnce):
        return Part(inner, _needed(inner, tree, items, words))
    facts = facts_of(inner)
    known: Needed | None = facts.get(_part)
    if known is None or not (_are_in(known.rules, tree) and _are_in(known.words, words)):
        facts[_part] = known = _needed(inner, tree, items, words)
    return Part(inner, known)


def _are_in(some: Mapping[str, object], rules: Mapping[str, object]) -> bool:
    return all(rules.get(name) is body for name, body in some.items())


def _needed(inner: Node, tree: Tree, items: tuple[Node, ...], words: Rules) -> Needed:
    rules = reachable(tree, calls(inner))
    needed: dict[str, Expr] = {}
    waiting = [name for node in (*items, *rules.values()) for name in _words_in(node)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = words[name]
            waiting += names_in(words[name])
    return Needed(rules, needed, (*map(_content, items), *rules.items(), *needed.items()))


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
    together: dict[str, Node] = {}
    for tree in trees.values():
        together |= tree
    lexicon = Lexicon(lexemes(together), spelled, inside=True)
    firsts = {name: first_of_safe(tree, name, lexicon) for name, tree in trees.items()}
    sets = {first: lexicon.alphabet.set_of(first) or not_chars() for first in set(firsts.values()) if first}
    return {name: sets[first] for name, first in firsts.items() if first}
