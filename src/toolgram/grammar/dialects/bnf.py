"""What the two BNF-like dialects share: lowering to what they can say, and printing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as SequenceABC
from dataclasses import dataclass, field

from toolgram.caching import counted
from toolgram.errors import GrammarError
from toolgram.grammar.excepts import Trees
from toolgram.grammar.ir import (
    EMPTY,
    MAX_CODE_POINT,
    CharSet,
    Choice,
    Except,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Text,
    Token,
    choice,
    is_empty,
    not_chars,
    repeat,
    seq,
)
from toolgram.grammar.names import dashed
from toolgram.grammar.until import automaton, text_rules
from toolgram.grammar.walk import fresh, with_children

_ANY = not_chars()
_CHUNK = 1000
"""How many copies a part of a repetition holds that is too long for the dialect."""
_MOST_RULES = 1000
"""A group that is repeated is named where it would become more rules, its copies included, in the engine."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """Where the dialects differ."""

    escape: str
    """How a character below 256 is escaped, as a %-format of its code."""
    token: Callable[[int], str]
    """How the token of an id is written."""
    text: Callable[[list[str]], str] | None = None
    """How text without some markers is written, given these as literals."""
    any_char: str | None = None
    """How any character is written, if not as a class."""
    ranges: Callable[[CharSet], SequenceABC[tuple[int, int]]] | None = None
    """The ranges of a class, where none is negated."""


def write(rules: Rules, syntax: Syntax, lookaheads: Mapping[str, str] | None = None) -> str:
    """Rules that are lowered as text, one a line, `root` first, in the order of their first use.

    In place of a rule that only names another stands that other. `lookaheads` are for XGrammar: by the names of rules
    those of rules for what comes after them.
    """
    ahead = lookaheads or {}
    aliases = {name: body.name for name, body in rules.items() if isinstance(body, Ref) and name != "root"}
    printer = _Printer(syntax, aliases)
    lines: dict[str, str] = {}
    waiting = ["root"]
    while waiting:
        if (name := waiting.pop()) not in lines:
            printer.used.clear()
            body = printer.top(rules[name]) + (f" (= {printer.top(Ref(ahead[name]))})" if name in ahead else "")
            lines[name] = f"{printer.names[name]} ::= {body}\n"
            waiting.extend(reversed(printer.used))
    return "".join(lines.values())


def lowered(rules: Rules, most: int) -> dict[str, Expr]:
    """The rules (simplified, or tidy at least) in what a dialect can say that repeats things so often at most."""
    return _Lowering(rules, most).rules


def text_rule(text: Text, rules: dict[str, Expr]) -> Ref:
    """Adds the rules for a text; gives the first of them."""
    added = text_rules(text, text_stem(rules, len(automaton(text.without, text.seen))))
    rules.update(added)
    return Ref(next(iter(added)))


def text_stem(rules: Rules, count: int) -> str:
    """How the names of so many rules for the next text begin, which are numbered from 0: none of them is taken."""
    stem, number = "text", 1
    while any(f"{stem}-{state}" in rules for state in range(count)):
        number += 1
        stem = f"text{number}"
    return stem


@dataclass(slots=True)
class _Lowering:
    """Rewrites rules to what a dialect can say; rules that this takes are added to those there are."""

    source: Rules
    most: int
    """The highest count of a repetition."""
    rules: dict[str, Expr] = field(init=False)
    _made: dict[Expr, str] = field(default_factory=dict[Expr, str])
    """The rules made for texts and long repetitions, by the expression that they stand for."""

    _trees: Trees = field(init=False)

    def __post_init__(self) -> None:
        self.rules = dict(self.source)
        self._trees = Trees(self.rules)
        for name, expr in self.source.items():
            self.rules[name] = self._lower(expr, name)

    def _lower(self, expr: Expr, rule: str) -> Expr:
        if isinstance(expr, Sequence):
            return with_children(expr, lambda part: self._lower(part, rule))
        if isinstance(expr, Choice):
            options = with_children(expr, lambda part: self._lower(part, rule))
            return self._light(options, 1, rule) if EMPTY in expr.options else options
        if isinstance(expr, Repeat):
            return self._repeat(expr, self._lower(expr.item, rule), rule)
        if isinstance(expr, Except):
            return self._trees.rule(expr, rule)
        if isinstance(expr, Text) and expr not in self._made:
            self._made[expr] = text_rule(expr, self.rules).name
        return Ref(self._made[expr]) if isinstance(expr, Text) else expr

    def _repeat(self, whole: Repeat, item: Expr, rule: str) -> Expr:
        times = self._times(item, whole.min, whole.max, rule)
        return whole if times == whole else times

    def _times(self, item: Expr, low: int, high: int | None, rule: str) -> Expr:
        most = self.most
        item = self._light(item, low if high is None else high, rule)
        if low <= most and (high is None or high <= most):
            return repeat(item, low, high)
        if not isinstance(item, Ref | CharSet):
            item = self._named(f"{rule}-item", item)
        chunk = self._named(f"{rule}-chunk", Repeat(item, _CHUNK, _CHUNK))
        exact = self._exactly(item, chunk, low, rule)
        if high is None:
            return seq(exact, repeat(item))
        return seq(exact, self._up_to(item, chunk, high - low, rule))

    def _exactly(self, item: Expr, chunk: Expr, count: int, rule: str) -> Expr:
        chunks, rest = divmod(count, _CHUNK)
        return seq(self._times(chunk, chunks, chunks, rule), repeat(item, rest, rest))

    def _up_to(self, item: Expr, chunk: Expr, count: int, rule: str) -> Expr:
        """Some chunks and less than one more, or all of them and the rest: no count is met in two ways."""
        chunks, rest = divmod(count, _CHUNK)
        if not chunks:
            return repeat(item, 0, rest)
        return choice(
            seq(self._times(chunk, 0, chunks - 1, rule), repeat(item, 0, _CHUNK - 1)),
            seq(self._times(chunk, chunks, chunks, rule), repeat(item, 0, rest)),
        )

    def _light(self, item: Expr, count: int, rule: str) -> Expr:
        """The item, or a rule for it where the engine would make too many rules of so many copies of it."""
        if _weight(item) * max(count, 1) <= _MOST_RULES:
            return item
        return self._named(f"{rule}-item", item)

    def _named(self, name: str, expr: Expr) -> Ref:
        if expr not in self._made:
            self._made[expr] = fresh(name, self.rules)
            self.rules[self._made[expr]] = expr
        return Ref(self._made[expr])


def _weight(expr: Expr) -> int:
    """How many rules llama.cpp makes of an expression, about: one for each group and for each copy that is optional."""
    match expr:
        case Choice(options):
            return 1 + sum(map(_weight, options))
        case Sequence(items):
            return sum(map(_weight, items))
        case Repeat(item, low, high):
            return 1 + _weight(item) + (1 if high is None else high - low)
        case _:
            return 0


@dataclass(slots=True)
class _Printer:
    """Lowered expressions as text."""

    syntax: Syntax
    aliases: Mapping[str, str]
    """For rules that only name another that other."""
    names: dict[str, str] = field(default_factory=lambda: {"root": "root"})
    """What each rule that was met is called in the dialect."""
    used: list[str] = field(default_factory=list[str])
    """The rules that were met, in order; whoever prints clears it."""
    _taken: set[str] = field(default_factory=lambda: {"root"})

    def top(self, expr: Expr) -> str:
        if not isinstance(expr, Choice):
            return self._sequence(expr)
        options = expr.options
        if EMPTY in options:  # XGrammar refuses some rules whose first alternative is empty
            options = sorted(options, key=is_empty)
        return " | ".join([self._sequence(option) for option in options])

    def _sequence(self, expr: Expr) -> str:
        if not isinstance(expr, Sequence):
            return self._item(expr)
        return " ".join([self._item(item) for item in expr.items])

    def _item(self, expr: Expr) -> str:
        if isinstance(expr, Ref):
            return self._name(expr.name)
        match expr:
            case Literal(text) | Token(text, None):
                return _literal(text, self.syntax.escape)
            case Token(_, int() as number):
                return self.syntax.token(number)
            case CharSet():
                syntax = self.syntax
                any_char = syntax.any_char if expr == _ANY else None
                return any_char or _char_class(expr, syntax.escape, syntax.ranges)
            case Repeat(item, low, high):
                return self._repeated(item) + _times(low, high)
            case Choice(options) if EMPTY in options:
                some = tuple([option for option in options if not is_empty(option)])
                return self._repeated(some[0] if len(some) == 1 else Choice(some)) + "?"
            case Choice() | Sequence():
                return f"({self.top(expr)})"
            case Text(without, "") if self.syntax.text:
                return self.syntax.text([_literal(marker, self.syntax.escape) for marker in _least(without)])
            case _:
                raise GrammarError(f"not lowered: {expr!r}")

    def _name(self, rule: str) -> str:
        while rule in self.aliases:
            rule = self.aliases[rule]
        self.used.append(rule)
        if rule not in self.names:
            self.names[rule] = name = dashed(rule, self._taken)
            self._taken.add(name)
        return self.names[rule]

    def _repeated(self, expr: Expr) -> str:
        """An item to which a repetition can be added: two of them in a row are read in more than one way."""
        text = self._item(expr)
        doubled = isinstance(expr, Repeat) or (isinstance(expr, Choice) and any(map(is_empty, expr.options)))
        return f"({text})" if doubled else text


def _times(low: int, high: int | None) -> str:
    match low, high:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _, None:
            return f"{{{low},}}"
        case _:
            return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _literal(text: str, escape: str) -> str:
    """The text between quotes; what is not printable is escaped, and all else is itself."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    if not quoted.isprintable():
        quoted = "".join([_escaped(char, escape) for char in quoted])
    return f'"{quoted}"'


def _least(markers: SequenceABC[str]) -> list[str]:
    """Those that hold no other one: without these there are the others neither, and XGrammar before 0.2.8 would miss
    one within another."""
    return [marker for marker in markers if not any(other in marker for other in markers if other != marker)]


@counted(1024)
def _char_class(charset: CharSet, escape: str, ranges: Callable[[CharSet], SequenceABC[tuple[int, int]]] | None) -> str:
    """The set between brackets; without `ranges` negated where it reaches to the last code point."""
    negated = ranges is None and charset.ranges[-1][1] == MAX_CODE_POINT
    spans = not_chars(*charset.ranges).ranges if negated else ranges(charset) if ranges else charset.ranges
    return f"[{'^' if negated else ''}{''.join(_range(low, high, escape) for low, high in spans)}]"


def _range(low: int, high: int, escape: str) -> str:
    dash = "" if high <= low + 1 else "-"
    return _class_char(low, escape) + dash + (_class_char(high, escape) if high > low else "")


def _class_char(code: int, escape: str) -> str:
    char = chr(code)
    if char in "\\]":
        return f"\\{char}"
    # A dash and a caret mean something else, depending on their place, and llama.cpp has no short escape for a caret.
    return escape % code if char in "-^[" else _escaped(char, escape)


_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(char: str, escape: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:
        return escape % code
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
