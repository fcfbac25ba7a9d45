"""Tools as TypeScript declarations, the way functionary announces them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from toolgram.schema.keywords import check_shapes
from toolgram.schema.resolve import Place, open_document

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_KINDS = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}
_MAX_DEPTH = 50


class _Kind(NamedTuple):
    """A type as it is written, and whether an operator of its own makes it need parentheses."""

    text: str
    compound: bool = False

    @property
    def grouped(self) -> str:
        return f"({self.text})" if self.compound else self.text


_ANY = _Kind("any")


def declarations(tools: Iterable[tuple[str, str | None, object]]) -> str:
    """The namespace that declares these tools: name, description and JSON Schema of the parameters of each.

    Types that TypeScript has no words for are `any`. Raises InvalidSchema for what is no schema.
    """
    declared = [_declaration(index, *tool) for index, tool in enumerate(tools)]
    return "\n".join(
        [
            "// Supported function definitions that should be called when necessary.",
            "namespace functions {",
            "\n\n".join(declared),
            "} // namespace functions",
        ]
    )


def _declaration(index: int, name: str, description: str | None, parameters: object) -> str:
    schema = cast("object", {}) if parameters is None else parameters
    kind = _type(open_document(schema, f"/tools/{index}/function/parameters", None), ())
    takes = "()" if kind.text in ("any", "object") else f"(_: {kind.text})"
    return f"{_comment(description)}type {_name(name)} = {takes} => any;"


def _comment(text: object) -> str:
    """The text as comment lines; nothing for no text."""
    lines = text.splitlines() if isinstance(text, str) else []
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else _literal(name)


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _type(place: Place, above: tuple[int, ...]) -> _Kind:
    """The type of a schema; `above` are the schemas that it is inside of, so that recursion ends."""
    fields = place.fields
    if fields is None:
        return _Kind("never") if place.schema is False else _ANY
    if id(fields) in above or len(above) > _MAX_DEPTH:
        return _ANY
    above = (*above, id(fields))
    check_shapes(fields, place.pointer)
    if "const" in fields:
        return _Kind(_literal(fields["const"]))
    if "enum" in fields:
        return _union(_Kind(_literal(value)) for value in fields["enum"])
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in fields:
            target = place.follow(fields[keyword], keyword)  # a dynamic one: to what it means where nobody refers here
            return _type(target, above) if target else _ANY
    for keyword, join in (("anyOf", _union), ("oneOf", _union), ("allOf", _intersection)):
        if keyword in fields and "properties" not in fields:
            return join(_type(place.child(keyword, index), above) for index in range(len(fields[keyword])))
    return _plain(place, fields, above)


def _plain(place: Place, fields: dict[str, Any], above: tuple[int, ...]) -> _Kind:
    guess = "object" if "properties" in fields else "array" if "items" in fields else None
    stated = fields.get("type", guess)
    if stated is None:
        return _ANY
    kinds: list[str] = [stated] if isinstance(stated, str) else list(stated)
    if fields.get("nullable") is True:
        kinds.append("null")
    return _union(_kind(place, fields, kind, above) for kind in kinds)


def _kind(place: Place, fields: dict[str, Any], kind: str, above: tuple[int, ...]) -> _Kind:
    if kind == "array":
        return _array(place, fields, above)
    if kind == "object":
        return _object(place, fields, above)
    return _Kind(_KINDS[kind])


def _array(place: Place, fields: dict[str, Any], above: tuple[int, ...]) -> _Kind:
    """An array, or a tuple where the first items have types of their own."""
    keyword = "unevaluatedItems" if "items" not in fields else "items"
    stated = fields.get(keyword)
    rest = _type(place.child(keyword), above) if isinstance(stated, dict) else _ANY
    first = [
        _type(place.child("prefixItems", index), above).text for index in range(len(fields.get("prefixItems", ())))
    ]
    if not first:
        return _Kind(rest.grouped + "[]")
    return _Kind(f"[{', '.join(first if stated is False else [*first, f'...{rest.grouped}[]'])}]")


def _object(place: Place, fields: dict[str, Any], above: tuple[int, ...]) -> _Kind:
    required = fields.get("required", ())
    lines: list[str] = []
    for name in fields.get("properties", {}):
        child = place.child("properties", name)
        about = (child.fields or {}).get("description")
        mark = "" if name in required else "?"
        lines.append(f"{_comment(about)}{_name(name)}{mark}: {_type(child, above).text}")
    others = (key for key in ("additionalProperties", "unevaluatedProperties") if isinstance(fields.get(key), dict))
    if (keyword := next(others, None)) is not None:
        other = _type(place.child(keyword), above)
        lines.append(f"[key: string]: {'any' if lines else other.text}")  # TypeScript wants it to cover every key
    return _Kind("{\n" + ",\n".join(lines) + "\n}" if lines else "object")


def _union(options: Iterable[_Kind]) -> _Kind:
    kinds = list(dict.fromkeys(options))
    if len(kinds) < 2:
        return kinds[0] if kinds else _Kind("never")
    return _Kind(" | ".join(kind.text for kind in kinds), compound=True)


def _intersection(options: Iterable[_Kind]) -> _Kind:
    kinds = list(dict.fromkeys(options))
    return kinds[0] if len(kinds) == 1 else _Kind(" & ".join(kind.grouped for kind in kinds), compound=True)
