"""The members of objects as expressions: keys that are none of some, and a number of members."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceABC
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Choice,
    Expr,
    Literal,
    Sequence,
    choice,
    not_chars,
    optional,
    repeat,
    seq,
)
from toolgram.schema import types
from toolgram.schema.effort import TooLarge
from toolgram.schema.spelling import KEY_CHAR, KEY_START, Spelling, quoted

_MAX_COUNTED = 50_000  # members times their number
NESTING = 8  # levels inside one expression before a rule breaks it


class KeyLetters(NamedTuple):
    """What keys are made of: what begins with a character that is none of some, at the start and later on, and what
    closes the key."""

    first: Callable[[str], Expr]
    then: Callable[[str], Expr]
    close: str


def _but(charset: CharSet, excluded: str) -> Expr:
    left = not_chars(excluded, *not_chars(*charset.ranges).ranges)
    return seq(left, repeat(KEY_CHAR)) if left.ranges else NOTHING


BARE_LETTERS = KeyLetters(partial(_but, KEY_START), partial(_but, KEY_CHAR), "")


@dataclass(frozen=True, slots=True)
class OtherKeys:
    """Writes keys that are none of some; `later` makes a rule with a name like the hint."""

    letters: KeyLetters
    spelling: Spelling
    hint: str
    later: Callable[[str, Callable[[str], Expr]], Expr]

    def after_prefix(self, names: SequenceABC[str], depth: int = 0) -> Expr:
        """The rest of a key, and its closing quote, that is none of `names`, which share their first characters."""
        if len(names) == 1 and depth:
            return self._after_prefix_of(names[0], depth)
        letters = self.letters
        branches: dict[str, list[str]] = {}
        for name in names:
            branches.setdefault(name[depth : depth + 1], []).append(name)
        options = [(letters.then if depth else letters.first)("".join(branches))]
        for first, group in branches.items():
            if first:
                options.append(seq(self._spelled(first), self._after_more(group, depth + 1)))
        if "" not in branches:
            options.append(Literal(letters.close))
        return choice(*options)

    def _after_prefix_of(self, name: str, depth: int) -> Expr:
        """The same for a single name, from its end; its options differ, which need not be checked at each character."""
        stop = depth - depth % NESTING + NESTING
        rest = self.letters.then("") if len(name) < stop else self._after_more([name], stop)
        close = Literal(self.letters.close)
        for char in reversed(name[depth:stop]):
            further = rest.items if isinstance(rest, Sequence) else (rest,)
            taken = Sequence((Literal(self._spelled(char)), *further))
            rest = Choice((self.letters.then(char), taken, close))
        return rest

    def _spelled(self, char: str) -> str:
        return quoted(char, self.spelling)[1:-1] if self.letters.close else char

    def _after_more(self, names: SequenceABC[str], depth: int) -> Expr:
        if depth % NESTING:
            return self.after_prefix(names, depth)
        return self.later(self.hint, lambda _: self.after_prefix(names, depth))


def some_members(
    kind: types.Object,
    members: SequenceABC[tuple[types.Property, Expr]],
    extra: Expr,
    last: Expr,
    comma: str,
    rule: Callable[[Expr], Expr],
) -> Expr:
    """The members in order, then extra ones, as many as the object may have: a rule for each place and number.

    Where it must have some member, that is the last. Raises TooLarge.
    """

    def end(count: int) -> Expr:
        least = max(kind.min - count, 0)
        most = None if kind.max is None else kind.max - count
        if kind.some:
            if most == 0:
                return NOTHING
            between = repeat(seq(extra, comma), max(least - 1, 0), None if most is None else most - 1)
            return seq(comma if count else "", between, last)
        if extra == NOTHING or most == 0:
            return NOTHING if least else EMPTY
        if count:
            return repeat(seq(comma, extra), least, most)
        more = repeat(seq(comma, extra), max(least - 1, 0), None if most is None else most - 1)
        return seq(extra, more) if least else optional(seq(extra, more))

    most = max(kind.min, 1) if kind.max is None else kind.max  # with more keys nothing changes, or there are none
    if len(members) * min(len(members), most) > _MAX_COUNTED:
        raise TooLarge
    after = [end(count) for count in range(min(len(members), most) + 1)]
    for index in reversed(range(len(members))):
        item, member = members[index]
        here: list[Expr] = []
        for count in range(min(index, most) + 1):
            full = count == most and kind.max is not None
            taken = NOTHING if full else seq(comma if count else "", member, after[min(count + 1, most)])
            body = taken if item.required else choice(taken, after[count])
            here.append(body if index == 0 or body in (NOTHING, EMPTY) else rule(body))
        after = here
    return after[0]


def single(charset: CharSet) -> str | None:
    """The only character of a set, if there is just one."""
    low, high = charset.ranges[0][0], charset.ranges[-1][1]
    return chr(low) if low == high else None


def plain_char(charset: CharSet) -> Expr:
    """One of these characters as it is."""
    only = single(charset)
    return charset if only is None else Literal(only)
