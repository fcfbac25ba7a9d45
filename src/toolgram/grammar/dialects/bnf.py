"""What the two BNF-like dialects share: lowering to what they can say, and printing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from toolgram.errors import GrammarError
from toolgram.grammar.ir import (
    EMPTY,
    MAX_CODE_POINT,
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
    choice,
    not_chars,
    repeat,
    seq,
)
from toolgram.grammar.names import dashed
from toolgram.grammar.tidy import tidy
from toolgram.grammar.until import text_rules
from toolgram.grammar.walk import fresh, reachable, renamed, with_children

_CHUNK = 1000
"""How many copies a part of a repetition holds that is too long for the dialect."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """Where the dialects differ."""

    any_char: str
    escape: str
    """How a character below 256 is escaped, as a %-format of its code."""
    token: Callable[[int], str]
    """How the token of an id is written."""
    most: int | None
    """The highest count of a repetition; None for any."""
    loops: bool
    """Whether an unbounded repetition is written as a right-recursive rule."""


def write(rules: Rules, syntax: Syntax) -> str:
    """The rules as text, one a line, `root` first, in the order of their first use.

    Raises GrammarError for a reference that is not defined, and for a grammar without a sentence.
    """
    lowered = _Lowering(tidy(rules), syntax).rules
    names = dashed(lowered)
    lines = [f"{names[name]} ::= {_top(renamed(expr, names), syntax)}\n" for name, expr in lowered.items()]
    return "".join(lines)


@dataclass(slots=True)
class _Lowering:
    """Rewrites rules to what a dialect can say; rules that this takes are added to those there are."""

    source: Rules
    syntax: Syntax
    rules: dict[str, Expr] = field(init=False)
    _made: dict[Expr, str] = field(default_factory=dict[Expr, str])
    """The rules made for texts and loops, by the expression that they stand for."""

    def __post_init__(self) -> None:
        self.rules = dict(self.source)
        for name, expr in self.source.items():
            self.rules[name] = self._lower(expr, name)
        self.rules = reachable(self.rules)

    def _lower(self, expr: Expr, rule: str) -> Expr:
        match expr:
            case Text():
                return Ref(self._made.get(expr) or self._add_text(expr))
            case Repeat(item, low, high):
                return self._repeat(self._lower(item, rule), low, high, rule)
            case _:
                return with_children(expr, lambda part: self._lower(part, rule))

    def _add_text(self, text: Text) -> str:
        stem, number = "text", 1
        while f"{stem}-0" in self.rules:
            number += 1
            stem = f"text{number}"
        added = text_rules(text, stem)
        self.rules.update(added)
        self._made[text] = next(iter(added))
        return self._made[text]

    def _repeat(self, item: Expr, low: int, high: int | None, rule: str) -> Expr:
        if high is None and self.syntax.loops:
            return seq(self._times(item, low, low, rule), Ref(self._loop(item, rule)))
        return self._times(item, low, high, rule)

    def _loop(self, item: Expr, rule: str) -> str:
        """The rule of any number of items. Its options begin with the item's own, so that a mask looks no deeper."""
        whole = Repeat(item, 0, None)
        if whole not in self._made:
            name = self._made[whole] = fresh(f"{rule}-more", self.rules)
            options = item.options if isinstance(item, Choice) else (item,)
            self.rules[name] = choice(*(seq(option, Ref(name)) for option in options), EMPTY)
        return self._made[whole]

    def _times(self, item: Expr, low: int, high: int | None, rule: str) -> Expr:
        most = self.syntax.most
        if most is None or (low <= most and (high is None or high <= most)):
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

    def _named(self, name: str, expr: Expr) -> Ref:
        if expr not in self._made:
            self._made[expr] = fresh(name, self.rules)
            self.rules[self._made[expr]] = expr
        return Ref(self._made[expr])


def _top(expr: Expr, syntax: Syntax) -> str:
    if not isinstance(expr, Choice):
        return _sequence(expr, syntax)
    # XGrammar refuses some rules whose first alternative is empty.
    options = sorted(expr.options, key=lambda option: option == EMPTY)
    return " | ".join(_sequence(option, syntax) for option in options)


def _sequence(expr: Expr, syntax: Syntax) -> str:
    items = expr.items if isinstance(expr, Sequence) else (expr,)
    return " ".join(_item(item, syntax) for item in items)


def _item(expr: Expr, syntax: Syntax) -> str:
    match expr:
        case Literal(text) | Token(text, None):
            return _literal(text, syntax)
        case Token(_, int() as number):
            return syntax.token(number)
        case CharSet():
            return syntax.any_char if expr == not_chars() else _char_class(expr, syntax)
        case Ref(name):
            return name
        case Repeat(item, low, high):
            return _repeated(item, syntax) + _times(low, high)
        case Choice(options) if EMPTY in options:
            return _repeated(choice(*(option for option in options if option != EMPTY)), syntax) + "?"
        case Choice() | Sequence():
            return f"({_top(expr, syntax)})"
        case _:
            raise GrammarError(f"not lowered: {expr!r}")


def _repeated(expr: Expr, syntax: Syntax) -> str:
    """An item to which a repetition can be added: two of them in a row are read in more than one way."""
    text = _item(expr, syntax)
    doubled = isinstance(expr, Repeat) or (isinstance(expr, Choice) and EMPTY in expr.options)
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


def _literal(text: str, syntax: Syntax) -> str:
    """The text between quotes; what is not printable is escaped, and all else is itself."""
    return '"' + "".join(f"\\{char}" if char in '"\\' else _escaped(char, syntax) for char in text) + '"'


def _char_class(charset: CharSet, syntax: Syntax) -> str:
    """The set between brackets, negated where it reaches to the last code point."""
    negated = charset.ranges[-1][1] == MAX_CODE_POINT
    ranges = not_chars(*charset.ranges).ranges if negated else charset.ranges
    return f"[{'^' if negated else ''}{''.join(_range(low, high, syntax) for low, high in ranges)}]"


def _range(low: int, high: int, syntax: Syntax) -> str:
    dash = "" if high <= low + 1 else "-"
    return _class_char(low, syntax) + dash + (_class_char(high, syntax) if high > low else "")


def _class_char(code: int, syntax: Syntax) -> str:
    char = chr(code)
    if char in "\\]":
        return f"\\{char}"
    # A dash and a caret mean something else, depending on their place, and llama.cpp has no short escape for a caret.
    return syntax.escape % code if char in "-^[" else _escaped(char, syntax)


_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(char: str, syntax: Syntax) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:
        return syntax.escape % code
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
