"""Grammar rules to Lark's rules and lexemes: small regular expressions over characters become lexemes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from toolgram.grammar.walk import uses, with_children

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
        self._regular = _regular(rules)
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
            spelled = _without_references(expr, self._regular)
            self._lexicals[id(expr)] = None if spelled is None or not _spells_a_value(spelled) else spelled
        return self._lexicals[id(expr)]


def _regular(rules: Rules) -> dict[str, Expr | None]:
    """Each rule with its rules put in, or None if it is recursive, has special tokens or long words, or is large."""
    used = uses(rules)
    found: dict[str, Expr | None] = {}
    begun: set[str] = set()
    waiting = list(rules)
    # What a rule uses is done before it, other than in a cycle, of which no rule is regular.
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name in begun:
            spelled = _without_references(rules[name], found)
            found[name] = spelled if spelled is not None and size(spelled) <= _LARGEST_LEXEME else None
            continue
        begun.add(name)
        waiting.append(name)
        waiting.extend(part for part in used[name] if part not in begun)
    return found


def _without_references(expr: Expr, regular: Mapping[str, Expr | None]) -> Expr | None:
    """The expression with the regular rules put in, or None if it uses others, or has special tokens or long words."""
    match expr:
        case Literal(text):
            return expr if len(text) <= _LONGEST_WORD else None
        case Ref(name):
            return regular.get(name)
        case Token():
            return None
        case Sequence(items):
            parts = _all_without_references(items, regular)
            return None if parts is None else seq(*parts)
        case Choice(options):
            parts = _all_without_references(options, regular)
            return None if parts is None else choice(*parts)
        case Repeat(item, least, most):
            inner = _without_references(item, regular)
            return None if inner is None else Repeat(inner, least, most)
        case _:
            return expr


def _all_without_references(exprs: Iterable[Expr], regular: Mapping[str, Expr | None]) -> list[Expr] | None:
    parts: list[Expr] = []
    for expr in exprs:
        part = _without_references(expr, regular)
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
