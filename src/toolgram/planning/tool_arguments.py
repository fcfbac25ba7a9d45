"""The arguments of a tool as a grammar, kept by content: a set that is like another costs what is new in it."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from toolgram.caching import Document, made_of, weighed
from toolgram.errors import InvalidSchema, Relaxation, UnsupportedSchema
from toolgram.grammar.ir import NOTHING, Expr, Rules
from toolgram.grammar.shape import shortest
from toolgram.grammar.walk import reachable, renamed, uses
from toolgram.schema import written
from toolgram.schema.types import NEVER, Canonical, TooLarge
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.wire.encodings import AnyEncoding
from toolgram.wire.encodings.base import ToolArguments
from toolgram.work import charge, in_all

_MOST = 1 << 62  # steps: the limits inside are smaller


@dataclass(frozen=True)
class Wanted:
    """What decides the grammar of a tool's arguments; rules are named like the `hint`."""

    parameters: Document
    strict: bool
    encoding: AnyEncoding
    spelling: Spelling
    hint: str


@dataclass(frozen=True)
class Arguments:
    """The type of a tool's arguments, what of their schema it does not say, and the arguments as an encoding has them.

    They are None where nothing matches the schema. `given` are the names of all rules.
    """

    type: Canonical
    relaxations: tuple[Relaxation, ...]
    encoded: ToolArguments | None
    given: Mapping[str, tuple[str, Hashable]]


def arguments_of(wanted: Wanted, pointer: str, names: RuleNames, rules: Container[str]) -> Arguments:
    """The arguments of a tool whose schema stands at `pointer`, as a part of the grammar that has these `names`, and
    these `rules` already, which need not be given again.

    Raises InvalidSchema, and UnsupportedSchema for what is strict, or has no end.
    """
    try:
        made, steps = _known(wanted)
    except (InvalidSchema, UnsupportedSchema):
        _arguments(wanted, pointer)  # which says where
        raise
    except TooLarge as error:  # by parts it may have more rules than as a whole
        raise UnsupportedSchema(pointer, "size", "the grammar would have too many rules") from error
    charge(steps)  # whether known or not: or else it would depend on earlier requests what is too much
    others = names.again(made.given)
    encoded = made.encoded
    if encoded and others:
        encoded = replace(encoded, expr=renamed(encoded.expr, others), rules=_renamed(encoded.rules, others, rules))
    if encoded and encoded.relaxations:
        encoded = replace(encoded, relaxations=_at(pointer, encoded.relaxations))
    return Arguments(made.type, _at(pointer, made.relaxations), encoded, made.given)


def _weight(wanted: Wanted) -> int:
    return made_of(wanted.parameters)


@weighed(_weight)
def _known(wanted: Wanted) -> tuple[Arguments, int]:
    """The arguments, and the steps that they take."""
    with in_all(_MOST) as meter:
        made = _arguments(wanted, "")
    return made, _MOST - meter.left


def _arguments(wanted: Wanted, pointer: str) -> Arguments:
    names = RuleNames("root")

    def encoded(type_: Canonical) -> tuple[Canonical, ToolArguments | None]:
        if type_.root == NEVER:
            return type_, None
        return type_, wanted.encoding.arguments(type_, wanted.spelling, names, wanted.hint, exact=wanted.strict)

    (type_, made), relaxations = written(
        wanted.parameters.value,
        encoded,
        pointer=pointer,
        mode="exact" if wanted.strict else "relaxed",
        closed=True,
        spelling=wanted.spelling,
        parameters=True,
    )
    if made is not None and made.relaxations and not _have_text(made):
        made = replace(made, expr=NOTHING)  # a key that must be there, and which the encoding cannot write
    return Arguments(type_, relaxations, made, names.given)


def _have_text(made: ToolArguments) -> bool:
    rules = reachable({**made.rules, "": made.expr}, "")
    return shortest(rules, uses(rules))[""] is not None


def _renamed(rules: Rules, others: Mapping[str, str], there: Container[str]) -> dict[str, Expr]:
    """The rules by their other names, but for those that are there: they are the same."""
    new = ((others.get(name, name), expr) for name, expr in rules.items())
    return {name: renamed(expr, others) for name, expr in new if name not in there}


def _at(pointer: str, relaxations: Iterable[Relaxation]) -> tuple[Relaxation, ...]:
    return tuple([replace(each, pointer=pointer + each.pointer) for each in relaxations])
