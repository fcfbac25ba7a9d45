"""Values in brackets: JSON inside a turn, whose lexemes need no look when they are safe among themselves.

A rule that begins with a bracket, ends with the one that closes it, and has nothing but such values, strings and words
between is left when its first bracket is closed, whatever is read: no beginning of a value is a value. So if its
lexemes are not in the way of one another wherever they stand (`follow` says so at a glance), what is around it need
know one thing of it: the bracket that it begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from toolgram.grammar.dialects.lark.lexing.follow import suspects
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.tree import (
    Call,
    Fork,
    Lexeme,
    Loop,
    Node,
    Only,
    Row,
    Sealed,
    Special,
    Tree,
    leaves,
    together,
)
from toolgram.grammar.ir import Literal

_TURNS = {"{": 1, "[": 1, "}": -1, "]": -1}
_BRACKETS = "".join(_TURNS)


def safe_values(tree: Tree, lexicon: Lexicon) -> dict[str, str]:
    """The rules of which what is around them need know the bracket alone that they begin with: that, by their names."""
    balanced, openers = _values(tree, lexicon)
    unsafe = _unsafe(tree, balanced, openers, lexicon)
    return {name: bracket for name, bracket in openers.items() if name not in unsafe}


def values_of_each(trees: Mapping[str, Tree], lexicon: Lexicon) -> dict[str, dict[str, str]]:
    """The `safe_values` of each of the trees, in which the same rule has the same name, by the names of the trees.

    They are looked at together: what is in the way of nothing there is so in its own tree. Only a tree with something
    in it that is in the way of others there is looked at by itself.
    """
    balanced, openers = _values(together(trees.values()), lexicon)
    around = together(tree for tree in trees.values() if not openers.keys().isdisjoint(tree))
    unsafe = _unsafe(around, balanced, openers, lexicon)
    return {
        name: {rule: openers[rule] for rule in tree if rule in openers}
        if unsafe.isdisjoint(tree)
        else safe_values(tree, lexicon)
        for name, tree in trees.items()
    }


def _values(tree: Tree, lexicon: Lexicon) -> tuple[dict[str, _Parts], dict[str, str]]:
    """The rules that close the brackets which they open, and of those that begin with one that bracket."""
    brackets = lexicon.alphabet.of_chars(_BRACKETS)
    parts = {name: parts for name, node in tree.items() if (parts := _parts(node, lexicon, brackets)) is not None}
    parts = _closed_under_calls(parts)
    ways = {name: _rule_way(tree[name]) if each.turns else (_LEVEL, "") for name, each in parts.items()}
    balanced = {name: parts[name] for name, (way, _) in ways.items() if way.ends == 0 <= way.lowest}
    balanced = _closed_under_calls(balanced)
    return balanced, {name: bracket for name in balanced if (bracket := ways[name][1])}


def _unsafe(tree: Tree, balanced: Mapping[str, _Parts], values: Iterable[str], lexicon: Lexicon) -> set[str]:
    """The rules in these values, and such values, in which something is in the way of something in them."""
    inside = _called(values, balanced)
    if not inside:
        return set()
    suspect = suspects(tree, lexicon, frozenset[int]().union(*(balanced[name].lexemes for name in inside)))
    alone = {name: balanced[name] for name in inside if suspect.isdisjoint(balanced[name].lexemes)}
    return inside.keys() - _closed_under_calls(alone).keys()


class _Parts(NamedTuple):
    """What a rule is made of: lexemes by number, the rules that it calls, and whether there are brackets in it."""

    lexemes: frozenset[int]
    calls: frozenset[str]
    turns: bool


def _parts(node: Node, lexicon: Lexicon, brackets: int) -> _Parts | None:
    """None where a part is neither a bracket, a word, nor a call."""
    turns = False
    lexemes: set[int] = set()
    called: set[str] = set()
    for leaf in leaves(node):
        if isinstance(leaf, Call):
            called.add(leaf.name)
        elif isinstance(leaf, Special | Sealed):
            return None
        elif not isinstance(leaf, Only):
            number = lexicon.numbers[leaf]
            letters = lexicon.letters[number]
            if isinstance(leaf.expr, Literal) and leaf.expr.text in _TURNS:
                turns = True
            elif letters.nullable or letters.first & brackets:
                return None
            lexemes.add(number)
    return _Parts(frozenset(lexemes), frozenset(called), turns)


def _closed_under_calls(rules: dict[str, _Parts]) -> dict[str, _Parts]:
    """Those that call none but such, however deep."""
    while lost := [name for name, each in rules.items() if not rules.keys() >= each.calls]:
        rules = {name: each for name, each in rules.items() if name not in lost}
    return rules


def _called(names: Iterable[str], rules: Mapping[str, _Parts]) -> dict[str, None]:
    """These rules, and all that they call."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += rules[name].calls
    return found


class _Way(NamedTuple):
    """How many brackets more are open at the end of a node than at its beginning, and at the least before its end."""

    ends: int
    lowest: float


_NEVER = _Way(0, -inf)
_LEVEL = _Way(0, 0)
_OF_BRACKET = {bracket: _Way(turn, 0) for bracket, turn in _TURNS.items()}


def _way(node: Node) -> _Way:
    """The way through a node of which all rules that it calls are balanced; `_NEVER` where it depends on what is read.

    The node has no lexemes but brackets and words.
    """
    if isinstance(node, Lexeme):
        return _OF_BRACKET.get(node.expr.text, _LEVEL) if isinstance(node.expr, Literal) else _LEVEL
    if isinstance(node, Row):
        ends, lowest = 0, inf
        for item in node.items:
            way = _way(item)
            ends, lowest = ends + way.ends, min(lowest, ends + way.lowest)
        return _Way(ends, lowest)
    if isinstance(node, Fork):
        ways = [_way(option) for option in node.options]
        lowest = min([way.lowest for way in ways])
        return _Way(ways[0].ends, lowest) if len({way.ends for way in ways}) == 1 else _NEVER
    if isinstance(node, Loop):
        way = _way(node.item)
        return way if way.ends == 0 else _NEVER
    return _LEVEL


def _rule_way(node: Node) -> tuple[_Way, str]:
    """The way through a rule, and the bracket that it begins with, if that one is open until its end; "" if not."""
    if not isinstance(node, Row) or not node.items:
        return _way(node), ""
    ends, lowest, inside = 0, inf, inf
    for number, item in enumerate(node.items):
        way = _way(item)
        lowest = min(lowest, ends + way.lowest)
        if number:
            inside = min(inside, ends + way.lowest)
        ends += way.ends
    match node.items[0]:
        case Lexeme(Literal("{" | "[" as bracket)) if inside > 0:
            return _Way(ends, lowest), bracket
        case _:
            return _Way(ends, lowest), ""
