"""Tools as TypeScript declarations, the way functionary announces them.

What TypeScript has no words for (formats, ranges, defaults) stands in comments, in functionary's own words
(github.com/MeetKai/functionary, functionary/schema.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, NamedTuple, cast

from toolgram.caching import packed, unpacked, weighed
from toolgram.errors import InvalidSchema
from toolgram.schema.reading.keywords import applies_others, check_shapes, known
from toolgram.schema.reading.references import Place, open_document

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_KINDS = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}
_SIMPLE = frozenset({"type", "description"})
_MAX_DEPTH = 50
_MAX_DETAIL = 3  # branches inside of branches, whose details are given
_MAX_SCHEMAS = 10_000  # references that fan out would make a text without end
_SAID: Mapping[str, str] = {
    "format": "Format",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "exclusiveMaximum": "Exclusive maximum",
    "exclusiveMinimum": "Exclusive minimum",
    "multipleOf": "Multiple of",
    "maxLength": "Maximum length",
    "minLength": "Minimum length",
    "pattern": "Pattern",
    "maxItems": "Maximum items",
    "minItems": "Minimum items",
    "uniqueItems": "Unique items",
    "maxProperties": "Maximum properties",
    "minProperties": "Minimum properties",
}


class _Kind(NamedTuple):
    """A type as it is written, and whether an operator of its own makes it need parentheses."""

    text: str
    compound: bool = False

    @property
    def grouped(self) -> str:
        return f"({self.text})" if self.compound else self.text


_ANY, _NEVER = _Kind("any"), _Kind("never")


def declarations(tools: Iterable[tuple[str, str | None, object]]) -> str:
    """The namespace that declares these tools, as functionary has it. Raises InvalidSchema for what is no schema."""
    return "\n".join(
        [
            "// Supported function definitions that should be called when necessary.",
            "namespace functions {",
            "\n\n".join(signatures(tools)),
            "} // namespace functions",
        ]
    )


def signatures(tools: Iterable[tuple[str, str | None, object]]) -> list[str]:
    """The declaration of each of these tools: name, description and JSON Schema of the parameters.

    Types that refer to themselves are declared by name, before the tool that takes them. Types that TypeScript has no
    words for are `any`. Raises InvalidSchema for what is no schema.
    """
    return list(_signatures(tuple(packed(list(tool)) for tool in tools)))


def _weight(content: bytes) -> int:
    return 3 * getsizeof(content)


def _weight_of_all(contents: tuple[bytes, ...]) -> int:
    return sum(map(_weight, contents))


@weighed(_weight_of_all)
def _signatures(contents: tuple[bytes, ...]) -> tuple[str, ...]:
    """Like `signatures`, of tools as they are packed: a conversation shows the same ones at every turn."""
    declared = tuple(map(_by_itself, contents))
    if None not in declared:
        return tuple(filter(None, declared))
    tools = [unpacked(content) for content in contents]
    writer = _Writer({name for name, _, _ in tools})
    return tuple(known or writer.tool(index, *tools[index]) for index, known in enumerate(declared))


@weighed(_weight)
def _by_itself(content: bytes) -> str | None:
    """The declaration of a tool, as it is beside any others; None where it is not, since it names types of its own, or
    has a fault, which is told with the tool's place."""
    writer = _Writer(set())
    try:
        declared = writer.tool(0, *unpacked(content))
    except InvalidSchema:
        return None
    return None if writer.taken else declared


@dataclass(slots=True)
class _Writer:
    """Writes the types of one namespace; `taken` are the names in it, `_names` those of types, by their schemas."""

    taken: set[str]
    _names: dict[int, str] = field(default_factory=dict[int, str])
    _declared: list[str] = field(default_factory=list[str])
    _schemas: int = 0

    def tool(self, index: int, name: str, description: str | None, parameters: object) -> str:
        """The declaration of a tool, after those of the types that only it uses."""
        self._declared, self._names, self._schemas = [], {}, 0  # schemas are known by their identity, and pass away
        schema = cast("object", {}) if parameters is None else parameters
        place = open_document(schema, f"/tools/{index}/function/parameters", None)
        kind = self._type(place, ())
        takes = "()" if kind.text in ("any", "object") else f"(_: {kind.text})"
        return "".join(self._declared) + f"{_comment(description)}type {_name(name)} = {takes} => any;"

    def _type(self, place: Place, above: tuple[int, ...]) -> _Kind:
        """The type of a schema; `above` are the schemas that it is inside of."""
        fields = place.fields
        if fields is None:
            return _NEVER if place.schema is False else _ANY
        if id(fields) in self._names:
            return _Kind(self._names[id(fields)])
        if id(fields) in above:
            self._names[id(fields)] = self._new_name(place.pointer)
            return _Kind(self._names[id(fields)])
        self._schemas += 1
        if len(above) > _MAX_DEPTH or self._schemas > _MAX_SCHEMAS:
            return _ANY
        known_fields = known(fields, place.draft)
        check_shapes(known_fields, place.pointer)
        kind = self._composed(place, known_fields, (*above, id(fields)))
        if id(fields) not in self._names:
            return kind
        name = self._names[id(fields)]
        self._declared.append(f"type {name} = {'any' if kind.text == name else kind.text};\n\n")
        return _Kind(name)

    def _new_name(self, pointer: str) -> str:
        last = pointer.rpartition("/")[2]
        base = last if _IDENTIFIER.fullmatch(last) else "value"
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}{count}"
        self.taken.add(name)
        return name

    def _composed(self, place: Place, fields: Mapping[str, Any], above: tuple[int, ...]) -> _Kind:
        """What the keywords say that apply in place, all of them."""
        parts: list[_Kind] = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in fields:
                target = place.follow(fields[keyword], keyword)  # a dynamic one: what it means if nobody refers here
                parts.append(self._type(target, above) if target else _ANY)
        if "$ref" in fields and place.draft in (4, 6, 7):
            return parts[0]  # where siblings of $ref say nothing
        if "const" in fields:
            parts.append(_Kind(_literal(fields["const"])))
        elif "enum" in fields:
            parts.append(_union(_Kind(_literal(value)) for value in fields["enum"]))
        else:
            parts.insert(0, self._plain(place, fields, above))
        parts.extend(self._branches(place, fields, "allOf", above))
        parts.extend(_union(self._branches(place, fields, key, above)) for key in ("anyOf", "oneOf") if key in fields)
        kind = _intersection(parts)
        return _union([kind, _Kind("null")]) if fields.get("nullable") is True else kind

    def _branches(self, place: Place, fields: Mapping[str, Any], keyword: str, above: tuple[int, ...]) -> list[_Kind]:
        return [self._type(place.child(keyword, index), above) for index in range(len(fields.get(keyword, ())))]

    def _plain(self, place: Place, fields: Mapping[str, Any], above: tuple[int, ...]) -> _Kind:
        """By the type, or what the keywords for one kind of value let guess."""
        guess = None
        if any(keyword in fields for keyword in ("properties", "patternProperties", "additionalProperties")):
            guess = "object"
        elif "items" in fields or "prefixItems" in fields:
            guess = "array"
        stated = fields.get("type", guess)
        if stated is None:
            return _ANY
        kinds: list[str] = [stated] if isinstance(stated, str) else list(stated)
        return _union(self._kind(place, fields, kind, above) for kind in kinds)

    def _kind(self, place: Place, fields: Mapping[str, Any], kind: str, above: tuple[int, ...]) -> _Kind:
        match kind:
            case "array":
                return self._array(place, fields, above)
            case "object":
                return self._object(place, fields, above)
            case _:
                return _Kind(_KINDS[kind])

    def _array(self, place: Place, fields: Mapping[str, Any], above: tuple[int, ...]) -> _Kind:
        keyword = "items" if isinstance(fields.get("items"), list) else "prefixItems"
        first = self._branches(place, fields, keyword, above)
        others = _beyond(fields, "additionalItems" if keyword == "items" else "items", "unevaluatedItems")
        rest = self._type(place.child(others), above) if others in fields else _ANY
        if not first:
            return _Kind(rest.grouped + "[]")
        least, most = fields.get("minItems", 0), fields.get("maxItems", len(first) + 1)
        items = [item.text if index < least else f"{item.grouped}?" for index, item in enumerate(first[: int(most)])]
        if rest != _NEVER and most > len(first):
            items.append(f"...{rest.grouped}[]")
        return _Kind(f"[{', '.join(items)}]")

    def _object(self, place: Place, fields: Mapping[str, Any], above: tuple[int, ...]) -> _Kind:
        required = dict.fromkeys(fields.get("required", ()))
        members: list[str] = []
        for name, schema in fields.get("properties", {}).items():
            about, kind = self._member(place, name, schema, above)
            members.append(f"{about}{_name(name)}{'' if name in required else '?'}: {kind}")
        demanded = [name for name in required if name not in fields.get("properties", {})]
        if demanded:
            rest = _ANY if fields.get("patternProperties") else self._rest(place, fields, above)
            members.extend(f"{_name(name)}: {rest.text}" for name in demanded)
        declares = bool(fields.get("properties"))
        if others := self._other_keys(place, fields, above, alone=not declares, known=demanded):
            members.append(others)
        return _Kind("{\n" + ",\n".join(members) + "\n}" if members else "object")

    def _member(self, place: Place, name: str, schema: object, above: tuple[int, ...]) -> tuple[str, str]:
        """What is said of a property, as comment lines, and its type."""
        if self._schemas < _MAX_SCHEMAS and (simple := _simple(schema)):  # as most are, for which no place is needed
            self._schemas += 1
            return simple
        child = place.child("properties", name)
        return _about(child), self._type(child, above).text

    def _other_keys(
        self, place: Place, fields: Mapping[str, Any], above: tuple[int, ...], *, alone: bool, known: Collection[str]
    ) -> str | None:
        """The line for keys that are neither declared nor `known`, where the schema says something of them."""
        others = _beyond(fields, "additionalProperties", "unevaluatedProperties")
        rest, names = fields.get(others, True), fields.get("propertyNames")
        texts = list(fields.get("patternProperties", {}))
        if not texts and not isinstance(rest, dict) and (names is None or rest is False):
            return None
        if isinstance(names, dict) and _are_among(cast("Mapping[str, Any]", names).get("enum"), known):
            return None
        kinds = [self._type(place.child("patternProperties", text), above) for text in texts]
        notes = [f"Keys like /{text}/: {kind.text}" for text, kind in zip(texts, kinds, strict=True)]
        if isinstance(names, dict):
            written = self._type(place.child("propertyNames"), above)
            notes.append(f"Keys: {written.text} {_details(place.child('propertyNames'))}".rstrip())
        kinds.append(self._rest(place, fields, above))
        value = _union(kinds) if alone else _ANY  # TypeScript wants it to cover every key
        return f"{_comment(chr(10).join(notes))}[key: string]: {value.text}"

    def _rest(self, place: Place, fields: Mapping[str, Any], above: tuple[int, ...]) -> _Kind:
        """The type of the values of keys that the schema lists nowhere."""
        others = _beyond(fields, "additionalProperties", "unevaluatedProperties")
        return self._type(place.child(others), above) if others in fields else _ANY


def _simple(schema: object) -> tuple[str, str] | None:
    """Comment lines and type of a schema that states one type and a description at most; None for any other."""
    if not isinstance(schema, dict):
        return None
    fields = cast("Mapping[str, object]", schema)
    kind = fields.get("type") if fields.keys() <= _SIMPLE else None
    written = _KINDS.get(kind) if isinstance(kind, str) else None
    return None if written is None else (_comment(fields.get("description")), written)


def _are_among(values: object, known: Collection[str]) -> bool:
    return isinstance(values, list) and all(value in known for value in cast("list[object]", values))


def _beyond(fields: Mapping[str, Any], stated: str, unevaluated: str) -> str:
    """The keyword for what is not listed: the unevaluated one, where that alone says something of it."""
    return unevaluated if stated not in fields and unevaluated in fields and not applies_others(fields) else stated


def _comment(text: object) -> str:
    """The text as comment lines; nothing for no text."""
    lines = text.splitlines() if isinstance(text, str) else []
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _about(place: Place) -> str:
    """The description of a schema, or of what it refers to, and what its type cannot say, as comment lines."""
    return _comment(_with_target(place).get("description")) + _comment(_details(place))


def _with_target(place: Place) -> dict[str, Any]:
    """The keywords of a schema, and those that it does not state itself of the one that it refers to."""
    fields = place.fields or {}
    target = place.follow(fields["$ref"]) if isinstance(fields.get("$ref"), str) else None
    return {**((target.fields if target else None) or {}), **fields}


def _details(place: Place, depth: int = 0) -> str:
    """The keywords that have no place in a type, as functionary words them; those of alternatives joined by "or"."""
    if depth > _MAX_DETAIL:
        return ""
    fields = _with_target(place)
    said = [f"Default={_literal(fields['default'])}."] if "default" in fields else []
    said += [
        _worded(words, fields[keyword])
        for keyword, words in _SAID.items()
        if keyword in fields and _is_said(fields[keyword])
    ]
    if isinstance((place.fields or {}).get("items"), dict) and (inside := _details(place.child("items"), depth + 1)):
        said.append(f"Items: {inside}")
    for keyword, joined in (("allOf", " "), ("anyOf", " or "), ("oneOf", " or ")):
        branches = (place.fields or {}).get(keyword)
        count = len(cast("list[object]", branches)) if isinstance(branches, list) else 0
        inner = (_details(place.child(keyword, index), depth + 1) for index in range(count))
        said.append(joined.join(filter(None, dict.fromkeys(inner))))
    return " ".join(filter(None, said))


def _is_said(value: object) -> bool:
    return isinstance(value, str | int | float) and value is not False


def _worded(words: str, value: object) -> str:
    return words if value is True else f"{words}={value}"


def _name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else _literal(name)


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _union(options: Iterable[_Kind]) -> _Kind:
    kinds = list(dict.fromkeys(option for option in options if option != _NEVER))
    if _ANY in kinds:
        return _ANY
    if len(kinds) < 2:
        return kinds[0] if kinds else _NEVER
    return _Kind(" | ".join(kind.text for kind in kinds), compound=True)


def _intersection(options: Iterable[_Kind]) -> _Kind:
    kinds = list(dict.fromkeys(option for option in options if option != _ANY))
    if _NEVER in kinds:
        return _NEVER
    if len(kinds) < 2:
        return kinds[0] if kinds else _ANY
    return _Kind(" & ".join(kind.grouped for kind in kinds), compound=True)
