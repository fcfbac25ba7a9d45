"""Markers and raw text in a grammar: what stands before a marker and is no JSON.

A marker is a lexeme of its own wherever it stands, so that the same text is cut in one way everywhere. Raw text can
nearly always run on over the marker that ends it: such text and its marker are one lexeme, which ends with the marker
and cannot run on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from toolgram.caching import counted
from toolgram.grammar.dialects.lark.tree import Lexeme
from toolgram.grammar.hashing import found_once, kept_with
from toolgram.grammar.ir import START, CharSet, Choice, Expr, Literal, Members, Ref, Rules, Sequence, Text, children
from toolgram.grammar.walk import TEXT, Uses, is_plain, kinds_in, names_in, size

_LARGEST = 2_000  # parts of what is before a marker, and of its words
_DEEPEST = 20  # of its words in one another
_SHORT = 2  # characters of what is no tag, and may be anything else as well
DIGITS = frozenset("0123456789+-.eE")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:( *)")
_BRACKET = r"[{\[]"
_SCALAR = r"(?:-?[0-9][0-9.eE+-]*|true|false|null)(?=[,\]}])"  # which beside it may be one of many, and ends alone


class _Facts(NamedTuple):
    """How large an expression is, without its words; the literals in it, and those in its words; whether it has sets
    other than of digits, and such as hold a quote, as those of JSON's strings do not; its words, and theirs, and how
    many there are in one another."""

    size: int
    texts: frozenset[str]
    sets: bool
    quotes: bool = False
    words: frozenset[str] = frozenset()
    depth: int = 0


class RawText:
    """The markers of a grammar, and which of its regular expressions are raw text.

    `tokens` are markers too, which need not end any text. What some text must not begin with is the `opener_of` a text
    in a rule that may begin where that text does: a lexeme of its own, JSON in it or not, since that text could run on
    over any part of it. Grammars with the same `marks` are alike in all this, but for rules of which something else is
    `in_rules`: other openers, or other tokens.
    """

    def __init__(self, rules: Rules, used: Uses, regular: Rules, tokens: Iterable[str]) -> None:
        self._regular = regular
        markers, quotes = (sorted(texts, key=lambda text: (-len(text), text)) for texts in _markers_in(rules.values()))
        self._markers = tuple(marker for marker in markers if not marker.startswith(START))
        self.marks = (self._markers, tuple(quotes))
        self._openers = tuple(marker.removeprefix(START) for marker in markers if marker.startswith(START))
        self._beside = _beside_texts(rules, used) if self._openers else frozenset[str]()
        tokens = tuple(sorted(token for token in tokens if len(token) > _SHORT))
        told = rules.items() if tokens else ()
        self.in_rules = {name: kept_with(expr, _tokens_in, _texts_in(expr), tokens) for name, expr in told}
        for name in self._beside:
            self.in_rules[name] = (*self.in_rules.get(name, ()), START, *sorted(self._openers_in(name, rules[name])))
        long = (*(text for text in self._markers if len(text) > _SHORT), *tokens)
        every = [re.escape(text) for text in sorted(dict.fromkeys(long), key=len, reverse=True)]
        between = [rf"{quote}.*?{quote}" for quote in map(re.escape, quotes)]
        self._any_marker = re.compile(f"({'|'.join((*between, *every))})", re.DOTALL) if every else None
        self._between = re.compile("|".join(between), re.DOTALL) if between else None
        self._mark = re.compile(
            rf"[{{}}\[\]]|[,:] *| +|{_SCALAR}|{_KEY.pattern}(?={'|'.join((_BRACKET, *map(re.escape, quotes)))})"
        )
        self._words: dict[str, _Facts] = {}
        self._known: dict[int, _Facts] = {}  # by identity, of expressions that outlive this
        self._pieces: dict[tuple[str, bool], list[tuple[Literal, str | None, bool]]] = {}
        self._ends: dict[str, int] = {}
        self._unmarked: dict[tuple[str, str], bool] = {}  # whether a word never holds a mark

    def opener_of(self, text: str, rule: str) -> str:
        """The opener that a text of a rule begins with; "" where there is none."""
        is_any = rule in self._beside and text.startswith(self._openers)
        return next(filter(text.startswith, self._openers)) if is_any else ""

    def _openers_in(self, rule: str, expr: Expr) -> Iterator[str]:
        """The openers with which the texts of a rule are cut."""
        for text in _texts_in(expr):
            rest = text
            while opener := self.opener_of(rest, rule):
                yield opener
                rest = rest.removeprefix(opener)

    def marker_end(self, text: str) -> int:
        """The end of the first marker in a text; 0 where there is none."""
        if text not in self._ends:
            ends = (at + len(marker) for marker in self._markers if (at := text.find(marker)) >= 0)
            self._ends[text] = min(ends, default=0)
        return self._ends[text]

    def ends_with_marker(self, text: str) -> bool:
        """Whether a text ends with what ends some text."""
        return text.endswith(self._markers)

    def lexemes(self, text: str, *, begins: bool) -> list[Lexeme]:
        """A text, cut after each mark of JSON that it begins with, and as `cut` does."""
        if (text, begins) not in self._pieces:
            pieces: list[str] = []
            end = 0
            while mark := self._mark_at(text, end):
                pieces.append(mark[0])
                end = mark.end()
            pieces += self.cut(text[end:], begins=begins and not end)
            self._pieces[text, begins] = [(Literal(piece), *self._kind(piece)) for piece in pieces]
        return [Lexeme(piece, tail=tail, bare=bare) for piece, tail, bare in self._pieces[text, begins]]

    def _kind(self, piece: str) -> tuple[str | None, bool]:
        """Whether a piece is a key without quotes, or a text between two quotes: its tail, and whether it is bare."""
        if key := _KEY.fullmatch(piece):
            return key[1], True
        return "" if self._between and self._between.fullmatch(piece) else None, False

    def _mark_at(self, text: str, place: int) -> re.Match[str] | None:
        """The mark of JSON, or the text between two quotes, that stands at a place of a text; no other marker."""
        if self._between and (between := self._between.match(text, place)):
            return between
        return None if self._any_marker and self._any_marker.match(text, place) else self._mark.match(text, place)

    def cut(self, text: str, *, begins: bool) -> Iterator[str]:
        """A text in pieces: its markers, white space around them, the rest; one that begins a rule keeps its space."""
        first, *others = self._any_marker.split(text) if self._any_marker else [text]
        if begins and others and first.isspace():
            yield first + others.pop(0)
        else:
            others.insert(0, first)
        for piece in others:
            inside = piece.strip()
            at = piece.index(inside)
            yield from (part for part in (piece[:at], inside, piece[at + len(inside) :]) if part)

    def is_without(self, mark: str, expr: Expr) -> bool:
        """Whether raw text never holds this mark: one text that is without it, or what has no text in it, nor the mark
        in a set; a format makes that so."""
        match expr:
            case Text(without):
                return mark in without
            case Ref(name):
                return self.is_without(mark, self._regular[name])
            case _:
                return self._has_no(mark, expr)

    def _has_no(self, mark: str, expr: Expr) -> bool:
        match expr:
            case Text():  # which may begin or end with a part of the mark
                return False
            case CharSet():
                return len(mark) > 1 or mark not in expr
            case Ref(name):
                if (mark, name) not in self._unmarked:
                    self._unmarked[mark, name] = self._has_no(mark, self._regular[name])
                return self._unmarked[mark, name]
            case _:
                return all(self._has_no(mark, part) for part in children(expr))

    def are_raw(self, exprs: Iterable[Expr], *, quoted: bool = False) -> bool:
        """Whether these, all regular, are raw text when they stand side by side: no JSON, and without quotes of their
        own no number and no words."""
        facts = _together(map(self._facts, exprs))
        return (
            (facts.sets or quoted)
            and facts.depth <= _DEEPEST
            and facts.size + sum(self._words[name].size for name in facts.words) <= _LARGEST
            and not any(('"' in text and not facts.quotes) or self.marker_end(text) for text in facts.texts)
        )

    def _facts(self, expr: Expr) -> _Facts:
        if is_plain(expr):
            return _own_facts(expr)
        if not isinstance(expr, Ref):
            facts = self._known.get(id(expr))
            if facts is None:
                facts = self._known[id(expr)] = _together(map(self._facts, children(expr)))
            return facts
        if expr.name not in self._words:
            self._words[expr.name] = self._facts(self._regular[expr.name])
        word = self._words[expr.name]
        return word._replace(size=1, words=word.words | {expr.name}, depth=1 + word.depth)


def _together(parts: Iterable[_Facts]) -> _Facts:
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]._replace(size=1 + parts[0].size)
    texts = frozenset[str]().union(*(part.texts for part in parts))
    sets, quotes = any(part.sets for part in parts), any(part.quotes for part in parts)
    words = frozenset[str]().union(*(part.words for part in parts))
    depth = max((part.depth for part in parts), default=0)
    return _Facts(1 + sum(part.size for part in parts), texts, sets, quotes, words, depth)


@found_once
def _own_facts(expr: Expr) -> _Facts:
    """Those of an expression without words, in one walk."""
    texts: set[str] = set()
    sets = quotes = False
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Literal):
            texts.add(part.text)
        elif isinstance(part, CharSet):
            sets = sets or not is_of_digits(part)
            quotes = quotes or _holds_quotes(part)
        elif isinstance(part, Text):
            sets = True
        else:
            waiting += children(part)
    return _Facts(size(expr), frozenset(texts), sets, quotes)


def holds_quotes(expr: Expr) -> bool:
    """Whether an expression has sets of characters that hold a quote, as those of raw text do."""
    return _holds_quotes(expr) if isinstance(expr, CharSet) else any(map(holds_quotes, children(expr)))


@found_once
def _holds_quotes(charset: CharSet) -> bool:
    return '"' in charset and "," in charset  # what is escaped in JSON's strings is a quote too, but no comma


@found_once
def is_of_digits(charset: CharSet) -> bool:
    """Whether the characters are those of numbers alone."""
    return consists_of(charset, DIGITS)


def consists_of(charset: CharSet, characters: frozenset[str]) -> bool:
    """Whether the characters of a set are all among these few of ASCII."""
    return all(high < 128 and characters.issuperset(map(chr, range(low, high + 1))) for low, high in charset.ranges)


def _markers_in(exprs: Iterable[Expr]) -> tuple[dict[str, None], dict[str, None]]:
    """What the texts in expressions are without, and which of it a text stands between."""
    found: dict[str, None] = {}
    quotes: dict[str, None] = {}
    for expr in exprs:
        markers, around = _markers_of(expr) if kinds_in(expr) & TEXT else ((), ())
        found |= dict.fromkeys(markers)
        quotes |= dict.fromkeys(around)
    return found, quotes


def _beside_texts(rules: Rules, used: Uses) -> frozenset[str]:
    """The rules in which there is text that must not begin with something, and those that may begin beside it."""
    around = [
        name
        for name, expr in rules.items()
        if kinds_in(expr) & TEXT and any(mark.startswith(START) for mark in _markers_of(expr)[0])
    ]
    users: dict[str, list[str]] = {}
    for name, parts in used.items():
        for part in parts:
            users.setdefault(part, []).append(name)
    found: set[str] = set()
    waiting = around
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += users.get(name, ())
    waiting = [part for name in found for part in used[name]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _first_in(rules[name])
    return frozenset(found)


def _first_in(expr: Expr) -> tuple[str, ...]:
    """The rules that an expression may begin with, or others where it is no sequence."""
    match expr:
        case Sequence((Literal(), *_)):
            return ()
        case Sequence((Ref(name), *_)):
            return (name,)
        case Choice(options):
            return tuple(chain.from_iterable(map(_first_in, options)))
        case _:
            return names_in(expr)


@found_once
def _texts_in(expr: Expr) -> frozenset[str]:
    """The prescribed texts of an expression."""
    found: set[str] = set()
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Literal):
            found.add(part.text)
            continue
        if isinstance(part, Members):
            found.add(part.between)
        waiting += children(part)
    return frozenset(found)


def _tokens_in(texts: Iterable[str], tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the tokens that stand in the texts, the longest at each place."""
    each, begin = _at_any_place(tokens), {token[0] for token in tokens}
    some = [text for text in texts if not begin.isdisjoint(text)]  # few, since most texts are keys
    return tuple(sorted({found[1] for text in some for found in each.finditer(text)}))


@counted(64)
def _at_any_place(texts: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile(f"(?=({'|'.join(map(re.escape, longest_first))}))")


@found_once
def _markers_of(expr: Expr) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found: dict[str, None] = {}
    quotes: dict[str, None] = {}
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Text):
            found.update(dict.fromkeys(part.without))
        elif isinstance(part, Sequence):
            waiting += part.items
            quotes.update(dict.fromkeys(_quotes_in(part.items)))
        elif not isinstance(part, Literal | CharSet | Ref):
            waiting += children(part)
    return tuple(found), tuple(quotes)


def _quotes_in(items: tuple[Expr, ...]) -> Iterator[str]:
    """What stands before a text in a sequence and ends it, if nothing else begins so: no key, and no JSON string."""
    for before, text, after in zip(items, items[1:], items[2:], strict=False):
        if isinstance(text, Text) and isinstance(before, Literal) and isinstance(after, Literal):
            around = (
                marker for marker in text.without if before.text.endswith(marker) and after.text.startswith(marker)
            )
            yield from (marker for marker in around if not (marker[0] == '"' or _KEY.match(marker[0] + ":")))
