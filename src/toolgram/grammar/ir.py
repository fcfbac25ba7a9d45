"""The one form of a grammar that everything else reads and writes.

An expression denotes a set of strings of Unicode code points (surrogates excluded). A `Grammar` is a set of named
expressions with a root. Nothing here is left-recursive; `Grammar` refuses that when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from toolgram.grammar.hashing import HashedOnce, value

MAX_CODE_POINT = 0x10FFFF
START = "\ud800"
"""What stands before the first character of a text, and nowhere in one: a surrogate is no character."""
END = "\ud801"
"""What stands after the last character of a text."""
_SURROGATES = (0xD800, 0xDFFF)
MUST = frozenset("1!")
"""How items of `Members` occur that must be there."""


@value
class Literal:
    """Exactly this text; "" is the empty string."""

    text: str

    def __hash__(self) -> int:
        return hash(self.text)  # which a text remembers, and a tuple of it does not


@value
class CharSet(HashedOnce):
    """One code point out of `ranges`: sorted, disjoint, not adjacent, both ends included, without surrogates.

    Make it with `chars` or `not_chars`, which keep that form.
    """

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, char: str) -> bool:
        code = ord(char)
        return any(low <= code <= high for low, high in self.ranges)


@value
class Sequence(HashedOnce):
    """These, one after the other."""

    items: tuple[Expr, ...]


@value
class Choice(HashedOnce):
    """Any one of these; with no options at all it matches nothing, not even the empty string."""

    options: tuple[Expr, ...]


@value
class Repeat(HashedOnce):
    """`item`, at least `min` and at most `max` times (None: any number)."""

    item: Expr
    min: int
    max: int | None


@value
class Ref:
    """The rule of this name."""

    name: str


@value
class Token:
    """A marker of the wire format: with an `id` that one token of the vocabulary, else its text however spelled."""

    text: str
    id: int | None = None


@value
class Text:
    """Any text, the empty one included, that contains none of `without`.

    `seen` is what came just before, so far as it may begin one of them: after "<tool" the text "_call>" would
    complete a "<tool_call>". Where it is START, a marker that begins with that is one which the text must not begin
    with; one that ends with END as well, as only lexemes of Lark have them, is one which the text must not be.
    """

    without: tuple[str, ...]
    seen: str = ""


@value
class Except(HashedOnce):
    """Any string in its quotes but these texts; `excepts` says what it is in other expressions.

    `char` is one character inside the quotes as the other strings of the grammar have it: one of `raw`, or `escaped`,
    which begins with a backslash. The texts, of which there is one at least, are all of characters of `raw`, and none
    of these is the `quote`.
    """

    char: Expr
    raw: CharSet
    escaped: Expr
    texts: tuple[str, ...]
    quote: str = '"'

    @property
    def every(self) -> Expr:
        """All the strings, these texts too."""
        return seq(self.quote, repeat(self.char), self.quote)


@value
class Members(HashedOnce):
    """At least one of these items, `between` any two of them this text: each in its place, or later.

    `occurs` says of each item whether it is there once ("1"; "!", where others need not wait for it), once at most
    ("?"), or any number of times ("*"). Those that are "1" come in their order, and after each of them what stands
    behind it; all else comes in any order. No item is empty.
    Make it with `members`, which writes as a sequence what has but one order.
    """

    items: tuple[Expr, ...]
    occurs: str
    between: str

    def first(self, taken: int = 0) -> list[int]:
        """The numbers of the items that may come where some are taken: `taken` has a bit for each of these.

        Those that may come any number of times are never taken.
        """
        left = [index for index in range(len(self.items)) if not taken >> index & 1]
        needed = next((at for at, index in enumerate(left) if self.occurs[index] == "1"), len(left))
        return left[: needed + 1]

    def with_one(self, taken: int, index: int) -> int:
        """What is taken once one more item is there."""
        return taken if self.occurs[index] == "*" else taken | 1 << index

    def may_end(self, taken: int) -> bool:
        """Whether none need be there beside those that are taken."""
        return all(taken >> index & 1 for index, times in enumerate(self.occurs) if times in MUST)

    def before(self, taken: int) -> Expr:
        """At least one of those that are not taken."""
        items, occurs = self._left(taken)
        return members(items, occurs, self.between) if taken else self

    def rest(self, taken: int) -> Expr:
        """What may follow where some are taken, of which one was the last."""
        return _more(*self._left(taken), self.between)

    def ways(self) -> list[tuple[Expr, Expr]]:
        """The items that may come first, each with what follows it."""
        return [(self.items[index], self.rest(self.with_one(0, index))) for index in self.first()]

    def _left(self, taken: int) -> tuple[tuple[Expr, ...], str]:
        left = [index for index in range(len(self.items)) if not taken >> index & 1]
        return tuple([self.items[index] for index in left]), "".join([self.occurs[index] for index in left])


Expr = Literal | CharSet | Sequence | Choice | Repeat | Ref | Token | Text | Except | Members

EMPTY = Literal("")
NOTHING = Choice(())


def seq(*items: Expr | str) -> Expr:
    """A sequence, flattened; strings are literals, neighbouring ones joined; a part that matches nothing wins."""
    flat: list[Expr] = []
    text = ""  # that of the literals since the last other part
    for item in items:
        if isinstance(item, str):
            text += item
            continue
        # `type`, since nearly all parts are none of these: isinstance takes twice as long to say so
        for part in item.items if type(item) is Sequence else (item,):
            if type(part) is Literal:
                text += part.text
                continue
            if type(part) is Sequence:  # in one that was not made here
                return seq(*_flatten(items))
            if type(part) is Choice and not part.options:
                return NOTHING
            if text:
                flat.append(Literal(text))
                text = ""
            flat.append(part)
    if text:
        flat.append(Literal(text))
    if not flat:
        return EMPTY
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _flatten(items: Iterable[Expr | str]) -> Iterable[Expr | str]:
    for item in items:
        if isinstance(item, Sequence):
            yield from _flatten(item.items)
        else:
            yield item


def choice(*options: Expr | str) -> Expr:
    """A choice, flattened, without repeats."""
    flat: dict[Expr, None] = {}
    for option in options:
        if isinstance(option, Choice):
            flat.update(dict.fromkeys(option.options))
        else:
            flat[Literal(option) if isinstance(option, str) else option] = None
    return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat))


def is_empty(expr: Expr) -> bool:
    """Whether the expression is the empty string."""
    return isinstance(expr, Literal) and not expr.text


def optional(item: Expr | str) -> Expr:
    """The item, or the empty string (last, since XGrammar refuses an empty first alternative)."""
    if isinstance(item, str):
        item = Literal(item)
    if isinstance(item, Choice):
        return choice(item, EMPTY)
    return EMPTY if is_empty(item) else Choice((item, EMPTY))


def repeat(item: Expr | str, min: int = 0, max: int | None = None) -> Expr:  # noqa: A002 - the field's own words
    """The item `min` to `max` times; trivial counts are simplified away."""
    if isinstance(item, str):
        item = Literal(item)
    if max == 0 or item == EMPTY:
        return EMPTY
    if (min, max) == (1, 1):
        return item
    return Repeat(item, min, max)


def members(items: Iterable[Expr], occurs: str, between: str) -> Expr:
    """At least one of these items, as `Members` has them."""
    pairs = [(item, times) for item, times in zip(items, occurs, strict=True) if times in MUST or item != NOTHING]
    if any(item == NOTHING for item, _ in pairs):
        return NOTHING
    first = next((at for at, (_, times) in enumerate(pairs) if times != "1"), len(pairs))
    left = tuple([item for item, _ in pairs[first:]])
    begin = [part for item, _ in pairs[:first] for part in (between, item)][1:]
    more = "".join([times for _, times in pairs[first:]])
    if begin:
        return seq(*begin, _more(left, more, between))
    if more == "*":
        return seq(*left, repeat(seq(between, *left)))
    return Members(left, more, between) if len(left) > 1 else choice(*left)


def _more(items: tuple[Expr, ...], occurs: str, between: str) -> Expr:
    """What of these follows other members."""
    if occurs == "*":
        return repeat(seq(between, *items))
    some = seq(between, members(items, occurs, between))
    return some if must_be_there(occurs) else optional(some)


def must_be_there(occurs: str) -> bool:
    """Whether one of the items of members must be there."""
    return not MUST.isdisjoint(occurs)


def by_first(expr: Members) -> Expr:
    """The members as a choice of those that may come first."""
    return choice(*(seq(item, rest) for item, rest in expr.ways()))


def chars(*pieces: str | tuple[int, int]) -> CharSet:
    """One character out of these: a string gives each of its characters, a pair of code points a range."""
    ranges: list[tuple[int, int]] = []
    for piece in pieces:
        ranges.extend([(ord(c), ord(c)) for c in piece] if isinstance(piece, str) else [piece])
    return CharSet(_normal(ranges))


def not_chars(*pieces: str | tuple[int, int]) -> CharSet:
    """One character that is none of these."""
    ranges: list[tuple[int, int]] = []
    start = 0
    for low, high in chars(*pieces).ranges:
        if start < low:
            ranges.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE_POINT:
        ranges.append((start, MAX_CODE_POINT))
    return CharSet(_normal(ranges))


def less(charset: CharSet, excluded: Iterable[str]) -> CharSet:
    """The set without some characters."""
    return not_chars(*not_chars(*charset.ranges).ranges, *excluded)


def _normal(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    cut: list[tuple[int, int]] = []
    for low, high in ranges:
        if low < _SURROGATES[0]:
            cut.append((low, min(high, _SURROGATES[0] - 1)))
        if high > _SURROGATES[1]:
            cut.append((max(low, _SURROGATES[1] + 1), high))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(cut):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside this one."""
    parts = _PARTS.get(type(expr))
    return () if parts is None else parts(expr)


_PARTS: Mapping[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Sequence: attrgetter("items"),
    Choice: attrgetter("options"),
    Repeat: lambda expr: (expr.item,),
    Members: attrgetter("items"),
    Except: attrgetter("char", "escaped"),
}


Rules = Mapping[str, Expr]
