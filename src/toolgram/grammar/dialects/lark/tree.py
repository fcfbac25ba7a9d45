"""What a Lark grammar is made of while it is being written: lexemes, and the rules around them.

A lexeme is a regular expression of the IR (no `Ref` in it) that llguidance's lexer will match as one greedy piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from toolgram.grammar.dialects.lark.regex import text_expression
from toolgram.grammar.hashing import HashedOnce, entity
from toolgram.grammar.ir import (
    EMPTY,
    CharSet,
    Choice,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    choice,
    repeat,
    seq,
)


@entity
class Lexeme:
    """One occurrence of a lexeme (two occurrences of the same expression are different ones).

    `name` is what a person would call it; `tail` is what comes after the second quote of one that is a string in its
    quotes, or after the colon of a `bare` key that has none; `merged` counts how often it grew by what follows it; one
    that is `cut` came out of a lexeme that had to be taken apart, and is not put together again.
    """

    expr: Expr
    name: str = ""
    tail: str | None = None
    bare: bool = False
    merged: int = 0
    cut: bool = False


@entity
class Special:
    """One special token of the vocabulary, which no lexeme ever matches."""

    id: int


@entity
class Call:
    """The rule of this name; one `among` members goes on with what is taken of them, any other begins anew."""

    name: str
    among: bool = False


@entity
class Only:
    """Nothing, and that only where it is true (`condition`, as llguidance has it) of the numbers of the members that
    are taken; those of what follows in the row are these and the number that it `takes`.

    Source: https://github.com/guidance-ai/llguidance/blob/main/docs/parametric.md
    """

    condition: str
    takes: int | None = None


@entity
class Sealed:
    """What an option has behind the literals that it begins with, when it was looked at by itself (`parts`).

    `first`: the characters that it may begin with.
    """

    name: str
    first: CharSet


@entity
class Row(HashedOnce):
    """These, one after the other."""

    items: tuple[Node, ...]


@entity
class Fork(HashedOnce):
    """Any one of these, and there is at least one."""

    options: tuple[Node, ...]


@entity
class Loop(HashedOnce):
    """The item `min` to `max` times."""

    item: Node
    min: int
    max: int | None


_BITS_OF_DEPTH = 32
_DEPTH = (1 << _BITS_OF_DEPTH) - 1
_LEVELS = 8  # of what is in one another, for each of which its leaves are kept


class InTheWay(Exception):
    """Something stands beside what is sealed, or a value, that may be in its way: what is inside must be looked at."""


Leaf = Lexeme | Special | Call | Only | Sealed
Node = Leaf | Row | Fork | Loop
Tree = Mapping[str, Node]


def row(*items: Node) -> Node:
    """A row, flattened; a row of one is that one."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Row) else (item,))
    return flat[0] if len(flat) == 1 else Row(tuple(flat))


def fork(*options: Node) -> Node:
    """A fork, flattened; a fork of one is that one."""
    flat: list[Node] = []
    for option in options:
        flat.extend(option.options if isinstance(option, Fork) else (option,))
    return flat[0] if len(flat) == 1 else Fork(tuple(flat))


def factored(options: Iterable[Node]) -> Node:
    """A fork of rows; those that begin with the same lexeme are one row, which forks only where they differ."""
    groups: dict[object, list[tuple[Node, ...]]] = {}
    for option in options:
        for items in map(items_of, option.options if isinstance(option, Fork) else (option,)):
            first = items[0] if items else None
            key = (first.expr, first.merged, first.cut) if isinstance(first, Lexeme) else len(groups)
            groups.setdefault(key, []).append(items)
    return fork(*map(_row_of, groups.values()))


def items_of(node: Node) -> tuple[Node, ...]:
    """What a row is made of; a node that is none is a row of one."""
    return node.items if isinstance(node, Row) else (node,)


def _row_of(rows: list[tuple[Node, ...]]) -> Node:
    """Rows that begin alike as one; what is the very same node at the end of each is written once as well."""
    if len(rows) == 1:
        return row(*rows[0])
    first, *shortest = min(rows, key=len)
    same = 0
    while same < len(shortest) and all(items[-1 - same] is shortest[-1 - same] for items in rows):
        same += 1
    between = factored(row(*items[1 : len(items) - same]) for items in rows)
    return row(first, between, *shortest[len(shortest) - same :])


def is_empty(node: Node) -> bool:
    """Whether it is the empty row, the one way to write the empty string."""
    return isinstance(node, Row) and not node.items


class _Inside(NamedTuple):
    """What a node is made of: its leaves in order, those among them that are calls (their names) and lexemes; how many
    rows, forks and loops there are; and whether what is taken of some members has a say in it."""

    leaves: tuple[Leaf, ...]
    calls: tuple[str, ...]
    lexemes: tuple[Lexeme, ...]
    joints: int
    among: bool


def leaves(node: Node) -> tuple[Leaf, ...]:
    """What the node is made of, in order."""
    return _inside(node).leaves if isinstance(node, HashedOnce) else (node,)


def calls(node: Node) -> tuple[str, ...]:
    """The names of the rules that this node uses, with repeats."""
    return _inside(node).calls if isinstance(node, HashedOnce) else (node.name,) if isinstance(node, Call) else ()


def lexemes_in(node: Node) -> tuple[Lexeme, ...]:
    """The lexemes of a node, in order."""
    return _inside(node).lexemes if isinstance(node, HashedOnce) else (node,) if isinstance(node, Lexeme) else ()


def joints(node: Node) -> int:
    """How many rows, forks and loops there are in the node: at least as many as are in one another."""
    return _inside(node).joints if isinstance(node, HashedOnce) else 0


def is_among(node: Node) -> bool:
    """Whether what is taken of some members has a say in the node."""
    if isinstance(node, HashedOnce):
        return _inside(node).among
    return node.among if isinstance(node, Call) else isinstance(node, Only)


def _inside(node: Row | Fork | Loop, levels: int = _LEVELS) -> _Inside:
    """What is in a node, from what is in its parts, which is known of most: a fork of many calls is made again and
    again, with the same calls but for some. What lies deeper than these levels is gone through."""
    known: Any = node.known_inside
    if known is None:
        known = _together(_parts(node), 1, levels - 1) if levels else _together(*_walked(node), 0)
        object.__setattr__(node, "known_inside", known)
    return known


def _parts(node: Row | Fork | Loop) -> tuple[Node, ...]:
    return (node.item,) if isinstance(node, Loop) else node.items if isinstance(node, Row) else node.options


def _together(parts: Iterable[Node], count: int, levels: int) -> _Inside:
    """What is in these, and so many more joints."""
    found: list[Leaf] = []
    names: list[str] = []
    lexemes: list[Lexeme] = []
    among = False
    for part in parts:
        if isinstance(part, HashedOnce):
            inside = _inside(part, levels)
            found += inside.leaves
            names += inside.calls
            lexemes += inside.lexemes
            count += inside.joints
            among = among or inside.among
            continue
        found.append(part)
        if isinstance(part, Lexeme):
            lexemes.append(part)
        elif isinstance(part, Call):
            names.append(part.name)
            among = among or part.among
        else:
            among = among or isinstance(part, Only)
    return _Inside(tuple(found), tuple(names), tuple(lexemes), count, among)


def _walked(node: Row | Fork | Loop) -> tuple[list[Leaf], int]:
    """The leaves of a node, however deep, and how many joints there are."""
    found: list[Leaf] = []
    count = 0
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, HashedOnce):
            count += 1
            waiting += _parts(part)[::-1]
        else:
            found.append(part)
    return found, count


def weight(node: Node) -> int:
    """How many leaves the node is made of, without a look at each of them."""
    return (node.known_look or _look(node)) >> _BITS_OF_DEPTH if isinstance(node, HashedOnce) else 1


def depth(node: Node) -> int:
    """How many rows, forks and loops of the node are in one another."""
    return (node.known_look or _look(node)) & _DEPTH if isinstance(node, HashedOnce) else 0


def _look(node: Row | Fork | Loop) -> int:
    """The weight of a node and its depth, as one number: both are found in one walk."""
    leaves = deepest = 0
    for part in _parts(node):
        if isinstance(part, HashedOnce):
            look = part.known_look or _look(part)
            leaves += look >> _BITS_OF_DEPTH
            deepest = max(deepest, look & _DEPTH)
        else:
            leaves += 1
    look = leaves << _BITS_OF_DEPTH | (deepest + 1)
    object.__setattr__(node, "known_look", look)
    return look


def call_of(name: str, node: Node) -> Call:
    """The call of a rule that this node has become, where the node was."""
    return Call(name, is_among(node))


def begins_anew(call: Call, rules: Tree) -> bool:
    """Whether what is taken of members before has no say in the rule that is called, but has in others that call it:
    so what that rule is made of cannot stand in the place of the call."""
    return not call.among and is_among(rules[call.name])


def reachable(rules: Tree, names: Iterable[str]) -> dict[str, Node]:
    """The rules that these names lead to, in order of first use."""
    found: dict[str, Node] = {}
    waiting = list(names)[::-1]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rules[name]
            waiting.extend(reversed(calls(rules[name])))
    return found


def together(trees: Iterable[Tree]) -> dict[str, Node]:
    """The rules of several trees, in which the same rule has the same name."""
    every: dict[str, Node] = {}
    for tree in trees:
        every |= tree
    return every


def lexemes(tree: Tree) -> list[Lexeme]:
    """All lexemes of a tree, in order."""
    return [lexeme for node in tree.values() for lexeme in lexemes_in(node)]


def opened(lexeme: Lexeme, words: Rules, *, wholly: bool = False) -> Node:
    """The lexeme taken apart, by one level or wholly, into pieces that are lexemes of their own.

    Wholly, a word that it refers to becomes a call of `rule_of_word`.
    """

    def piece(expr: Expr) -> Node:
        if expr == EMPTY:
            return Row(())
        part = Lexeme(expr, cut=True)
        return opened(part, words, wholly=True) if wholly else part

    match lexeme.expr:
        case Literal(text) if len(text) > 1:
            return row(*(Lexeme(Literal(char), cut=True) for char in text))
        case Sequence(items):
            return row(*map(piece, items))
        case Choice(options):
            return fork(*map(piece, options))
        case Repeat(item, least, most):
            return Loop(piece(item), least, most)
        case Text():
            return opened(Lexeme(text_expression(lexeme.expr), cut=True), words, wholly=wholly)
        case Ref(name):
            return Call(rule_of_word(name)) if wholly else opened(Lexeme(words[name], cut=True), words)
        case _:
            return lexeme


def rule_of_word(name: str) -> str:
    """The rule for a word that is taken apart: no rule of a grammar is called so."""
    return f"{name} in characters"


def with_words(tree: Tree, words: Rules) -> Tree:
    """The tree with the rules of words taken apart that it calls."""
    rules = dict(tree)
    by_rule = {rule_of_word(name): name for name in words}
    waiting = [name for node in tree.values() for name in calls(node)]
    while waiting:
        name = waiting.pop()
        if name not in rules:
            rules[name] = opened(Lexeme(words[by_rule[name]], cut=True), words, wholly=True)
            waiting.extend(calls(rules[name]))
    return rules


def expression(node: Node) -> Expr | None:
    """The node as one regular expression, or None if there are calls or special tokens in it."""
    match node:
        case Lexeme(expr):
            return expr
        case Row(items):
            parts = [expression(item) for item in items]
            return None if None in parts else seq(*(part for part in parts if part is not None))
        case Fork(options):
            parts = [expression(option) for option in options]
            return None if None in parts else choice(*(part for part in parts if part is not None))
        case Loop(item, least, most):
            part = expression(item)
            return None if part is None else repeat(part, least, most)
        case _:
            return None
