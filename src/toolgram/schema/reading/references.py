"""Drafts of JSON Schema, and what a `$ref`, a `$dynamicRef` or a `$recursiveRef` refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast
from urllib.parse import unquote

from referencing import Registry, Resource, Specification
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from toolgram.errors import InvalidSchema

Retrieve = Callable[[str], object]
"""Gives the schema document at a URI, or None."""


class NeedsScope(Exception):
    """What a reference refers to depends on how one came to it, and that was not noted."""


LATEST = 2020
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_DEEP = 4  # schemas inside each other that are searched for a type
_DRAFTS: dict[str, tuple[int, Specification[Any]]] = {
    "json-schema.org/draft-04/schema": (4, DRAFT4),
    "json-schema.org/draft-06/schema": (6, DRAFT6),
    "json-schema.org/draft-07/schema": (7, DRAFT7),
    "json-schema.org/draft/2019-09/schema": (2019, DRAFT201909),
    "json-schema.org/draft/2020-12/schema": (LATEST, DRAFT202012),
}


def _parts(contents: Any) -> Iterator[Any]:
    """The schemas in a schema of no stated draft, where `items` may be a list, as before 2020."""
    rest: Any = contents
    listed: Any = rest.get("items") if isinstance(contents, dict) else None
    if isinstance(listed, list):
        yield from cast("list[Any]", listed)
        rest = {key: value for key, value in rest.items() if key != "items"}
    yield from DRAFT202012.subresources_of(rest)


_UNSTATED: Specification[Any] = Specification(
    name="none stated",
    id_of=DRAFT202012.id_of,
    subresources_of=_parts,
    anchors_in=lambda _, contents: DRAFT202012.anchors_in(contents),
    maybe_in_subresource=DRAFT202012.maybe_in_subresource,
)


@dataclass(frozen=True, slots=True)
class _Unopened:
    """A resolver that is made when it is asked: most documents refer to nothing, and making one takes as long as
    reading some schemas."""

    make: Callable[[], Any]

    def lookup(self, reference: str) -> Any:
        """What a reference refers to."""
        return self.make().lookup(reference)

    def in_subresource(self, resource: Resource[Any]) -> Any:
        """The resolver of a part with its own `$id`."""
        return self.make().in_subresource(resource)


@dataclass(frozen=True, slots=True)
class Place:
    """A schema where it stands: its JSON pointer, and the base of its references.

    `origin` is the pointer of the document, or of the part of it with its own `$id`. `draft` is the one that the
    document states, None where it states none that is known. `scope` are the documents, and such parts, through which
    one came here, the outermost first; None where they are not noted. `strings` says that a schema which holds of the
    same value states a type of strings.
    """

    schema: object
    pointer: str
    origin: str
    draft: int | None
    specification: Specification[Any]
    resolver: Any  # referencing's Resolver, whose type is not public
    scope: tuple[Place, ...] | None = None
    strings: bool = False

    @property
    def fields(self) -> dict[str, Any] | None:
        """The keywords of the schema; None where it is no object."""
        schema: Any = self.schema
        return cast("dict[str, Any]", schema) if isinstance(schema, dict) else None

    def child(self, *keys: str | int) -> Place:
        """The schema under these keys."""
        schema, pointer = self.schema, self.pointer
        for key in keys:
            schema = cast("Any", schema)[key]
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
        # not `replace`, which takes three times as long, for every schema of a document
        strings = self.strings and keys[0] in _SAME_VALUE
        place = Place(schema, pointer, self.origin, self.draft, self.specification, self.resolver, self.scope, strings)
        return place.entered() if isinstance(schema, dict) else place

    def states_strings(self, depth: int = _DEEP) -> bool:
        """Whether the type that this schema states, or one of those that it consists of, has strings."""
        fields = self.fields
        if fields is None or depth == 0:
            return False
        if "type" in fields:
            return fields["type"] == "string" or (isinstance(fields["type"], list) and "string" in fields["type"])
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches: Any = fields.get(keyword)
            for index in range(len(cast("list[Any]", branches)) if isinstance(branches, list) else 0):
                if self.child(keyword, index).states_strings(depth - 1):
                    return True
        reference = fields.get("$ref")
        target = self.follow(reference) if isinstance(reference, str) else None
        return target is not None and target.states_strings(depth - 1)

    def may_lack(self, name: str, depth: int = _DEEP) -> bool:
        """Whether a key that this schema, or the one that it refers to, declares need not be there."""
        fields = self.fields
        if fields is None or depth == 0:
            return False
        if "$ref" in fields and "properties" not in fields:
            target = self.follow(fields["$ref"]) if isinstance(fields["$ref"], str) else None
            return target is not None and target.may_lack(name, depth - 1)
        declared: Any = fields.get("properties")
        required: Any = fields.get("required", ())
        return (
            isinstance(declared, dict)
            and name in declared
            and isinstance(required, list | tuple)
            and name not in required
        )

    def entered(self) -> Place:
        """The same place, with the base URI that its own `$id` sets."""
        keyword = "id" if self.draft == 4 else "$id"
        fields = cast("dict[str, object]", self.schema)
        if keyword not in fields:
            return self
        if not isinstance(fields[keyword], str):
            raise InvalidSchema(self.pointer, keyword, "is not a string")
        resolver = self.resolver.in_subresource(self.specification.create_resource(self.schema))
        return replace(self, resolver=resolver, origin=self.pointer).noted()

    def refer(self, keyword: str, reference: str) -> Place | None:
        """The schema that a `$ref`, `$dynamicRef` or `$recursiveRef` here refers to; None as in `follow`.

        Raises NeedsScope, and InvalidSchema for a place in a known document that does not exist.
        """
        if keyword == "$ref":
            return self.follow(reference)
        if self.scope is None:
            raise NeedsScope
        target = self.follow(reference, keyword)
        name = reference.partition("#")[2]
        if keyword == "$recursiveRef":
            found = (each for each in self.scope if (each.fields or {}).get("$recursiveAnchor") is True)
            is_dynamic = target is not None and (target.fields or {}).get("$recursiveAnchor") is True
        else:
            found = (each for root in self.scope if (each := root.anchored(name)))
            is_dynamic = target is not None and name and (target.fields or {}).get("$dynamicAnchor") == name
        outermost = next(found, target) if is_dynamic else target
        return replace(outermost, scope=self.scope) if outermost and is_dynamic else outermost

    def follow(self, reference: str, keyword: str = "$ref") -> Place | None:
        """The schema that a `$ref` here refers to; None where its document cannot be had.

        Raises InvalidSchema for a place in a known document that does not exist.
        """
        target = self._looked_up(reference, keyword)
        document, _, name = reference.partition("#")
        if target and name and "$dynamicAnchor" in (target.fields or {}) and not name.startswith("/"):
            root = self._looked_up(document or "#")  # the anchor of that name there, however one came here
            target = (root and root.anchored(name)) or target
        return target and target.noted()

    def anchored(self, name: str) -> Place | None:
        """The schema with this `$dynamicAnchor` in the document, or the part with its own `$id`, that is here."""
        waiting = [self.specification.create_resource(self.schema)] if self.fields is not None else []
        for resource in waiting:
            if resource.contents.get("$dynamicAnchor") == name:
                return replace(self, schema=resource.contents, pointer=f"{self.origin}#{name}")
            subresources = (each for each in resource.subresources() if isinstance(each.contents, dict))
            waiting.extend(each for each in subresources if each.id() is None)
        return None

    def noted(self) -> Place:
        """The same place, with the document that it is in noted."""
        if self.scope is None:
            return self
        root = self._looked_up("#")
        if root is None or any(each.schema is root.schema for each in self.scope):
            return self
        return replace(self, scope=(*self.scope, root))

    def _looked_up(self, reference: str, keyword: str = "$ref") -> Place | None:
        try:
            found = self.resolver.lookup(reference)
        except Unresolvable as error:
            if error.__cause__ and error.__cause__.__cause__:  # what the caller's own resolver raised
                raise error.__cause__.__cause__ from None
            if type(error) is Unresolvable and not reference.startswith("#"):  # not one of its subclasses: no document
                return None
            raise InvalidSchema(self.pointer, keyword, f"{reference!r} points nowhere") from None
        except (LookupError, TypeError, ValueError, AttributeError):  # malformed documents, as referencing meets them
            raise InvalidSchema(self.pointer, keyword, f"{reference!r} points nowhere") from None
        pointer = self._pointer_of(reference)
        origin = self.origin if reference.startswith("#") else pointer
        return replace(self, schema=found.contents, resolver=found.resolver, pointer=pointer, origin=origin)

    def _pointer_of(self, reference: str) -> str:
        if not reference.startswith("#"):
            return reference
        return self.origin + (unquote(reference[1:]) if reference.startswith("#/") else reference.removesuffix("#"))


def open_document(schema: object, pointer: str, retrieve: Retrieve | None) -> Place:
    """The root of a schema document; references to other documents are looked up with `retrieve`."""
    document: Any = schema
    fields = cast("dict[str, object]", document if isinstance(document, dict) else {})
    stated = fields.get("$schema")
    known = _DRAFTS.get(stated.rstrip("#").partition("://")[2]) if isinstance(stated, str) else None
    draft, specification = known or (None, _UNSTATED)
    keyword = "id" if draft == 4 else "$id"
    if not isinstance(fields.get(keyword, ""), str):
        raise InvalidSchema(pointer, keyword, "is not a string")

    def fetch(uri: str) -> Resource[Any]:
        found: Any = retrieve(uri) if retrieve else None
        if found is None:
            raise NoSuchResource(ref=uri)
        return specification.create_resource(found)

    @cache
    def resolver() -> Any:
        registry: Registry[Any] = Registry(retrieve=fetch)  # pyright: ignore[reportCallIssue] # attrs hides the argument
        return registry.resolver_with_root(specification.create_resource(fields))

    has_id = keyword in fields
    return Place(schema, pointer, pointer, draft, specification, resolver() if has_id else _Unopened(resolver))
