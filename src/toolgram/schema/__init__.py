"""JSON Schema to grammars.

`schema_grammar` is the public door. A schema document becomes a canonical type (`normalize`), which becomes
expressions (`lower`) in one spelling (`json_style`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar

from toolgram.caching import made_of, weighed
from toolgram.errors import Relaxation, UnsupportedSchema
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Expr, Ref
from toolgram.schema.reading.normalize import normalize
from toolgram.schema.reading.references import Retrieve
from toolgram.schema.types import ANY, Canonical, Object
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.lower import Lowering
from toolgram.work import MAX_WORK, TooLarge, limited, undisturbed

Mode = Literal["exact", "relaxed"]
_Written = TypeVar("_Written")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A schema as an expression over rules of its own, with the type that it denotes.

    `capped` says that a number without a bound was given one in digits.
    """

    expr: Expr
    rules: dict[str, Expr]
    relaxations: tuple[Relaxation, ...]
    type: Canonical
    capped: bool


def compile_schema(
    schema: object,
    *,
    pointer: str,
    mode: str,
    closed: bool,
    spelling: Spelling,
    names: RuleNames,
    root_name: str,
    parameters: bool = False,
    any_order: bool = False,
    resolver: Retrieve | None = None,
) -> Compiled:
    """Compiles a schema that stands at `pointer`, as a part of a grammar whose rule names `names` hands out.

    `closed` and `parameters` as in `normalize`. Rules that two schemas of a grammar share have the same name and body
    in both. Raises InvalidSchema, in exact mode UnsupportedSchema, and in any mode that for a declared key that the
    notation cannot write.
    """
    compiled = partial(
        compile_type,
        spelling=spelling,
        names=names,
        root_name=root_name,
        any_order=any_order,
        exact=mode == "exact",
    )
    made, relaxations = written(
        schema,
        compiled,
        pointer=pointer,
        mode=mode,
        closed=closed,
        spelling=spelling,
        parameters=parameters,
        resolver=resolver,
    )
    return replace(made, relaxations=(*relaxations, *made.relaxations))


def written(
    schema: object,
    write: Callable[[Canonical], _Written],
    *,
    pointer: str,
    mode: str,
    closed: bool,
    spelling: Spelling,
    parameters: bool = False,
    resolver: Retrieve | None = None,
) -> tuple[_Written, tuple[Relaxation, ...]]:
    """What `write` makes of the type of a schema, and what of the schema the type does not say.

    Where `write` raises TooLarge it is given the type of all values, unless the mode is exact. All else is as in
    `compile_schema`.
    """
    if mode not in ("exact", "relaxed"):
        raise ValueError(f"no mode {mode!r}; there are exact and relaxed")
    with limited(MAX_WORK):
        normalized = normalize(
            schema,
            pointer=pointer,
            mode=mode,
            closed=closed,
            parameters=parameters,
            encoding=spelling.encoding,
            retrieve=resolver,
        )
        try:
            return write(normalized.type), normalized.relaxations
        except TooLarge:
            if mode == "exact":
                raise UnsupportedSchema(pointer, "size", "the grammar would have too many rules") from None
    whole = Object((), ANY) if parameters else ANY
    return write(Canonical(whole, {})), (Relaxation(pointer, "size", "any value"),)


def compile_type(
    canonical: Canonical,
    *,
    spelling: Spelling,
    names: RuleNames,
    root_name: str,
    any_order: bool = False,
    exact: bool = True,
    part: bool = False,
) -> Compiled:
    """Compiles the root of a canonical type, or, where a caller puts another root, a part of it.

    Where the root is but a `part` of a document, its rule may be that of an equal type elsewhere in the grammar.

    Raises TooLarge, UnsupportedSchema for what cannot be written, and, where it has to be `exact`, for keys of too many
    orders and those that the notation cannot write.
    """
    lowering = Lowering(canonical, spelling.inner, names, root_name, any_order, exact, part)
    expr = lowering.expr(canonical.root, root_name, spelling.frame(outermost=True))
    rules = lowering.finish()
    return Compiled(expr, rules, tuple(dict.fromkeys(lowering.relaxations)), canonical, lowering.capped)


def schema_grammar(
    schema: object, mode: Mode = "exact", any_order: bool = False, resolver: Retrieve | None = None
) -> Grammar:
    """The grammar of the JSON values that a schema admits, each in one spelling.

    Required keys come in the order of the schema, each optional one in its place or behind it; `any_order` admits all
    in every order, which exact mode refuses beyond six required keys. `resolver` gives the documents of remote
    references. The grammars of the last schemas without a resolver are kept: an equal schema gets the same one. Raises
    InvalidSchema, and in exact mode UnsupportedSchema.
    """
    text = "" if resolver else _text(schema)
    if text:
        return _known_grammar(_Document(text, schema), mode, any_order)
    return _grammar(schema, mode, any_order, resolver)


_MAX_KEPT = 100_000  # characters of a schema whose grammar is kept


@dataclass(frozen=True, slots=True)
class _Document:
    """A schema, identified by its text."""

    text: str
    schema: object = field(compare=False, repr=False)


def _text(schema: object) -> str:
    """A text that no other schema has: it shows the order of keys and the types of values too (JSON text would not,
    where a value is no JSON); "" where it is too large to be worth it."""
    try:
        text = repr(schema)
    except (RecursionError, ValueError):  # too deep; an integer of more digits than Python writes
        return ""
    return text if len(text) <= _MAX_KEPT else ""


def _weight(document: _Document, _mode: Mode, _any_order: bool) -> int:
    return made_of(document.text)


@weighed(_weight)
def _known_grammar(document: _Document, mode: Mode, any_order: bool) -> Grammar:
    return _grammar(document.schema, mode, any_order, None)


def _grammar(schema: object, mode: Mode, any_order: bool, resolver: Retrieve | None) -> Grammar:
    def compiled(names: RuleNames) -> Compiled:
        return compile_schema(
            schema,
            pointer="",
            mode=mode,
            closed=False,
            spelling=Spelling(),
            names=names,
            root_name="root",
            any_order=any_order,
            resolver=resolver,
        )

    with nullcontext() if resolver else undisturbed():  # who knows how long a resolver takes
        made = compiled(RuleNames())
        if "root" in made.rules and made.expr != Ref("root"):  # a part of it was given the name
            made = compiled(RuleNames("root"))
    rules = dict(made.rules)
    root = rules.pop("root", made.expr)
    return Grammar({"root": root, **rules}, made.relaxations)
