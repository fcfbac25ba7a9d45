"""The terminals of a Lark grammar: what each lexeme is called or how it is spelled, and the lines that define them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from toolgram.grammar.components import components
from toolgram.grammar.dialects.lark.regex import regex, terminal
from toolgram.grammar.dialects.lark.tree import Lexeme
from toolgram.grammar.ir import Except, Expr, Literal, Ref, Rules, Sequence, Text, choice, seq
from toolgram.grammar.walk import found_given, names_in, renamed, size, with_children

_LONGEST_INLINE = 24
_LARGEST_INLINE = 8  # parts of a word that is written where it is used
_LARGEST_ONCE = 40  # parts of one that is used but once
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


class Terminals(NamedTuple):
    """How each lexeme's expression is written in a rule, and the lines of the terminals that have names."""

    texts: Mapping[Expr, str]
    lines: list[str]


def terminals_of(lexemes: Iterable[Lexeme], words: Rules) -> Terminals:
    """The terminals for these lexemes, in order of first use."""
    different = {lexeme.expr: lexeme for lexeme in reversed(list(lexemes))}
    table = _Table(words, different)
    texts = {expr: table.text(lexeme) for expr, lexeme in reversed(different.items())}
    return Terminals(texts, table.lines())


class Names:
    """Different names that Lark can have, as near as can be to those wanted."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """A name that was not given before."""
        base = name = _NOT_IN_NAMES.sub("_", wanted)
        while name in self._taken:
            self._taken[base] += 1
            name = f"{base}_{self._taken[base]}"
        self._taken[name] = 1
        return name


class _Table:
    """The terminals of one grammar: `text` says how a lexeme is written, `lines` defines what has a name by then."""

    def __init__(self, words: Rules, exprs: Iterable[Expr]) -> None:
        self._words = words
        self._given = Names()
        self._names: dict[Expr, str] = {}
        self._put: dict[str, Expr] = {}
        self._same: dict[str, str] = {}  # the words that stand for others, which say the same
        self._by_body = {body: Ref(name) for name, body in words.items() if _is_plain_string(body)}
        self._settle(exprs)

    def _settle(self, exprs: Iterable[Expr]) -> None:
        """Decide which words are put in where they are used: small ones, and those that these expressions and one
        another use but once."""
        count: Counter[str] = Counter()
        used: dict[str, tuple[str, ...]] = {}
        for expr in exprs:
            count.update(names_in(expr))
        waiting = list(count)
        while waiting:
            name = waiting.pop()
            if name not in used:
                body = self._words[name]
                used[name] = names_in(self._every(body) if isinstance(body, Except) else body)
                count.update(used[name])
                waiting.extend(used[name])
        first: dict[Expr, str] = {}  # of the words that say the same
        for (name,) in components(used):  # words do not recur
            body = _put_in(self._words[name], self._put)
            largest = _LARGEST_INLINE if count[name] > 1 else _LARGEST_ONCE
            if (other := first.setdefault(body, name)) != name:
                self._same[name] = other
            self._put[name] = body if not names_in(body) and size(body) <= largest else Ref(other)

    def text(self, lexeme: Lexeme) -> str:
        """How the lexeme is written in a rule."""
        expr = _put_in(lexeme.expr, self._put)
        has_name = bool(lexeme.name) or isinstance(lexeme.expr, Ref)
        if not names_in(expr) and (isinstance(expr, Literal) or not (has_name or len(regex(expr)) > _LONGEST_INLINE)):
            return terminal(expr, {})
        wanted = lexeme.name or ("key" if lexeme.tail or lexeme.bare else _kind(expr))
        return self._name(renamed(lexeme.expr, self._same) if has_name or names_in(expr) else expr, wanted)

    def lines(self) -> list[str]:
        """The lines of all that has got a name, and of what they refer to."""
        named = list(self._names)
        lines: list[str] = []
        for expr in named:  # which grows
            lines.append(f"{self._names[expr]}: {self._body(expr)}")
            named += list(self._names)[len(named) :]
        return lines

    def _name(self, expr: Expr, wanted: str) -> str:
        if (known := self._names.get(expr)) is None:
            name, *_ = (expr.name if isinstance(expr, Ref) else wanted).split(" ")  # a word's has its rule behind it
            known = self._names[expr] = self._given.give(name.upper())
        return known

    def _body(self, expr: Expr) -> str:
        word, tail = (expr.items[0], expr.items[1:]) if isinstance(expr, Sequence) else (expr, ())
        body = self._words[word.name] if isinstance(word, Ref) else word
        if isinstance(body, Except) and (not tail or isinstance(tail[0], Literal)):
            base = self._name(seq(self._every(body), *tail), "key" if tail else "string")
            texts = seq(body.quote, choice(*body.texts), body.quote, *tail)
            return f"{base} & ~{terminal(texts, {})}"
        expr = _put_in(self._words[expr.name] if isinstance(expr, Ref) else expr, self._put)
        return _terminal(expr, {name: self._name(Ref(name), name) for name in names_in(expr)})

    def _every(self, body: Except) -> Expr:
        return self._by_body.get(body.every, body.every)


def _with_words(expr: Expr, words: Mapping[str, Expr]) -> Expr:
    """The expression with these in the place of the words."""
    if isinstance(expr, Ref):
        return words[expr.name]
    return with_children(expr, lambda part: _with_words(part, words)) if names_in(expr) else expr


_put_in = found_given(_with_words)
_terminal = found_given(terminal)


def _is_plain_string(body: Expr) -> bool:
    return isinstance(body, Sequence) and len(body.items) == 3 and body.items[0] == Literal('"')


def _kind(expr: Expr) -> str:
    first = expr.items[0] if isinstance(expr, Sequence) else expr
    return "text" if isinstance(first, Text) else "lexeme"
