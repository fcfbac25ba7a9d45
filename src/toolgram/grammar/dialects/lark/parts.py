"""The options of forks, each looked at by itself: in the grammar of many tools, the calls of each of them.

What all options begin with is written once, before the fork (`alike`). Then each begins with literals of its own, the
name of a tool among them, and a lexer that has read these is in that option alone: what is inside of it is in the way
of nothing outside. So it is looked at once, whichever grammars it is in, and sealed: the rest of a grammar is looked at
as if nobody could see inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from functools import partial
from itertools import chain
from typing import NamedTuple

from toolgram.caching import TOGETHER
from toolgram.grammar.dialects.lark.lexing.crowds import first_of_safe
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.options import (
    called,
    forks,
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
    leaves,
    lexemes,
    lexemes_in,
    reachable,
    row,
)
from toolgram.grammar.hashing import HashedOnce, found_once
from toolgram.grammar.ir import NOTHING, CharSet, Literal, Rules, not_chars
from toolgram.grammar.walk import fresh, names_in

_MOST_TEXTS = 32  # that the literals spell with which an option begins
_NO_TEXT = "\ud800"  # stands in no text
_WEIGHT = 300  # bytes that are remembered with a part, for each of its rules and words


class Part(NamedTuple):
    """What follows the literals that an option begins with, and the rules that it needs.

    `known_by` is the same for what is the same in different grammars.
    """

    inside: Node
    rules: Tree
    known_by: tuple[Hashable, ...]


def named(tree: Tree) -> tuple[Tree, frozenset[str]]:
    """The tree with rules for the options that are written in a fork itself, as those of small calls are, which
    `unsealed` puts back; and their names."""
    rules = dict(tree)
    made: set[str] = set()

    def rule_of(option: Node) -> Node:
        made.add(name := fresh(f"{calls(option)[0]}-option", rules))
        rules[name] = option
        return call_of(name, option)

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
            if any(map(_is_written, chain.from_iterable(each.options for each in forks(rules[name])))):
                rules[name] = changed(rules[name])
            waiting += called(rules[name])[1]
    return rules, frozenset(made)


def _is_written(option: Node) -> bool:
    """Whether an option is no rule, but begins with a literal and leads to one."""
    return isinstance(option, Row) and literals_before(option.items) > 0 and bool(calls(option))


def sealed(tree: Tree, words: Rules, spelled: Rules) -> tuple[Tree, dict[str, Part]]:
    """The tree with its options sealed that are safe inside, and these by the names of their rules.

    None are where they are but a small part of it. `spelled` are the words as the lexer has them. Raises TooLarge where
    looking at them takes too much work.
    """
    options = {name: made_of(tree, name) for name in options_of(tree)[1] if not is_among(tree[name])}
    begins = {name: _beginning(items) for name, items in options.items()}
    alike = Counter(text for begin in begins.values() for text in begin.texts)
    parts = {
        name: _part(tree, options[name][begin.length :], words)
        for name, begin in begins.items()
        if begin.length < len(options[name]) and all(alike[text] == 1 for text in begin.texts)
    }
    covered = set(parts).union(*(part.rules for part in parts.values()))
    if 2 * len(covered) < len(tree):  # too little to be worth it
        return tree, {}
    safe = _safe(parts, spelled)
    stubs = {name: row(*options[name][: begins[name].length], Sealed(name, first)) for name, first in safe.items()}
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
                return call_of(shared[name], parts[name].inside) if name in shared else parts[name].inside
            case Call(name) if name in made:
                return put_in(tree[name])
            case Row(items) if changes(node):
                return row_again(*map(put_in, items))
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
    inner = row_again(*items)
    rules = reachable(tree, calls(inner))
    needed: dict[str, None] = {}
    waiting = [name for node in (*items, *rules.values()) for name in _words_in(node)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = None
            waiting += names_in(words[name])
    return Part(inner, rules, (*map(_content, items), *rules.items(), *((name, words[name]) for name in needed)))


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
    sets = {first: lexicon.alphabet.set_of(first) or not_chars() for first in set(firsts.values()) if first}
    return {name: sets[first] for name, first in firsts.items() if first}
