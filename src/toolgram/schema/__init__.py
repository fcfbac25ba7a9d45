"""JSON Schema to grammars.

`schema_grammar` is the public door. A schema document becomes a canonical type (`normalize`), which becomes
expressions (`lower`) in one spelling (`spelling`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from toolgram.errors import Relaxation
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import Expr, Ref
from toolgram.schema.lower import Lowering
from toolgram.schema.normalize import normalize
from toolgram.schema.resolve import Retrieve
from toolgram.schema.spelling import RuleNames, Spelling
from toolgram.schema.types import Canonical

Mode = Literal["exact", "relaxed"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A schema as an expression over rules of its own, with the type that it denotes.

    `capped` tells that a number without a bound was given one in digits.
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
    if mode not in ("exact", "relaxed"):
        raise ValueError(f"no mode {mode!r}; there are exact and relaxed")
    normalized = normalize(
        schema,
        pointer=pointer,
        mode=mode,
        closed=closed,
        parameters=parameters,
        encoding=spelling.encoding,
        retrieve=resolver,
    )
    made = compile_type(
        normalized.type,
        spelling=spelling,
        names=names,
        root_name=root_name,
        any_order=any_order,
        exact=mode == "exact",
    )
    return replace(made, relaxations=(*normalized.relaxations, *made.relaxations))


def compile_type(
    canonical: Canonical,
    *,
    spelling: Spelling,
    names: RuleNames,
    root_name: str,
    any_order: bool = False,
    exact: bool = True,
) -> Compiled:
    """Compiles the root of a canonical type, or, where a caller puts another root, a part of it.

    Raises UnsupportedSchema for what cannot be written, and, where it has to be `exact`, for keys of too many orders.
    """
    lowering = Lowering(canonical, spelling, names, root_name, any_order, exact)
    expr = lowering.expr(canonical.root, root_name, spelling.frame(outermost=True))
    rules = lowering.finish()
    return Compiled(expr, rules, tuple(dict.fromkeys(lowering.relaxations)), canonical, lowering.capped)


def schema_grammar(
    schema: object, mode: Mode = "exact", any_order: bool = False, resolver: Retrieve | None = None
) -> Grammar:
    """The grammar of the JSON values that a schema admits, each in one spelling.

    `any_order` admits the keys of objects in every order, which exact mode refuses beyond six required keys; else they
    come in the order of the schema. `resolver` gives the documents of remote references. Raises InvalidSchema, and in
    exact mode UnsupportedSchema.
    """

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

    made = compiled(RuleNames())
    if "root" in made.rules and made.expr != Ref("root"):  # a part of it was given the name
        made = compiled(RuleNames("root"))
    rules = dict(made.rules)
    root = rules.pop("root", made.expr)
    return Grammar({"root": root, **rules}, made.relaxations)
