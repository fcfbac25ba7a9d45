"""Schema documents to canonical types, by the specification of their draft (2020-12 where they state none)."""

from __future__ import annotations

from dataclasses import dataclass

from toolgram.errors import Relaxation, UnsupportedSchema
from toolgram.schema import types
from toolgram.schema.reading.normalizer import Normalizer
from toolgram.schema.reading.references import NeedsScope, Retrieve, open_document
from toolgram.schema.types import ANY, NEVER, Canonical, Reference, Type, rebuild
from toolgram.schema.types.intersect import intersect
from toolgram.schema.writing.notation import JSON, Encoding

_BARE = types.Object((), ANY, silent=True)


@dataclass(frozen=True, slots=True)
class Normalized:
    """What a document denotes, and what was not enforced to say so."""

    type: Canonical
    relaxations: tuple[Relaxation, ...]


def normalize(
    schema: object,
    *,
    pointer: str = "",
    mode: str = "exact",
    closed: bool = False,
    parameters: bool = False,
    encoding: Encoding = JSON,
    retrieve: Retrieve | None = None,
) -> Normalized:
    """The canonical type of a schema document that stands at `pointer`.

    `closed`: an object that declares properties and does not speak of other keys has none. `parameters`: the document
    is a tool's parameters, an object, and `{}` alone where it declares no properties. What the
    `encoding` cannot write counts as not enforceable. Raises InvalidSchema, and in exact mode UnsupportedSchema.
    """
    try:
        return _normalized(schema, pointer, mode, closed, parameters, encoding, retrieve)
    except UnsupportedSchema as error:
        refusal = error
    except (types.TooLarge, RecursionError):  # the latter where the caller's own stack is deep
        refusal = UnsupportedSchema(pointer, "size", "the schema has too many cases")
    if mode == "exact":
        raise refusal
    whole = types.Object((), ANY) if parameters else ANY
    return Normalized(Canonical(whole, {}), (Relaxation(refusal.pointer, refusal.keyword, "any value"),))


def _normalized(
    schema: object,
    pointer: str,
    mode: str,
    closed: bool,
    parameters: bool,
    encoding: Encoding,
    retrieve: Retrieve | None,
) -> Normalized:
    document = open_document(schema, pointer, retrieve)
    overlapping = frozenset[str]()
    while True:  # once more where it was found only in the end that branches have to be cut apart
        normalizer = Normalizer(mode == "exact", encoding, overlapping)
        try:
            root = normalizer.schema(document)
            normalizer.settle()
        except NeedsScope:  # few documents do
            document = open_document(schema, pointer, retrieve, scoped=True)
            continue
        if normalizer.found_overlapping <= overlapping:
            break
        overlapping |= normalizer.found_overlapping
    if parameters:
        root = root if isinstance(root, types.Object) else intersect(root, _BARE, normalizer.definition)
        if root == _BARE and closed:
            root = types.Object((), NEVER)

    used: dict[str, None] = {}
    waiting: list[str] = []

    def close(kind: Type) -> Type:
        if isinstance(kind, Reference) and kind.key not in used:
            used[kind.key] = None
            waiting.append(kind.key)
        if isinstance(kind, types.Object):
            if closed and kind.silent and any(item.declared for item in kind.properties):
                return rebuild.closed(kind)
            kind = rebuild.settled(kind)
        return normalizer.counted(kind)

    root = rebuild.rebuild(root, close)
    definitions = {key: rebuild.rebuild(normalizer.definitions[key], close) for key in waiting}  # which grows meanwhile
    canonical = rebuild.without_dead_ends(root, definitions)
    return Normalized(canonical, tuple(normalizer.relaxations))
