r"""JSON Schema to GBNF as in 2024: one rule for each schema and each member of an object, named by its path.

For `{"properties": {"a": {"type": "integer"}}, "required": ["a"]}` under the name `args`::

    args ::= "{" space args-a-kv "}" space
    args-a-kv ::= "\"a\"" space ":" space integer

Its habits are kept, whether or not they are good: a blank may follow each token, integers have at most eleven digits, a
required property that is not declared is passed over, objects are closed, `oneOf` is `anyOf`, and all the rules that
numbers may need come along with each number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from toolgram.errors import InvalidSchema, UnsupportedSchema
from toolgram.schema.reading.keywords import check_shapes

_MORE_DIGITS = " [0-9]?" * 10


class _Primitive(NamedTuple):
    text: str
    needs: tuple[str, ...] = ()


PRIMITIVES: Mapping[str, _Primitive] = {
    "boolean": _Primitive('("true" | "false") space'),
    "decimal-part": _Primitive(f"[0-9]{_MORE_DIGITS}"),
    "integral-part": _Primitive(f"[0-9] | [1-9]{_MORE_DIGITS}"),
    "integer": _Primitive('("-"? integral-part) space', ("integral-part", "decimal-part")),
    "number": _Primitive(
        '("-"? integral-part) ("." decimal-part)? ([eE] [-+]? integral-part)? space', ("integral-part", "decimal-part")
    ),
    "null": _Primitive('"null" space'),
    "string": _Primitive(
        r"""
 "\"" (
        [^"\\] |
        "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])
      )* "\"" space"""[1:]
    ),
    "array": _Primitive('"[" space ( value ("," space value)* )? "]" space', ("value",)),
    "object": _Primitive(
        '"{" space ( string ":" space value ("," space string ":" space value)* )? "}" space', ("string", "value")
    ),
    "value": _Primitive(
        "object | array | string | number | boolean | null", ("object", "array", "string", "number", "boolean", "null")
    ),
}
"""The rules that schemas share; `value` is any JSON."""

_TYPES = PRIMITIVES.keys() - {"decimal-part", "integral-part", "value"}
_RESERVED = PRIMITIVES.keys() | {"root", "space"}
_ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated"}
_KEYWORDS: Mapping[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
}
_TELLING = (("object", "properties"), ("array", "items"), ("array", "prefixItems"))
_OF_TYPES = {"type"}.union(*_KEYWORDS.values())  # where a type is stated, those of other types say nothing
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(text: str) -> str:
    """The text as a GBNF literal."""
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'


def json_literal(value: Any) -> str:
    """The JSON of a value as a GBNF literal."""
    return literal(json.dumps(value, ensure_ascii=False))


@dataclass(slots=True)
class Lowering:
    """The rules made so far, by name."""

    rules: dict[str, str] = field(default_factory=lambda: {"space": '" "?'})

    def text(self) -> str:
        """The rules in alphabetical order, one a line."""
        return "\n".join(f"{name} ::= {text}" for name, text in sorted(self.rules.items()))

    def add(self, name: str, text: str) -> str:
        """Adds a rule and returns its name: another one, where `name` is not one, or another rule has it."""
        base = unique = _NOT_IN_NAMES.sub("-", name) or "-"
        count = 0
        while self.rules.get(unique, text) != text:
            unique, count = f"{base}{count}", count + 1
        self.rules[unique] = text
        return unique

    def schema(self, schema: Any, name: str | None, pointer: str = "") -> str:
        """Adds the rules of a schema and returns the name of its own; without a name it is the root.

        Raises UnsupportedSchema for a keyword that the profile does not know, `pointer` being that of the schema, and
        InvalidSchema for what is none.
        """
        fields = _fields(schema, pointer)
        rule = "root" if name is None else _rule_name(name)
        for keyword in ("oneOf", "anyOf"):
            if keyword in fields:
                _check(fields, {keyword, "type"}, pointer)
                return self.add(rule, self._union(fields[keyword], name, f"{pointer}/{keyword}"))
        if "const" in fields or "enum" in fields:
            _check(fields, {"const", "enum", "type"}, pointer)
            values = [fields["const"]] if "const" in fields else fields["enum"]
            if not values:
                raise UnsupportedSchema(pointer, "enum", _NOTHING)
            return self.add(rule, " | ".join(map(json_literal, values)))
        kind = fields.get("type")
        if isinstance(kind, list):
            one_type = [{**fields, "type": one} for one in cast("list[str]", kind)]
            return self.add(rule, self._union(one_type, name, pointer, numbered=False))
        if kind is None:
            kind = next((kind for kind, keyword in _TELLING if keyword in fields), "value")
        elif kind not in _TYPES:
            raise InvalidSchema(pointer, "type", f"there is no type {kind!r}")
        _check(fields, _OF_TYPES if "type" in fields else _KEYWORDS.get(kind, set()), pointer)
        if kind == "object" and fields.keys() & {"properties", "additionalProperties"}:
            return self._declared(fields, name, rule, pointer)
        if kind == "array" and fields.keys() & _KEYWORDS["array"]:
            return self.add(rule, self._array(fields, name, pointer))
        return self._primitive(kind, "root" if rule == "root" else kind)

    def object(self, rule: str, members: Mapping[str, str], optional: Mapping[str, str]) -> str:
        """Adds the rule of an object: each member's key with the rule of its value, the optional ones last."""
        prefix = "" if rule == "root" else f"{rule}-"
        must, may = (
            [
                self.add(f"{prefix}{key}-kv", f'{json_literal(key)} space ":" space {value}')
                for key, value in pairs.items()
            ]
            for pairs in (members, optional)
        )
        parts = [' "," space '.join(must)] if must else []
        if must:
            parts += [f'("," space {member})?' for member in may]
        elif may:
            parts.append(f"({' | '.join(_from(may, at) for at in range(len(may)))})?")
        return self.add(rule, " ".join(['"{" space', *parts, '"}" space']))

    def _primitive(self, kind: str, rule: str) -> str:
        primitive = PRIMITIVES[kind]
        if rule not in self.rules:
            self.rules[rule] = primitive.text
            for needed in primitive.needs:
                self._primitive(needed, needed)
        return rule

    def _union(self, options: list[Any], name: str | None, pointer: str, *, numbered: bool = True) -> str:
        """Any of the options; `numbered` where each has a pointer of its own."""
        prefix = _prefix(name)
        return " | ".join(
            self.schema(option, f"{prefix}{at}", f"{pointer}/{at}" if numbered else pointer)
            for at, option in enumerate(options)
        )

    def _declared(self, fields: Mapping[str, Any], name: str | None, rule: str, pointer: str) -> str:
        """An object of declared properties; others are not allowed."""
        properties: Mapping[str, Any] = fields.get("properties", {})
        if fields.get("additionalProperties", False) is not False:
            if properties or fields["additionalProperties"] is not True:
                raise UnsupportedSchema(pointer, "additionalProperties", "the profile knows only declared properties")
            return self._primitive("object", "root" if rule == "root" else "object")
        prefix = _prefix(name)
        rules = {
            key: self.schema(value, prefix + key, f"{pointer}/properties/{key.replace('~', '~0').replace('/', '~1')}")
            for key, value in properties.items()
        }
        required = fields.get("required", ())
        must = {key: value for key, value in rules.items() if key in required}
        return self.object(rule, must, {key: value for key, value in rules.items() if key not in must})

    def _array(self, fields: Mapping[str, Any], name: str | None, pointer: str) -> str:
        prefix = _prefix(name)
        if "prefixItems" in fields:
            _check(fields, _OF_TYPES - {"items", "minItems", "maxItems"}, pointer)
            items = [
                self.schema(item, f"{prefix}tuple-{at}", f"{pointer}/prefixItems/{at}")
                for at, item in enumerate(fields["prefixItems"])
            ]
            return f'"[" space {_COMMA.join(items)} "]" space'
        item = self.schema(fields.get("items", True), f"{prefix}item", f"{pointer}/items")
        least, most = fields.get("minItems", 0), fields.get("maxItems")
        if most is not None and most < least:
            raise UnsupportedSchema(pointer, "maxItems", _NOTHING)
        inside = _repeated(item, int(least), None if most is None else int(most))
        return " ".join(['"[" space', *([inside] if inside else []), '"]" space'])


_COMMA = ' "," space '
_NOTHING = "the profile has no rule that matches nothing"


def _rule_name(name: str) -> str:
    """The name of a schema's rule: not one that the profile has given away."""
    known = _NOT_IN_NAMES.sub("-", name)
    return f"{known}-" if known in _RESERVED else known


def _prefix(name: str | None) -> str:
    return "" if name is None else f"{name}-"


def _from(rules: list[str], at: int) -> str:
    """The rule at a place, then any of those after it."""
    return " ".join([rules[at], *(f'("," space {rule})?' for rule in rules[at + 1 :])])


def _repeated(item: str, least: int, most: int | None) -> str:
    """The item between `least` and `most` times, a comma between each two: GBNF had no counts in 2024."""
    if most is None:
        text = _COMMA.join([item] * max(least, 1)) + f' ("," space {item})*'
        return text if least else f"( {text} )?"
    text = ""
    for at in reversed(range(most)):
        step = f'"," space {item}' if at else item
        text = f"{step} {text}".rstrip() if at < least else f"({step} {text}".rstrip() + ")?"
    return text


def _fields(schema: Any, pointer: str) -> Mapping[str, Any]:
    if schema is True:
        return {}
    if schema is False:
        raise UnsupportedSchema(pointer, "false", _NOTHING)
    if not isinstance(schema, Mapping):
        raise InvalidSchema(pointer, "", "a schema is an object or a boolean")
    fields = cast("Mapping[str, Any]", schema)
    check_shapes(fields, pointer)
    return fields


def _check(fields: Mapping[str, Any], read: set[str], pointer: str) -> None:
    for keyword in fields:
        if keyword not in read | _ANNOTATIONS:
            raise UnsupportedSchema(pointer, keyword, "the profile of 2024 does not know it here")
