"""Patterns in the shape in which they were written, as expressions of the same language."""

from __future__ import annotations

from toolgram.grammar.ir import EMPTY, NOTHING, CharSet, Expr, choice, repeat, seq
from toolgram.grammar.regular.automata import Automaton
from toolgram.grammar.regular.regex_syntax import ANYTHING, END, START, Alt, Cat, Look, Rep, Tree


def as_written(automaton: Automaton, tree: Tree, *, preferred: bool) -> Automaton:
    """The automaton of a pattern, with the pattern as its expression where that can be; `preferred` to its states."""
    body = _whole(tree)
    plain = None if body is None or automaton.is_empty else _plain(body)
    return automaton if plain is None else Automaton(automaton.states, plain, preferred)


def _whole(tree: Tree) -> Tree | None:
    """A tree of the whole text, where the pattern is bound to its start and free of other assertions."""
    match tree:
        case Alt(options):
            bodies = [_whole(option) for option in options]
            return Alt(tuple(body for body in bodies if body is not None)) if None not in bodies else None
        case Cat((first, *middle, last)) if first == START and last == END:
            return Cat(tuple(middle))
        case Cat((first, *rest)) if first == START:
            return Cat((*rest, ANYTHING))
        case _:
            return None


def _plain(tree: Tree) -> Expr | None:
    """The tree as an expression of plain characters; None where it holds assertions, or loops that are ambiguous."""
    match tree:
        case CharSet(ranges):
            return tree if ranges else NOTHING
        case Rep(item, low, high):
            body = None if _is_nullable(item) else _plain(item)
            if body == NOTHING:
                return NOTHING if low else EMPTY
            return None if body is None else repeat(body, low, high)
        case Cat(parts) | Alt(parts):
            plain = [_plain(part) for part in parts]
            if any(part is None for part in plain):
                return None
            return (seq if isinstance(tree, Cat) else choice)(*(part for part in plain if part is not None))
        case _:
            return None


def _is_nullable(tree: Tree) -> bool:
    match tree:
        case Cat(items):
            return all(map(_is_nullable, items))
        case Alt(options):
            return any(map(_is_nullable, options))
        case Rep(item, low):
            return not low or _is_nullable(item)
        case _:
            return isinstance(tree, Look)
