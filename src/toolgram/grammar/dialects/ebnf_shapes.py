"""The same rules in shapes that XGrammar compiles and masks quickly.

For each state of each rule XGrammar computes, before the first token, which tokens of the vocabulary it takes, refuses,
or cannot decide because they lead out of the rule; the last it tries at every mask. It takes most tokens untried where
a rule leads back to itself by the characters that begin it. Hence:

- a loop is a rule that ends with itself; the options of the item stand in it, and what closes the loop does too, so
  that few tokens lead out of it;
- "any character but some, then the rest", which stands at each letter of the keys that an object declares, is cut into
  classes of characters that are rules of their own: each token is tried for one of them, and not once for each letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeGuard

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
    chars,
    children,
    choice,
    repeat,
    seq,
)
from toolgram.grammar.walk import fresh, reachable, renamed, with_children

_BROAD = 1000
"""Characters in a row; a set of more takes a good part of any vocabulary."""

_ALWAYS_APART = (chars(" "), chars((0x30, 0x39), (0x41, 0x5A), "_", (0x61, 0x7A)))
"""Cut apart in all grammars, so that XGrammar, which keeps the masks of rules, tries these tokens once for all."""


def shaped(rules: Rules) -> dict[str, Expr]:
    """The rules (simplified, or tidy at least) without unbounded repetitions, in the shapes that are said above."""
    return reachable(_Classes(_without_aliases(_Loops(rules).rules)).rules)


def _options(expr: Expr) -> tuple[Expr, ...]:
    return expr.options if isinstance(expr, Choice) else (expr,)


def _is_broad(expr: Expr) -> TypeGuard[CharSet]:
    return isinstance(expr, CharSet) and expr.ranges[-1][1] - expr.ranges[-1][0] > _BROAD


def _has_broad(expr: Expr) -> bool:
    return any(map(_is_broad, _options(expr)))


def _plain(charset: CharSet) -> Expr:
    """A set of one character as a literal."""
    (low, high), *others = charset.ranges
    return charset if others or low < high else Literal(chr(low))


def _without_aliases(rules: Rules) -> dict[str, Expr]:
    """The rules without those that only name another."""
    names = {name: body.name for name, body in rules.items() if isinstance(body, Ref) and name != "root"}
    for name in names:
        while (target := names[name]) in names:
            names[name] = names[target]
    return reachable({name: renamed(body, names) for name, body in rules.items()})


@dataclass(slots=True)
class _Loops:
    """Writes unbounded repetitions as rules that end with themselves."""

    source: Rules
    rules: dict[str, Expr] = field(init=False)
    _made: dict[tuple[Expr, int, Expr], Ref] = field(default_factory=dict[tuple[Expr, int, Expr], Ref])
    _rests: dict[Expr, Ref] = field(default_factory=dict[Expr, Ref])

    def __post_init__(self) -> None:
        self.rules = dict(self.source)
        for name, expr in self.source.items():
            self.rules[name] = self._written(expr, name)

    def _written(self, expr: Expr, rule: str) -> Expr:
        if isinstance(expr, Sequence):
            return seq(*self._in_sequence(expr.items, rule))
        if isinstance(expr, Repeat) and expr.max is None:
            return self._loop(expr, EMPTY, rule)
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
            else:
                yield self._written(item, rule)

    def _loop(self, whole: Repeat, closer: Expr, rule: str) -> Expr:
        """`whole`, which has no highest count, and then `closer`."""
        item = self._written(self._spelled(whole.item), rule)
        if whole.min == 1 and _has_broad(item):
            return self._rule(item, 1, closer, rule)
        return seq(repeat(self._written(whole.item, rule), whole.min, whole.min), self._rule(item, 0, closer, rule))

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


class _Place(NamedTuple):
    """A sequence of what is before, a character of a broad set or else, a rule for the rest, and what comes then."""

    before: Expr
    char: Expr
    rest: Ref
    then: Expr


@dataclass(slots=True)
class _Classes:
    """Cuts the choices of a broad set of characters that differ in the set alone."""

    rules: dict[str, Expr]
    _classes: dict[Ref, list[CharSet]] = field(default_factory=dict[Ref, list[CharSet]])
    """By the rule that follows some broad sets, the classes of their characters that they do not tell apart."""
    _made: dict[tuple[CharSet, Ref], Ref] = field(default_factory=dict[tuple[CharSet, Ref], Ref])
    """By the characters and the rule that follows them, a rule for both."""

    def __post_init__(self) -> None:
        places = {name: found for name, expr in self.rules.items() if (found := [*self._places(expr, name)])}
        sets: dict[Ref, dict[CharSet, None]] = {}
        for place in (place for found in places.values() for place in found):
            sets.setdefault(place.rest, {}).update((each, None) for each in _options(place.char) if _is_broad(each))
        self._classes = {rest: _classes([*found]) for rest, found in sets.items() if len(found) > 1}
        for name in places:
            self.rules[name] = self._cut(self.rules[name], name)

    def _places(self, expr: Expr, rule: str) -> Iterator[_Place]:
        place = self._place(expr, rule)
        if place:
            yield place
        for part in (place.before, place.char, place.then) if place else children(expr):
            yield from self._places(part, rule)

    def _place(self, expr: Expr, rule: str) -> _Place | None:
        """Where in a sequence a character of a broad set is followed by a rule.

        That is not the rule itself: what leads back to it makes a loop quick.
        """
        items = expr.items if isinstance(expr, Sequence) else ()
        for index, (item, after) in enumerate(pairwise(items)):
            char = self.rules[item.name] if isinstance(item, Ref) else item
            if _has_broad(char) and isinstance(after, Ref) and after.name != rule:
                return _Place(seq(*items[:index]), char, after, seq(*items[index + 2 :]))
        return None

    def _cut(self, expr: Expr, rule: str) -> Expr:
        place = self._place(expr, rule)
        if place is None or place.rest not in self._classes:
            return with_children(expr, lambda part: self._cut(part, rule))
        options = [
            self._one_of(option, place.rest) if _is_broad(option) else seq(self._cut(option, rule), place.rest)
            for option in _options(place.char)
        ]
        return seq(self._cut(place.before, rule), choice(*options), self._cut(place.then, rule))

    def _one_of(self, broad: CharSet, rest: Ref) -> Ref:
        """One of the characters and the rest: a rule that is a choice of a rule for each class."""
        if (broad, rest) not in self._made:
            inside = [each for each in self._classes[rest] if chr(each.ranges[0][0]) in broad]
            self._made[broad, rest] = self._rule(
                f"{rest.name}-but", choice(*(self._class(each, rest) for each in inside))
            )
        return self._made[broad, rest]

    def _class(self, each: CharSet, rest: Ref) -> Ref:
        if (each, rest) not in self._made:
            self._made[each, rest] = self._rule(f"{rest.name}-from", seq(_plain(each), rest))
        return self._made[each, rest]

    def _rule(self, name: str, expr: Expr) -> Ref:
        name = fresh(name, self.rules)
        self.rules[name] = expr
        return Ref(name)


def _classes(sets: list[CharSet]) -> list[CharSet]:
    """The characters of these sets, those together that are in the same sets, and in the same ones always apart."""
    cuts = [*sets, *_ALWAYS_APART]
    borders = sorted({border for each in cuts for low, high in each.ranges for border in (low, high + 1)})
    found: dict[tuple[CharSet, ...], list[tuple[int, int]]] = {}
    for low, after in pairwise(borders):
        if any(chr(low) in each for each in sets):
            inside = tuple([each for each in cuts if chr(low) in each])
            found.setdefault(inside, []).append((low, after - 1))
    return [chars(*ranges) for ranges in found.values()]
