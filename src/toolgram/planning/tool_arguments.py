"""The arguments of a tool as a grammar, kept by content: a set that is like another costs what is new in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from toolgram.caching import Document, made_of, weighed
from toolgram.errors import InvalidSchema, Relaxation, UnsupportedSchema
from toolgram.grammar.ir import NOTHING, Expr
from toolgram.grammar.walk import renamed
from toolgram.schema import Compiled, compile_schema
from toolgram.schema.types import TooLarge
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
    """The schema of a tool's arguments as it was compiled, and the arguments as an encoding has them.

    They are None where nothing matches the schema. `given` are the names of all rules.
    """

    schema: Compiled
    encoded: ToolArguments | None
    given: Mapping[str, tuple[str, Hashable]]


def arguments_of(wanted: Wanted, pointer: str, names: RuleNames) -> Arguments:
    """The arguments of a tool whose schema stands at `pointer`, as a part of the grammar that has these `names`.

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
    schema, encoded = made.schema, made.encoded
    return Arguments(
        replace(
            schema,
            expr=renamed(schema.expr, others),
            rules=_renamed(schema.rules, others),
            relaxations=_at(pointer, schema.relaxations),
        ),
        encoded
        and replace(
            encoded,
            expr=renamed(encoded.expr, others),
            rules=_renamed(encoded.rules, others),
            relaxations=_at(pointer, encoded.relaxations),
        ),
        made.given,
    )


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
    schema = compile_schema(
        wanted.parameters.value,
        pointer=pointer,
        mode="exact" if wanted.strict else "relaxed",
        closed=True,
        spelling=wanted.spelling,
        names=names,
        root_name=wanted.hint,
        parameters=True,
    )
    encoded = None
    if schema.expr != NOTHING:
        encoded = wanted.encoding.arguments(schema, wanted.spelling, names, wanted.hint, exact=wanted.strict)
    return Arguments(schema, encoded, names.given)


def _renamed(rules: Mapping[str, Expr], others: Mapping[str, str]) -> dict[str, Expr]:
    return {others.get(name, name): renamed(expr, others) for name, expr in rules.items()}


def _at(pointer: str, relaxations: Iterable[Relaxation]) -> tuple[Relaxation, ...]:
    return tuple([replace(each, pointer=pointer + each.pointer) for each in relaxations])
