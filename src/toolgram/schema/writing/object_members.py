"""The members of objects as expressions: keys that are none of some, and a number of members."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from collections.abc import Sequence as SequenceABC
from dataclasses import replace
from functools import partial

from toolgram.grammar.excepts import Letters
from toolgram.grammar.ir import (
    EMPTY,
    NOTHING,
    CharSet,
    Expr,
    Literal,
    choice,
    members,
    must_be_there,
    not_chars,
    optional,
    repeat,
    seq,
)
from toolgram.schema import types
from toolgram.schema.writing.json_style import KEY_CHAR, KEY_START
from toolgram.work import TooLarge

_MAX_COUNTED = 50_000  # members times their number


def _but(charset: CharSet, excluded: str) -> Expr:
    left = not_chars(excluded, *not_chars(*charset.ranges).ranges)
    return seq(left, repeat(KEY_CHAR)) if left.ranges else NOTHING


BARE_LETTERS = Letters(partial(_but, KEY_START), partial(_but, KEY_CHAR), str, "")
"""The letters of keys that are identifiers."""


def unplaced(options: Iterable[types.Type]) -> list[types.Type]:
    """The types of a union, with no key waiting for one that only some objects of the same schema must have.

    A key that requires another (`dependentRequired`, `if`) is so: there are objects with neither, and with both.
    """
    options = list(options)
    objects = [option for option in options if isinstance(option, types.Object)]
    if len(objects) < 2:
        return options
    all_need: dict[str, set[str]] = {}  # of each schema: the keys that all objects of it must have
    for kind in objects:
        names = {item.name for item in kind.properties if item.required}
        schema = _schema_of(kind)
        all_need[schema] = all_need.get(schema, names) & names
    return [
        _unplaced(option, all_need[_schema_of(option)]) if isinstance(option, types.Object) else option
        for option in options
    ]


def _unplaced(kind: types.Object, all_need: Container[str]) -> types.Object:
    free = [item.required and item.name not in all_need for item in kind.properties]
    if not any(free) or not _schema_of(kind):
        return kind
    items = zip(kind.properties, free, strict=True)
    return replace(kind, properties=tuple([replace(item, unplaced=is_free) for item, is_free in items]))


def _schema_of(kind: types.Object) -> str:
    """The place where the keys of an object are declared; "" where there are several."""
    places = {item.pointer.rpartition("/")[0] for item in kind.properties if item.declared}
    return places.pop() if len(places) == 1 else ""


def occurs(item: types.Property) -> str:
    """How often a key is there, as `grammar.ir.Members` has it."""
    return "?" if not item.required else "!" if item.unplaced else "1"


def are_counted(kind: types.Object) -> bool:
    """Whether an object has so many keys, or one of some, that its members come in order."""
    return kind.max is not None or bool(kind.some) or kind.min > 1


def all_members(items: SequenceABC[tuple[types.Property, Expr]], extra: Expr, comma: str, least: int) -> Expr:
    """The members, each in its place or later, and any number of extra ones; `least` is one or none."""
    times = "".join([occurs(item) for item, _ in items]) + "*"
    written = members([*(member for _, member in items), extra], times, comma)
    return written if least or must_be_there(times) else optional(written)


def some_members(
    kind: types.Object,
    written: SequenceABC[tuple[types.Property, Expr]],
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
    if len(written) * min(len(written), most) > _MAX_COUNTED:
        raise TooLarge
    after = [end(count) for count in range(min(len(written), most) + 1)]
    for index in reversed(range(len(written))):
        item, member = written[index]
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
