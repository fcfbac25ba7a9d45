"""Rewrites a tree of lexemes until the lexer can cut no text in the wrong place; every step keeps the language.

A lexeme that runs on over what follows it grows by what follows (text up to a marker, and the marker), which is exact
as long as the whole is regular; a literal that is in another's way is cut in two; and what is left is taken apart, in
the end into single characters, which are always safe. Where that takes too much work, all that might ever be in the way
of another is taken apart at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

from toolgram.errors import GrammarError
from toolgram.grammar.dialects.lark.alike import opened_once
from toolgram.grammar.dialects.lark.growth import Growth, Overgrown
from toolgram.grammar.dialects.lark.lexing.crowds import Conflict, conflicts
from toolgram.grammar.dialects.lark.lexing.follow import suspects
from toolgram.grammar.dialects.lark.lexing.lexicon import Lexicon
from toolgram.grammar.dialects.lark.parts import named, sealed, unsealed
from toolgram.grammar.dialects.lark.taken import MOST_MERGES
from toolgram.grammar.dialects.lark.tree import (
    Fork,
    InTheWay,
    Leaf,
    Lexeme,
    Loop,
    Node,
    Row,
    Sealed,
    Tree,
    expression,
    fork,
    leaves,
    lexemes,
    lexemes_in,
    opened,
    row,
    weight,
    with_words,
)
from toolgram.grammar.excepts import in_trees
from toolgram.grammar.ir import Expr, Literal, Rules, Sequence, Text
from toolgram.grammar.walk import size
from toolgram.work import TooLarge, give_way, limited, spend

_MOST_WORK = 100_000  # steps of looking for conflicts and mending them; beyond, all that may be one is taken apart
_WORK_OF_LETTER = 200  # of a marker that a text is without
_USUAL_WEIGHT = 2_000  # leaves; more of them may take more work, in proportion
_MOST_ATTEMPTS = 1  # at a lexeme that did not grow
_ROOM_TO_GROW = 200  # in leaves, over three times what there was; beyond, lexemes are taken apart instead
_LARGEST_LEXEME = 300
_LARGEST_WIDENED = 120
_MOST_JOINING_PASSES = 24  # after these, lexemes are only taken apart
_MOST_PASSES = 80
_MOST_PIECES = 100_000  # llguidance 1.9 takes some 65,000 symbols; the largest real tools need 23,000


def repaired(tree: Tree, words: Rules) -> tuple[Tree, Rules]:
    """The tree with the same sentences, none of which llguidance's lexer gets wrong, and the words it then needs.

    Raises GrammarError where they would be too many.
    """
    every, made = named(tree)
    every = opened_once(every)
    if not _is_suspicious(every) and not suspects(every, Lexicon(lexemes(every), words, inside=False)):
        return unsealed(every, {}, made), words
    whole = in_trees(words)
    mended = _by_parts(every, made, words, whole) or _at_once(unsealed(every, {}, made), whole)
    return mended, {**whole, **words}


def _by_parts(tree: Tree, made: Collection[str], words: Rules, whole: Rules) -> Tree | None:
    """The tree mended outside of its parts, and with what was made a rule put back; None where the parts cannot be told
    from the rest, or take too long."""
    try:
        with limited(_work(tree)):
            outside, parts = sealed(tree, made, words, whole)
            return unsealed(_mended(outside, whole), parts, made) if parts else None
    except (InTheWay, TooLarge):
        return None


def _at_once(tree: Tree, whole: Rules) -> Tree:
    try:
        with limited(_work(tree)):
            return _mended(tree, whole)
    except TooLarge:
        return _apart(tree, whole)


def _work(tree: Tree) -> int:
    """How many steps may be taken for a tree."""
    return int(_MOST_WORK * max(1.0, _weight(tree) / _USUAL_WEIGHT)) + _WORK_OF_LETTER * _letters(tree)


def _mended(tree: Tree, words: Rules) -> Tree:
    """The tree with each place mended where lexemes are in conflict. Raises TooLarge where that takes too long."""
    attempts: dict[Lexeme, int] = {}
    before: dict[tuple[Expr, str], str] = {}
    largest = 3 * _weight(tree) + _ROOM_TO_GROW
    # Nearly every text runs on over the marker that ends it, so texts grow before anything is looked at.
    texts = {leaf for leaf in lexemes(tree) if isinstance(leaf.expr, Text)}
    tree = _grown(tree, Growth(dict(tree), texts, before, largest))
    lexicon = None
    for number in range(_MOST_PASSES):
        give_way()
        spend(5 * _weight(tree))
        lexicon = Lexicon(lexemes(tree), words, inside=True, before=lexicon)
        found = conflicts(tree, lexicon) if _is_suspicious(tree) or suspects(tree, lexicon) else []
        if not found:
            return tree
        joins = number < _MOST_JOINING_PASSES
        growing = _to_grow(found, attempts) if joins and _weight(tree) < largest else set[Lexeme]()
        for lexeme in growing:
            attempts[lexeme] = attempts.get(lexeme, 0) + 1
        pieces = _to_cut(found, growing, lexicon, words)
        if pieces:
            wide = {name: _widened(node, pieces) for name, node in tree.items()} if joins else tree
            tree = with_words({name: _replaced(node, pieces) for name, node in wide.items()}, words)
        if growing:
            tree = _grown(tree, Growth(dict(tree), growing, before, largest))
    raise TooLarge


def _is_suspicious(tree: Tree) -> bool:
    """Whether there is text up to a marker, of which the first look is always suspicious, or what that cannot see."""
    return any(_is_text(leaf) or isinstance(leaf, Sealed) for node in tree.values() for leaf in leaves(node))


def _is_text(leaf: Leaf) -> bool:
    if not isinstance(leaf, Lexeme):
        return False
    first = leaf.expr.items[0] if isinstance(leaf.expr, Sequence) else leaf.expr
    return isinstance(first, Text)


def _apart(tree: Tree, words: Rules) -> Tree:
    """The tree with every lexeme that may be in the way of another taken apart into single characters.

    That is always right, and never long to find: characters run on over nothing, so that it ends. Raises GrammarError
    where there would be too many.
    """
    while True:
        give_way()
        lexicon = Lexicon(lexemes(tree), words, inside=False)
        suspicious = {lexicon.exprs[number] for number in suspects(tree, lexicon)}
        found = [lexeme for lexeme in lexemes(tree) if lexeme.expr in suspicious]
        _check_count(sum(len(lexeme.expr.text) for lexeme in found if isinstance(lexeme.expr, Literal)))
        apart = {lexeme: opened(lexeme, words, wholly=True) for lexeme in dict.fromkeys(found)}
        pieces = {lexeme: node for lexeme, node in apart.items() if node is not lexeme}
        if not pieces:
            return tree
        _check_count(sum(len(leaves(apart.get(lexeme, lexeme))) for lexeme in lexemes(tree)))
        tree = with_words({name: _replaced(node, pieces) for name, node in tree.items()}, words)


def _check_count(pieces: int) -> None:
    if pieces > _MOST_PIECES:
        raise GrammarError(f"its texts would be {pieces} characters, one by one, and llguidance takes {_MOST_PIECES}")


def _grown(tree: Tree, growth: Growth) -> Tree:
    """The tree after the pass, or as it was where it would be too large."""
    try:
        grown = growth.tree()
    except Overgrown:
        return tree
    return grown if _weight(grown) <= growth.largest else tree


def _letters(tree: Tree) -> int:
    """How many letters the markers have that texts are without."""
    texts = {leaf.expr for leaf in lexemes(tree) if isinstance(leaf.expr, Text)}
    return sum(len(marker) for text in texts for marker in text.without)


def _weight(tree: Tree) -> int:
    return sum(map(weight, tree.values()))


def _to_grow(found: list[Conflict], attempts: Mapping[Lexeme, int]) -> set[Lexeme]:
    return {
        conflict.ended
        for conflict in found
        if not (conflict.ended.cut or isinstance(conflict.running.expr, Literal))
        and conflict.ended.merged < MOST_MERGES
        and attempts.get(conflict.ended, 0) < _MOST_ATTEMPTS
        and size(conflict.ended.expr) < _LARGEST_LEXEME
    }


def _to_cut(found: list[Conflict], growing: set[Lexeme], lexicon: Lexicon, words: Rules) -> dict[Lexeme, Node]:
    """The lexemes to take apart, and into what: those that run on where nothing grows that could change it."""
    pieces: dict[Lexeme, Node] = {}
    places: dict[Lexeme, set[int]] = {}
    for conflict in found:
        running = conflict.running
        if conflict.ended in growing or running in growing:
            continue
        if isinstance(running.expr, Literal) and not (conflict.ended.cut and running.cut):
            at = lexicon.boundaries(running.expr.text, conflict.ended.expr, conflict.over)
            places.setdefault(running, {0, len(running.expr.text)}).update(at)
            cuts = pairwise(sorted(places[running]))
            pieces[running] = row(*(Lexeme(Literal(running.expr.text[begin:end]), cut=True) for begin, end in cuts))
        else:
            wholly = running.cut or running.tail is not None or isinstance(running.expr, Text | Literal)
            pieces[running] = opened(running, words, wholly=wholly)
    return pieces


def _widened(node: Node, pieces: Mapping[Lexeme, Node]) -> Node:
    """The node with what is regular around a lexeme that is to be taken apart made one lexeme, where it is small."""
    match node:
        case _ if pieces.keys().isdisjoint(lexemes_in(node)):
            return node
        case Row(items):
            return row(*(_widened_run(run, pieces) for run in _runs(items)))
        case Fork() | Loop() if (whole := _whole(node, pieces)) is not None:
            return whole
        case Fork(options):
            return fork(*(_widened(option, pieces) for option in options))
        case Loop(item, least, most):
            return Loop(_widened(item, pieces), least, most)
        case _:
            return node


def _runs(items: tuple[Node, ...]) -> list[list[Node]]:
    """The items in runs of what is regular, and what is not one by one."""
    runs: list[list[Node]] = []
    joins = False
    for item in items:
        regular = expression(item) is not None
        if regular and joins:
            runs[-1].append(item)
        else:
            runs.append([item])
        joins = regular
    return runs


def _widened_run(run: list[Node], pieces: Mapping[Lexeme, Node]) -> Node:
    if len(run) == 1:
        return _widened(run[0], pieces)
    whole = _whole(Row(tuple(run)), pieces)
    return row(*(_widened(item, pieces) for item in run)) if whole is None else whole


def _whole(node: Node, pieces: Mapping[Lexeme, Node]) -> Lexeme | None:
    spelled = expression(node)
    if spelled is None or size(spelled) > _LARGEST_WIDENED:
        return None
    inside = lexemes_in(node)
    if any(leaf.cut for leaf in inside) or not any(
        leaf in pieces and not isinstance(leaf.expr, Literal) for leaf in inside
    ):
        return None
    return Lexeme(spelled, merged=MOST_MERGES)


def _replaced(node: Node, pieces: Mapping[Lexeme, Node]) -> Node:
    match node:
        case Lexeme():
            return pieces.get(node, node)
        case _ if pieces.keys().isdisjoint(lexemes_in(node)):
            return node
        case Row(items):
            return row(*(_replaced(item, pieces) for item in items))
        case Fork(options):
            return fork(*(_replaced(option, pieces) for option in options))
        case Loop(item, least, most):
            return Loop(_replaced(item, pieces), least, most)
        case _:
            return node
