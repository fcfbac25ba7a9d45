"""The same rules in shapes that XGrammar compiles and masks quickly.

For each state of each rule XGrammar computes, before the first token, which tokens of the vocabulary it takes, refuses,
or cannot decide because they lead out of the rule; the last it tries at every mask. It takes most tokens untried where
a rule leads back to itself by the characters that begin it. Hence:

- a loop is a rule that ends with itself; the options of the item stand in it, and what closes the loop does too, so
  that few tokens lead out of it;
- strings of so many characters are written as `ebnf_counts` says;
- strings that are none of some are written as `ebnf_keys` says, and text without some markers as `ebnf_texts` does;
- states that differ in few characters share their steps (`ebnf_steps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from toolgram.grammar.dialects.ebnf_counts import FAR, Counts
from toolgram.grammar.dialects.ebnf_keys import Others
from toolgram.grammar.dialects.ebnf_steps import is_broad, is_one_of_many, shared_steps
from toolgram.grammar.dialects.ebnf_texts import Texts
from toolgram.grammar.ir import (
    EMPTY,
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
    chars,
    children,
    choice,
    repeat,
    seq,
)
from toolgram.grammar.walk import fresh, names_in, with_children

_MOST_COUNTED = 128_000
"""Characters that are counted one by one."""


def shaped(rules: Rules) -> tuple[dict[str, Expr], dict[str, str]]:
    """The rules (simplified, or tidy at least) without unbounded repetitions, in the shapes that are said above.

    With them by the names of some rules those of rules for what comes after them.
    """
    loops = _Loops(rules)
    return shared_steps(loops.rules, loops.lookaheads), loops.lookaheads


def _options(expr: Expr) -> tuple[Expr, ...]:
    return expr.options if isinstance(expr, Choice) else (expr,)


def _separator(text: str) -> str:
    """What of a text that follows a key no value can begin with."""
    return text[: len(text) - len(text.lstrip(":"))]


def _after(rule: str, expr: Expr, then: Expr) -> Iterator[Expr]:
    """What comes after a rule in an expression, before `then`."""
    if expr == Ref(rule):
        yield then
    elif rule in names_in(expr):
        parts = children(expr)
        for number, part in enumerate(parts):
            if isinstance(expr, Sequence):
                yield from _after(rule, part, seq(*parts[number + 1 :], then))
            else:
                yield from _after(rule, part, then if isinstance(expr, Choice) else EMPTY)


def _has_broad(expr: Expr) -> bool:
    return any(map(is_broad, _options(expr)))


@dataclass(slots=True)
class _Loops:
    """Writes unbounded repetitions as rules that end with themselves."""

    source: Rules
    rules: dict[str, Expr] = field(init=False)
    _made: dict[tuple[Expr, int, Expr], Ref] = field(default_factory=dict[tuple[Expr, int, Expr], Ref])
    _rests: dict[Expr, Ref] = field(default_factory=dict[Expr, Ref])
    lookaheads: dict[str, str] = field(default_factory=dict[str, str])
    """By the names of rules those of rules for what comes after them."""
    _counts: dict[tuple[tuple[Expr, ...], Expr, Expr], Counts] = field(
        default_factory=dict[tuple[tuple[Expr, ...], Expr, Expr], Counts]
    )
    """By characters and by what comes then the rules that count them."""
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
        if isinstance(expr, Repeat) and expr.max is None:
            return self._loop(expr, EMPTY, rule)
        if isinstance(expr, Sequence | Repeat):
            body = self.source.get(rule, EMPTY)
            last = any(expr is part for part in (body, *children(body)) if not isinstance(body, Repeat) or part is body)
            items = expr.items if isinstance(expr, Sequence) else (expr,)
            return seq(*self._in_sequence(items, rule, last=last))
        if isinstance(expr, Except):
            return self._key(expr, "", rule)
        if isinstance(expr, Text):
            return self._texts.rule(expr)
        return with_children(expr, lambda part: self._written(part, rule))

    def _in_sequence(self, items: tuple[Expr, ...], rule: str, *, last: bool) -> Iterable[Expr]:
        """The items; a loop takes the first character of the text after it. `last`: they end where the rule does."""
        closer = ""
        for number, (item, after) in enumerate(zip(items, (*items[1:], EMPTY), strict=True)):
            if isinstance(item, Literal):
                yield Literal(item.text.removeprefix(closer))
                closer = ""
            elif isinstance(item, Repeat) and item.max is None:
                closer = after.text[:1] if isinstance(after, Literal) else ""
                yield self._loop(item, Literal(closer), rule)
            elif isinstance(item, Except):
                closer = _separator(after.text) if isinstance(after, Literal) else ""
                yield self._key(item, closer, rule)
            elif isinstance(item, Repeat) and self._is_counted(item):
                closer = after.text[:1] if isinstance(after, Literal) else ""
                stop = self._first(seq(*items[number + 1 :], *([self._follow(rule)] if last else [])))
                counted = self._counted(item, closer, stop, rule) if stop and stop.ranges else None
                closer = closer if counted else ""
                yield counted or with_children(item, lambda part: self._written(part, rule))
            elif isinstance(item, Repeat):
                yield with_children(item, lambda part: self._written(part, rule))
            else:
                yield self._written(item, rule)

    def _key(self, expr: Except, closer: str, rule: str) -> Ref:
        if (expr, closer) not in self._keys:
            kind = expr.char, expr.quote + closer
            if kind not in self._others:
                close = Literal(expr.quote + closer)
                self._others[kind] = Others(expr.raw, self._opened(expr.escaped), expr.quote, close, self.rules)
            self._keys[expr, closer] = self._others[kind].rule(expr, rule)
        return self._keys[expr, closer]

    def _loop(self, whole: Repeat, closer: Expr, rule: str) -> Expr:
        """`whole`, which has no highest count, and then `closer`."""
        item = self._written(self._spelled(whole.item), rule)
        if whole.min == 1 and _has_broad(item):
            return self._rule(item, 1, closer, rule)
        return seq(repeat(self._written(whole.item, rule), whole.min, whole.min), self._rule(item, 0, closer, rule))

    def _is_counted(self, whole: Repeat) -> bool:
        """Whether characters out of many are repeated, and so often that rules for each number are too many."""
        item = self._spelled(whole.item)
        least = 0 if _has_broad(item) else FAR
        return whole.max is not None and least < whole.max <= _MOST_COUNTED and any(map(is_one_of_many, _options(item)))

    def _counted(self, whole: Repeat, closer: str, stop: CharSet, rule: str) -> Expr:
        """So many characters and then `closer`; the next character is one of `stop`."""
        item = self._written(self._spelled(whole.item), rule)
        kind = tuple([self._opened(option) for option in _options(item)]), Literal(closer), stop
        if kind not in self._counts:
            self._counts[kind] = Counts(*kind, self.rules, self.lookaheads, fresh(f"{rule}-of", self.rules))
        return self._counts[kind].so_many(whole.min, whole.max or 0)

    def _follow(self, rule: str) -> Expr:
        """What comes after a rule where others use it, so far as these go."""
        found = [after for body in self.source.values() for after in _after(rule, body, EMPTY)]
        return choice(*found) if found else EMPTY

    def _first(self, expr: Expr) -> CharSet | None:
        """The characters with which an expression begins; None where they are not known, or there need be none."""
        match expr:
            case Literal(text):
                return chars(text[0]) if text else None
            case CharSet():
                return expr
            case Token(text, None):
                return chars(text[0])
            case Sequence((Choice(options), *others)) if EMPTY in options:
                some = [seq(option, *others) for option in options]
                return self._first(Choice(tuple(some)))
            case Sequence((item, *_)):
                return self._first(item)
            case Choice(options):
                found = [self._first(option) for option in options]
                return None if None in found else chars(*(pair for each in found if each for pair in each.ranges))
            case Repeat(item, low) if low:
                return self._first(item)
            case _:
                return None

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
