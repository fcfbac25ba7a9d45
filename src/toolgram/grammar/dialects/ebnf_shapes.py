"""The same rules in shapes that XGrammar compiles and masks quickly.

For each state of each rule XGrammar computes, before the first token, which tokens of the vocabulary it takes, refuses,
or cannot decide because they lead out of the rule; the last it tries at every mask. It takes most tokens untried where
a rule leads back to itself by the characters that begin it. Hence:

- a loop is a rule that ends with itself; the options of the item stand in it, and what closes the loop does too, so
  that few tokens lead out of it;
- a string of a few characters at most is a rule for each number of them that is left, which ends with the quote;
- strings that are none of some are written as `ebnf_keys` says, and text without some markers as `ebnf_texts` does;
- states that differ in few characters share their steps (`ebnf_steps`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolgram.grammar.dialects.ebnf_keys import Others
from toolgram.grammar.dialects.ebnf_steps import is_broad, shared_steps
from toolgram.grammar.dialects.ebnf_texts import Texts
from toolgram.grammar.ir import (
    EMPTY,
    Choice,
    Except,
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
from toolgram.grammar.walk import fresh, with_children

_MOST_COUNTED = 256
"""Characters that are counted by a rule for each number: compiling a rule takes some 8 ms over 49,000 tokens, while a
repetition with bounds takes a second at every mask."""
_BLOCK = 128
"""More of them are counted in blocks of so many. Tokens that lead out of a block are tried at every mask: next to none
at its beginning, and all at its end."""
_MOST_BLOCKS = 1000


def shaped(rules: Rules) -> dict[str, Expr]:
    """The rules (simplified, or tidy at least) without unbounded repetitions, in the shapes that are said above."""
    return shared_steps(_Loops(rules).rules)


def _options(expr: Expr) -> tuple[Expr, ...]:
    return expr.options if isinstance(expr, Choice) else (expr,)


def _separator(text: str) -> str:
    """What of a text that follows a key no value can begin with."""
    return text[: len(text) - len(text.lstrip(":"))]


def _has_broad(expr: Expr) -> bool:
    return any(map(is_broad, _options(expr)))


@dataclass(slots=True)
class _Loops:
    """Writes unbounded repetitions as rules that end with themselves."""

    source: Rules
    rules: dict[str, Expr] = field(init=False)
    _made: dict[tuple[Expr, int, Expr], Ref] = field(default_factory=dict[tuple[Expr, int, Expr], Ref])
    _rests: dict[Expr, Ref] = field(default_factory=dict[Expr, Ref])
    _counts: dict[tuple[Expr, int, int, Expr], Ref] = field(default_factory=dict[tuple[Expr, int, int, Expr], Ref])
    """By an item, how often it comes at least and at most, and what comes then, the rule for that."""
    _others: dict[tuple[Expr, str], Others] = field(default_factory=dict[tuple[Expr, str], Others])
    """By the characters of strings the rules for those that are none of some."""
    _keys: dict[tuple[Except, str], Ref] = field(default_factory=dict[tuple[Except, str], Ref])
    _texts: Texts = field(init=False)

    def __post_init__(self) -> None:
        self.rules = dict(self.source)
        self._texts = Texts(self.rules)
        for name, expr in self.source.items():
            self.rules[name] = self._written(expr, name)
        for others in self._others.values():
            others.finish()

    def _written(self, expr: Expr, rule: str) -> Expr:
        if isinstance(expr, Sequence):
            return seq(*self._in_sequence(expr.items, rule))
        if isinstance(expr, Repeat) and expr.max is None:
            return self._loop(expr, EMPTY, rule)
        if isinstance(expr, Except):
            return self._key(expr, "", rule)
        if isinstance(expr, Text):
            return self._texts.rule(expr)
        return with_children(expr, lambda part: self._written(part, rule))

    def _in_sequence(self, items: tuple[Expr, ...], rule: str) -> Iterable[Expr]:
        """The items; a loop takes the first character of the text after it."""
        closer = ""
        for item, after in zip(items, (*items[1:], EMPTY), strict=True):
            if isinstance(item, Literal):
                yield Literal(item.text.removeprefix(closer))
                closer = ""
            elif isinstance(item, Repeat) and item.max is None:
                closer = after.text[:1] if isinstance(after, Literal) else ""
                yield self._loop(item, Literal(closer), rule)
            elif isinstance(item, Except):
                closer = _separator(after.text) if isinstance(after, Literal) else ""
                yield self._key(item, closer, rule)
            elif isinstance(item, Repeat) and isinstance(after, Literal) and self._is_counted(item):
                closer = after.text[:1]
                yield self._counted(item, item.min, item.max or 0, Literal(closer), rule)
            else:
                yield self._written(item, rule)

    def _key(self, expr: Except, closer: str, rule: str) -> Ref:
        if (expr, closer) not in self._keys:
            kind = expr.char, closer
            if kind not in self._others:
                self._others[kind] = Others(expr.raw, self._opened(expr.escaped), Literal('"' + closer), self.rules)
            self._keys[expr, closer] = self._others[kind].rule(expr, rule)
        return self._keys[expr, closer]

    def _loop(self, whole: Repeat, closer: Expr, rule: str) -> Expr:
        """`whole`, which has no highest count, and then `closer`."""
        item = self._written(self._spelled(whole.item), rule)
        if whole.min == 1 and _has_broad(item):
            return self._rule(item, 1, closer, rule)
        return seq(repeat(self._written(whole.item, rule), whole.min, whole.min), self._rule(item, 0, closer, rule))

    def _is_counted(self, whole: Repeat) -> bool:
        return whole.max is not None and whole.max <= _BLOCK * _MOST_BLOCKS and _has_broad(self._spelled(whole.item))

    def _counted(self, whole: Repeat, low: int, high: int, closer: Expr, rule: str) -> Expr:
        """So many of the characters that `whole` repeats, and then `closer`."""
        blocks = max(-(-(high - _MOST_COUNTED) // _BLOCK), 0)
        item = self._written(self._spelled(whole.item), rule)
        rest = self._countdown(item, max(low - blocks * _BLOCK, 0), high - blocks * _BLOCK, closer, rule)
        for more in range(blocks - 1, -1, -1):
            least, most = max(low - more * _BLOCK, 0), high - more * _BLOCK
            key = (item, least, most, closer)
            if key not in self._counts:
                options = [seq(self._countdown(item, _BLOCK, _BLOCK, EMPTY, rule), rest)]
                if least < _BLOCK:
                    options.append(self._countdown(item, least, _BLOCK - 1, closer, rule))
                self._counts[key] = Ref(fresh(f"{rule}-blocks", self.rules))
                self.rules[self._counts[key].name] = choice(*options)
            rest = self._counts[key]
        return rest

    def _countdown(self, item: Expr, low: int, high: int, closer: Expr, rule: str) -> Expr:
        """The same by a rule for each number that may still come."""
        if high == 0:
            return closer
        if (item, low, high, closer) in self._counts:
            return self._counts[item, low, high, closer]
        options = [self._opened(option) for option in _options(item)]
        rest = closer
        for left in range(1, high + 1):
            least = max(low - high + left, 0)
            key = (item, least, left, closer)
            if key not in self._counts:
                self._counts[key] = Ref(fresh(f"{rule}-{left}-more", self.rules))
                ends = [] if least else [closer]
                self.rules[self._counts[key].name] = choice(*(seq(option, rest) for option in options), *ends)
            rest = self._counts[key]
        return rest

    def _spelled(self, item: Expr) -> Expr:
        """The item; in place of a rule for one character what that rule says."""
        body = self.source[item.name] if isinstance(item, Ref) else item
        return body if _has_broad(body) else item

    def _rule(self, item: Expr, low: int, closer: Expr, rule: str) -> Ref:
        key = (item, low, closer)
        if key not in self._made:
            self._made[key] = again = Ref(fresh(f"{rule}-more", self.rules))
            options = [self._opened(option) for option in _options(item)] if _has_broad(item) else _options(item)
            ends = [seq(option, closer) for option in options] if low else [closer]
            self.rules[again.name] = choice(*(seq(option, again) for option in options), *ends)
        return self._made[key]

    def _opened(self, option: Expr) -> Expr:
        """In place of a rule that begins with a text that text, and a rule for what follows: then less is predicted."""
        if not isinstance(option, Ref):
            return option
        body = self.source[option.name]
        if not isinstance(body, Sequence) or not isinstance(body.items[0], Literal):
            return option
        rest = self._written(seq(*body.items[1:]), option.name)
        if rest not in self._rests:
            self._rests[rest] = Ref(fresh(f"{option.name}-rest", self.rules))
            self.rules[self._rests[rest].name] = rest
        return seq(body.items[0], self._rests[rest])
