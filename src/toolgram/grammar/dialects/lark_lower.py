"""Grammar rules to Lark's rules and lexemes: small regular expressions over characters become lexemes."""

from __future__ import annotations

from collections.abc import Iterable

from toolgram.grammar.dialects.lark_tree import Call, Lexeme, Loop, Node, Row, Special, Tree, calls, fork, row, size
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
    Token,
    children,
    choice,
    seq,
)
from toolgram.grammar.walk import with_children

_LARGEST_LEXEME = 120
_LONGEST_WORD = 2  # a longer literal is part of the format rather than of a value's spelling


def lower(rules: Rules) -> Tree:
    """The rules (simplified, or tidy at least) as a tree of lexemes with the root first."""
    return _Lowering({name: _spelled_out(expr) for name, expr in rules.items()}).tree()


def _spelled_out(expr: Expr) -> Expr:
    """The expression with tokens without an id as literals."""
    if isinstance(expr, Sequence | Choice | Repeat):
        return with_children(expr, _spelled_out)
    return Literal(expr.text) if isinstance(expr, Token) and expr.id is None else expr


class _Lowering:
    """The rules on their way, and which of them are regular."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._regular: dict[str, Expr | None] = {}
        self._lexicals: dict[int, Expr | None] = {}  # by identity: the expressions are those of `_rules`

    def tree(self) -> Tree:
        tree: dict[str, Node] = {}
        waiting = ["root"]
        while waiting:
            name = waiting.pop()
            if name not in tree:
                tree[name] = self._node(self._rules[name])
                waiting.extend(reversed(list(calls(tree[name]))))
        return tree

    def _node(self, expr: Expr) -> Node:
        match expr:
            case Literal(text):
                return Lexeme(expr) if text else Row(())
            case Token(_, int(number)):
                return Special(number)
            case Ref(name):
                spelled = self._lexical(expr)
                return Call(name) if spelled is None else Lexeme(spelled, name)
            case Sequence(items):
                return self._row(items)
            case Choice(options):
                spelled = self._lexical(expr)
                return fork(*map(self._node, options)) if spelled is None else Lexeme(spelled)
            case Repeat(item, least, most):
                spelled = self._lexical(expr)
                return Loop(self._node(item), least, most) if spelled is None else Lexeme(spelled)
            case _:
                return Lexeme(expr)

    def _row(self, items: tuple[Expr, ...]) -> Node:
        """Runs of lexical items are one lexeme each, with short literals between them."""
        parts: list[Node] = []
        place = 0
        while place < len(items):
            end, spelled = self._run(items, place)
            parts.append(self._node(items[place]) if end == place + 1 else Lexeme(seq(*spelled)))
            place = end
        return row(*parts)

    def _run(self, items: tuple[Expr, ...], place: int) -> tuple[int, list[Expr]]:
        """The end of the longest run of lexical items from here on, and their expressions."""
        run: list[Expr] = []
        end, kept = place + 1, list[Expr]()
        for number in range(place, len(items)):
            item = items[number]
            spelled = None if isinstance(item, Ref | Text) else self._lexical(item)
            word = item if isinstance(item, Literal) and len(item.text) <= _LONGEST_WORD and run else None
            if spelled is None and word is None:
                break
            run.append(spelled or word or EMPTY)
            if spelled is not None and sum(map(size, run)) <= _LARGEST_LEXEME:
                end, kept = number + 1, run[:]
        return end, kept

    def _lexical(self, expr: Expr) -> Expr | None:
        """The expression without references, if it spells a value: regular, small, and without long words."""
        if isinstance(expr, Literal):
            return None
        if id(expr) not in self._lexicals:
            spelled = self._without_references(expr, ())
            self._lexicals[id(expr)] = None if spelled is None or not _spells_a_value(spelled) else spelled
        return self._lexicals[id(expr)]

    def _without_references(self, expr: Expr, inside: tuple[str, ...]) -> Expr | None:
        """The expression with its rules put in, or None if it is recursive, has special tokens or long words, or
        grows too large."""
        match expr:
            case Literal(text):
                return expr if len(text) <= _LONGEST_WORD else None
            case Ref(name):
                if name in inside:
                    return None
                if name not in self._regular:
                    spelled = self._without_references(self._rules[name], (*inside, name))
                    small = spelled is not None and size(spelled) <= _LARGEST_LEXEME
                    self._regular[name] = spelled if small else None
                return self._regular[name]
            case Token():
                return None
            case Sequence(items):
                parts = self._all(items, inside)
                return None if parts is None else seq(*parts)
            case Choice(options):
                parts = self._all(options, inside)
                return None if parts is None else choice(*parts)
            case Repeat(item, least, most):
                parts = self._all((item,), inside)
                return None if parts is None else Repeat(parts[0], least, most)
            case _:
                return expr

    def _all(self, exprs: Iterable[Expr], inside: tuple[str, ...]) -> list[Expr] | None:
        parts: list[Expr] = []
        for expr in exprs:
            part = self._without_references(expr, inside)
            if part is None:
                return None
            parts.append(part)
        return parts if len(parts) <= _LARGEST_LEXEME else None


def _spells_a_value(expr: Expr) -> bool:
    return _has_set(expr) and _has_short_words(expr) and size(expr) <= _LARGEST_LEXEME


def _has_set(expr: Expr) -> bool:
    return isinstance(expr, CharSet | Repeat | Text) or any(map(_has_set, children(expr)))


def _has_short_words(expr: Expr) -> bool:
    if isinstance(expr, Literal):
        return len(expr.text) <= _LONGEST_WORD
    return all(map(_has_short_words, children(expr)))
