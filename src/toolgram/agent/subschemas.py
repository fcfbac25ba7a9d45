"""The schemas inside of a schema: each of them visited, changed, or made less without making the whole more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations
from typing import Any, cast

Schema = Mapping[str, Any]
Change = Callable[[dict[str, Any]], dict[str, Any]]
Narrow = Callable[[dict[str, Any], bool], dict[str, Any]]  # told whether other schemas speak of the same value

ONE = ("items", "additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties")
DEFINITIONS = ("$defs", "definitions")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_NAMED = ("properties", "patternProperties", *DEFINITIONS, "dependentSchemas")
OF_THE_SAME = ("anyOf", "oneOf", "allOf", "dependentSchemas")  # whose schemas speak of the value that theirs does
_LESS_IS_MORE = ("not", "if", "contains")  # the less these take, the more the whole may
_SAYS_NOTHING = frozenset({"title", "description", "default", "examples", "$schema", "$id", "$comment", *DEFINITIONS})


def parts(schema: Schema) -> Iterator[tuple[str, Any]]:
    """The schemas inside of one, with the keyword that each stands at; not those of which less would be more."""
    found: list[tuple[str, Any]] = []
    _with_parts(schema, lambda key, inner: found.append((key, inner)))
    yield from found


def schemas(schema: Any) -> Iterator[Schema]:
    """The schema and all inside of it."""
    if isinstance(schema, Mapping):
        yield (here := cast("Schema", schema))
        for _, inner in parts(here):
            yield from schemas(inner)


def mapped(schema: Any, change: Change) -> Any:
    """The schema with every schema inside of it, and itself, changed; a copy."""
    if not isinstance(schema, Mapping):
        return schema
    return change(_with_parts(cast("Schema", schema), lambda _, inner: mapped(inner, change)))


def _with_parts(schema: Schema, made: Callable[[str, Any], Any]) -> dict[str, Any]:
    """The schema with what is made of those inside of it, by keyword and schema."""
    new = dict(schema)
    for key, of in schema.items():
        if key in ONE and isinstance(of, Mapping):
            new[key] = made(key, of)
        elif key in _SEVERAL and isinstance(of, list):
            new[key] = [made(key, each) for each in cast("list[Any]", of)]
        elif key in _NAMED and isinstance(of, Mapping):
            new[key] = {name: made(key, each) for name, each in cast("Schema", of).items()}
    return new


def narrowed(schema: Schema, narrow: Narrow, whole: Collection[str], shared: Collection[str]) -> dict[str, Any]:
    """The schema with every schema inside of it, and itself, made less, but for those of which less is more.

    These are the options of a `oneOf` that may share values, what is negated, a condition or counted, and with them the
    definitions that have to be `whole`. Told with each schema is whether others speak of the same value, as they do
    beside `shared` definitions.
    """
    targets = definitions(schema)

    def inside(given: Any, *, beside: bool) -> Any:
        if not isinstance(given, Mapping):
            return given
        here = cast("Schema", given)
        untouched = here.get("oneOf") if "oneOf" in here and not are_apart(here["oneOf"], targets) else None
        made = _with_parts(here, lambda key, inner: inside(inner, beside=_is_shared(here, key, beside=beside)))
        return narrow(made if untouched is None else {**made, "oneOf": untouched}, beside)

    found = inside({key: value for key, value in schema.items() if key not in DEFINITIONS}, beside=False)
    for key in DEFINITIONS:
        if key in schema:
            found[key] = {
                name: each if (at := f"#/{key}/{name}") in whole else inside(each, beside=at in shared)
                for name, each in schema[key].items()
            }
    return found


def _is_shared(schema: Schema, keyword: str, *, beside: bool) -> bool:
    """Whether what stands at a keyword of a schema is one of several that speak of the same value."""
    return keyword in OF_THE_SAME and (beside or _has_more(schema))


def _has_more(schema: Schema) -> bool:
    """Whether it says more than one thing."""
    said = schema.keys() - _SAYS_NOTHING
    return len(said) > 1 or len(schema.get("allOf") or ()) > 1


def shared_definitions(schema: Schema) -> set[str]:
    """The definitions that stand beside other schemas for the same value somewhere, by the references to them."""
    targets = definitions(schema)
    found: set[str] = set()

    def look(given: Any, *, beside: bool) -> None:
        if not isinstance(given, Mapping):
            return
        here = cast("Schema", given)
        if isinstance(name := here.get("$ref"), str) and (beside or _has_more(here)) and name not in found:
            found.add(name)
            look(targets.get(name), beside=True)
        for key, inner in parts(here):
            look(inner, beside=_is_shared(here, key, beside=beside))

    look(schema, beside=False)
    return found


def whole_definitions(schema: Schema) -> set[str]:
    """The definitions of which less would be more of the whole, by the references to them."""
    targets = definitions(schema)
    pending: list[Any] = []
    for each in schemas(schema):
        pending += [each[key] for key in _LESS_IS_MORE if key in each]
        if "oneOf" in each and not are_apart(each["oneOf"], targets):
            pending.append(each["oneOf"])
    found: set[str] = set()
    while pending:
        for name in _all_references(pending.pop()):
            if name in targets and name not in found:
                found.add(name)
                pending.append(targets[name])
    return found


def _all_references(value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            for key, inner in cast("Schema", value).items():
                if key == "$ref" and isinstance(inner, str):
                    yield inner
                yield from _all_references(inner)
        case list():
            for inner in cast("list[Any]", value):
                yield from _all_references(inner)
        case _:
            pass


def are_apart(options: Any, targets: Schema) -> bool:
    """Whether it is plain that no value is of two of these schemas: by their types, or by what a key has in each."""
    seen = [_target(each, targets) for each in cast("list[Any]", options)] if isinstance(options, list) else [None]
    return all(each is not None for each in seen) and all(
        _differ(left, right) for left, right in combinations(cast("list[Schema]", seen), 2)
    )


def _target(schema: Any, targets: Schema) -> Schema | None:
    """What it refers to, where that is known."""
    for _ in range(len(targets) + 1):
        if not isinstance(schema, Mapping):
            return None
        here = cast("Schema", schema)
        if "$ref" not in here:
            return here
        schema = targets.get(here["$ref"])
    return None


def _differ(left: Schema, right: Schema) -> bool:
    kinds = [{"number" if kind == "integer" else kind for kind in kinds_of(each)} for each in (left, right)]
    if all(kinds) and kinds[0].isdisjoint(kinds[1]):
        return True
    values = [_texts(each) for each in (left, right)]
    if values[0] and values[1] and values[0].isdisjoint(values[1]):
        return True
    if any(kind != {"object"} for kind in kinds):
        return False
    needed = set(left.get("required") or ()) & set(right.get("required") or ())
    known: list[Schema] = [each.get("properties") or {} for each in (left, right)]
    both = (key for key in needed if all(isinstance(each.get(key), Mapping) for each in known))
    return any(_differ(known[0][key], known[1][key]) for key in both)


def _texts(schema: Schema) -> frozenset[str]:
    """The texts that are all its values; none where others may be too."""
    values = [schema["const"]] if "const" in schema else schema.get("enum") or []
    return frozenset(values) if all(isinstance(value, str) for value in values) else frozenset()


def kinds_of(schema: Schema) -> tuple[str, ...]:
    """The types that it names."""
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def definitions(schema: Schema) -> dict[str, Any]:
    """What a schema defines, by the references to it."""
    given = ((key, cast("Schema", schema.get(key) or {})) for key in DEFINITIONS)
    return {f"#/{key}/{name}": each for key, inner in given for name, each in inner.items()}
