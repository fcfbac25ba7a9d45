"""Schema documents to canonical types, by the specification of their draft (2020-12 where they state none)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from toolgram.errors import Relaxation, UnsupportedSchema
from toolgram.schema import types
from toolgram.schema.reading.keywords import strays
from toolgram.schema.reading.normalizer import Normalizer
from toolgram.schema.reading.references import NeedsScope, Place, Retrieve, open_document
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
        document = open_document(schema, pointer, retrieve)
        return _normalized(document, mode, closed, parameters, encoding)
    except UnsupportedSchema as error:
        refusal = error
    except (types.TooLarge, RecursionError):  # the latter where the caller's own stack is deep
        refusal = UnsupportedSchema(pointer, "size", "the schema has too many cases")
    if mode == "exact":
        raise refusal
    whole = types.Object((), ANY) if parameters else ANY
    return Normalized(Canonical(whole, {}), (Relaxation(refusal.pointer, refusal.keyword, "any value"),))


def unmatched(schema: object, *, closed: bool) -> str:
    """Which part of a schema that no value matches is to blame: a JSON pointer to the innermost one that all need.

    It is for a message, and may be "", the whole, where no part is to blame alone.
    """
    place = open_document(schema, "", None)
    seen = [place.pointer]
    while (found := next((part for part in _needed(place) if _matches_nothing(part, closed)), None)) is not None:
        if found.pointer in seen:  # it needs itself
            break
        place = found
        seen.append(place.pointer)
    return place.pointer


def _needed(place: Place) -> Iterator[Place]:
    """The parts of a schema that have to match something so that the whole does."""
    fields = place.fields or {}
    required = fields.get("required", ())
    yield from (place.child("properties", name) for name in fields.get("properties", {}) if name in required)
    yield from (place.child("allOf", index) for index in range(len(fields.get("allOf", ()))))
    if "items" in fields and fields.get("minItems", 0) > len(fields.get("prefixItems", ())):
        yield place.child("items")
    if "$ref" in fields and (target := place.follow(fields["$ref"])) is not None:
        yield target


def _matches_nothing(place: Place, closed: bool) -> bool:
    try:
        made = _normalized(place, "relaxed", closed, parameters=False, encoding=JSON)
    except (UnsupportedSchema, types.TooLarge, RecursionError):
        return False
    return made.type.root == NEVER


def _normalized(
    document: Place,
    mode: str,
    closed: bool,
    parameters: bool,
    encoding: Encoding,
) -> Normalized:
    overlapping = frozenset[str]()
    while True:  # once more where it was found only in the end that branches have to be cut apart
        normalizer = Normalizer(mode == "exact", encoding, overlapping)
        try:
            root = normalizer.schema(document)
            normalizer.settle()
        except NeedsScope:  # few documents do
            document = replace(document, scope=(document,))
            continue
        if normalizer.found_overlapping <= overlapping:
            break
        overlapping |= normalizer.found_overlapping
    if parameters:
        root = root if isinstance(root, types.Object) else intersect(root, _BARE, normalizer.definition)
        if root == _BARE and closed:
            root = types.Object((), NEVER)
            _tell_strays(normalizer, document)

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


def _tell_strays(normalizer: Normalizer, document: Place) -> None:
    """Parameters that stand beside `type` are none, though the model is shown them."""
    if names := strays(document.fields or {}):
        reason = f"it does not hold {', '.join(map(repr, names))}"
        normalizer.unsupported(document.pointer, "properties", reason, f"no arguments: {reason}", stricter=True)
