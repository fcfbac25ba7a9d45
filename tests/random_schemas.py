"""Random schemas over all keywords of draft 2020-12, and values that such a schema admits or just misses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

KEYS = ("a", "b", "ab", "c1", 'q"')
PATTERNS = ("^a", "b$", "^[ab]*$", "^a{1,3}$", "1", "^[^a]+$", "^(a|b1)$", "^\\D?$", '"', "\\\\", "^(?!a)", "(?<=a)b")
"""Without a dot, which of line separators jsonschema-rs takes more than ECMA-262 does; see test_regex."""
FORMATS = ("date", "ipv4", "uuid", "json-pointer", "nothing")
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
DEFINITIONS = ("x", "y/~")
REFERENCES = ("#", "#/$defs/x", "#/$defs/y~1~0", "#anchor")

TEXTS = st.one_of(
    st.sampled_from(["", "a", "ab", "aab", "b1", 'a"', "\\a", "\n", "é", "😀", "2026-01-31", "127.0.0.1", "/a~0/b"]),
    st.text("ab1", max_size=5),
)
NUMBERS = st.one_of(st.integers(-12, 12), st.integers(-160, 160).map(lambda n: n / 4), st.sampled_from([0.01, -0.1]))
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | TEXTS, inner, max_size=3),
    max_leaves=5,
)

_IN_PLACE = ("anyOf", "oneOf", "allOf")


# Schemas


def _some(draw: st.DrawFn, most: int, fields: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, min_size=1, max_size=most))
    return {key: draw(fields[key]) for key in chosen}


_COUNTS = st.integers(0, 3)


@st.composite
def _strings(draw: st.DrawFn) -> dict[str, Any]:
    return _some(draw, 3, {"minLength": _COUNTS, "maxLength": _COUNTS, "pattern": st.sampled_from(PATTERNS)})


@st.composite
def _formats(draw: st.DrawFn) -> dict[str, Any]:
    """With the type, without which a format asserts nothing."""
    return {"type": "string", "format": draw(st.sampled_from(FORMATS))} | draw(_strings() | st.just({}))


@st.composite
def _numbers(draw: st.DrawFn) -> dict[str, Any]:
    bounds = st.integers(-8, 8) | st.sampled_from([-7.5, 0.25, 0.1])
    limits = dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), bounds)
    return _some(draw, 3, {**limits, "multipleOf": st.sampled_from([1, 2, 3, 7, 0.5, 0.25, 1.5, 0.1])})


@st.composite
def _arrays(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("items", "contains", "unevaluatedItems"), inner),
        **dict.fromkeys(("minItems", "maxItems", "minContains", "maxContains"), _COUNTS),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "uniqueItems": st.booleans(),
    }
    return _some(draw, 4, fields)


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    keys = st.sampled_from(KEYS)
    names = st.lists(keys, unique=True, max_size=2)
    fields: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), inner),
        **dict.fromkeys(("minProperties", "maxProperties"), _COUNTS),
        "properties": st.dictionaries(keys, inner, min_size=1, max_size=3),
        "required": names,
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, min_size=1, max_size=2),
        "propertyNames": _strings() | _formats() | st.sampled_from([{"enum": ["a", "b"]}, {"not": {"const": "a"}}]),
        "dependentRequired": st.dictionaries(keys, names, min_size=1, max_size=2),
        "dependentSchemas": st.dictionaries(keys, inner, min_size=1, max_size=1),
    }
    return _some(draw, 4, fields)


@st.composite
def _choices(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    lists = dict.fromkeys(_IN_PLACE, st.lists(inner, min_size=1, max_size=3))
    return _some(draw, 3, {**lists, **dict.fromkeys(("not", "if", "then", "else"), inner)})


_REFERENCES = st.fixed_dictionaries({"$ref": st.sampled_from(REFERENCES)})
_CONSTANTS = st.fixed_dictionaries({"const": VALUES})
_ENUMS = st.fixed_dictionaries({"enum": st.lists(SCALARS | VALUES, max_size=4)})
_TYPES = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS) | st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)}
)


def _typed(kind: str, keywords: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Mostly with the type that the keywords speak of."""
    return st.tuples(keywords, st.sampled_from([{"type": kind}, {"type": kind}, {}])).map(lambda two: two[0] | two[1])


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = (_typed("array", _arrays(inner)), _typed("object", _objects(inner)), _choices(inner))
    one = st.one_of(*parts)
    return st.one_of(one, one, st.tuples(one, _choices(inner) | _TYPES | _REFERENCES).map(lambda two: two[0] | two[1]))


_LEAVES = st.one_of(
    st.booleans(),
    _typed("string", _strings()),
    _formats(),
    _typed("number", _numbers()),
    _typed("integer", _numbers()),
    _CONSTANTS,
    _ENUMS,
    _TYPES,
    _REFERENCES,
)


@st.composite
def _documents(draw: st.DrawFn) -> Any:
    part = st.recursive(_LEAVES, _composed, max_leaves=6)
    root = draw(part)
    if "$ref" not in f"{root}":
        return root
    first, second = draw(_composed(_LEAVES)), draw(part)
    document: dict[str, Any] = {"$defs": {"x": {"$anchor": "anchor", **first}, "y/~": second}}
    return document | (root if isinstance(root, dict) else {"allOf": [root]})


def is_grounded(document: Any) -> bool:
    """Whether no schema asks about itself before it looks inside of the value."""

    def asks(schema: Any, above: tuple[int, ...]) -> bool:
        if not isinstance(schema, dict):
            return True
        return id(schema) not in above and all(
            asks(inner, (*above, id(schema))) for inner in in_place(document, schema)
        )

    defined = document.get("$defs", {}).values() if isinstance(document, dict) else ()
    return all(asks(schema, ()) for schema in (document, *defined))


def in_place(document: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas that this one applies to the same value."""
    if "$ref" in schema:
        yield referred(document, schema["$ref"])
    for keyword in _IN_PLACE:
        yield from schema.get(keyword, ())
    yield from (schema[keyword] for keyword in ("not", "if", "then", "else") if keyword in schema)
    yield from schema.get("dependentSchemas", {}).values()


def referred(document: Any, reference: str) -> Any:
    """What one of the `REFERENCES` refers to."""
    match reference:
        case "#":
            return document
        case "#/$defs/x" | "#anchor":
            return document["$defs"]["x"]
        case _:
            return document["$defs"]["y/~"]


SCHEMAS: st.SearchStrategy[Any] = _documents().filter(is_grounded)


# Values


@st.composite
def near(draw: st.DrawFn, document: Any) -> Any:
    """A value that is built as the schema says, more or less, and perhaps changed in one place."""
    value = _Builder(draw, document).value([document], 0)
    return _changed(draw, value) if draw(st.booleans()) else value


class _Builder:
    """Builds values by what several schemas say of the same place, without regard to whether they agree."""

    def __init__(self, draw: st.DrawFn, document: Any) -> None:
        self.draw = draw
        self.document = document

    def value(self, schemas: list[Any], depth: int) -> Any:
        """A value for a place that these schemas speak of."""
        said = list(self.said(schemas))
        kinds = [kind for each in said if "type" in each for kind in _listed(each["type"])]
        named = [
            value for each in said for value in [*each.get("enum", ()), *([each["const"]] if "const" in each else [])]
        ]
        if named and self.draw(st.integers(0, 9)):
            return self.draw(st.sampled_from(named))
        spoken = kinds or [kind for kind in ("array", "object") if any(each.keys() & _SPEAK[kind] for each in said)]
        kind = self.draw(st.sampled_from(spoken)) if spoken else "any"
        match kind:
            case "string":
                patterns = [each["pattern"] for each in said if "pattern" in each]
                return self.draw(st.from_regex(patterns[0], alphabet='ab1"\\', fullmatch=False) if patterns else TEXTS)
            case "integer" | "number":
                bounds = [bound for each in said for key, bound in each.items() if key in _LIMITS]
                near_bounds = [st.sampled_from(bounds), st.sampled_from(bounds).map(lambda n: n + 1)] if bounds else []
                return self.draw(st.one_of(NUMBERS, *near_bounds))
            case "array" if depth < 4:
                return self.array(said, depth)
            case "object" if depth < 4:
                return self.object(said, depth)
            case _:
                return self.draw(VALUES)

    def said(self, schemas: list[Any], depth: int = 0) -> Iterator[dict[str, Any]]:
        """These schemas, all that they hold in place, and one of each choice."""
        for schema in schemas:
            if not isinstance(schema, dict) or depth > 4:
                continue
            yield schema
            follow = [*schema.get("allOf", ()), *schema.get("dependentSchemas", {}).values()]
            follow += [
                self.draw(st.sampled_from(schema[keyword])) for keyword in ("anyOf", "oneOf") if keyword in schema
            ]
            follow += [schema[key] for key in ("if", "then", "else") if key in schema and self.draw(st.booleans())]
            follow += [referred(self.document, schema["$ref"])] if "$ref" in schema else []
            yield from self.said(follow, depth + 1)

    def array(self, said: list[dict[str, Any]], depth: int) -> list[Any]:
        """As many items as one of the schemas wants."""
        counts = [each[key] for each in said for key in ("minItems", "maxItems", "minContains") if key in each]
        items: list[Any] = []
        for index in range(self.draw(st.sampled_from(counts) if counts else st.integers(0, 3))):
            here: list[Any] = []
            for each in said:
                prefix = each.get("prefixItems", ())
                rest = [each[key] for key in ("items", "contains", "unevaluatedItems") if key in each]
                here += [prefix[index]] if index < len(prefix) else rest and [self.draw(st.sampled_from(rest))]
            items.append(self.value(here, depth + 1))
        return items

    def object(self, said: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        """The required keys, some of the declared ones, and others."""
        needed = [key for each in said for key in each.get("required", ())]
        declared = sorted({key for each in said for key in each.get("properties", {})})
        some = st.lists(st.sampled_from([*declared, *KEYS]) | TEXTS, unique=True, max_size=3)
        result: dict[str, Any] = {}
        for key in dict.fromkeys([*needed, *self.draw(some)]):
            here: list[Any] = [each["properties"][key] for each in said if key in each.get("properties", {})]
            others = [value for each in said for value in each.get("patternProperties", {}).values()]
            others += [each[k] for each in said for k in ("additionalProperties", "unevaluatedProperties") if k in each]
            if others and (not here or self.draw(st.booleans())):
                here.append(self.draw(st.sampled_from(others)))
            result[key] = self.value(here, depth + 1)
        return result


def _listed(kinds: Any) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_SPEAK = {
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"},
    "object": {
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
        *("maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    },
}


def _changed(draw: st.DrawFn, value: Any) -> Any:
    """The value with a change somewhere: a key or item more or less, another letter, a number beside it."""
    match value:
        case dict() if value and draw(st.booleans()):
            key = draw(st.sampled_from(sorted(value)))
            rest = {other: item for other, item in value.items() if other != key}
            return rest if draw(st.booleans()) else value | {key: _changed(draw, value[key])}
        case dict():
            return value | {draw(st.sampled_from(KEYS)): draw(VALUES)}
        case list() if value and draw(st.booleans()):
            at = draw(st.integers(0, len(value) - 1))
            return [*value[:at], *([] if draw(st.booleans()) else [_changed(draw, value[at])]), *value[at + 1 :]]
        case list():
            return [*value, draw(st.sampled_from(value)) if value else draw(VALUES)]
        case str():
            return draw(st.sampled_from([value[1:], f"{value}a", f"b{value}"]))
        case int() | float() if not isinstance(value, bool):
            return value + draw(st.sampled_from([1, -1, 0.5]))
        case _:
            return draw(VALUES)
