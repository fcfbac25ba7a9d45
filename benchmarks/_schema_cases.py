"""Schemas with instances to judge, and the texts that an instance may be written as."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import jsonschema_rs

from _data import folder

_FOLDER = folder() / "conformance"
DEFAULT_FILES = (_FOLDER / "maskbench_dev.jsonl", _FOLDER / "json_schema_test_suite_2020_12.jsonl")
_SPACED, _COMPACT = (", ", ": "), (",", ":")
_BRANCHES = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else")


class Instance(NamedTuple):
    """A JSON value and whether the data says that it is valid."""

    valid: bool
    data: Any


class Case(NamedTuple):
    """A schema with its instances."""

    source: str
    id: str
    schema: Any
    instances: tuple[Instance, ...]


def load(paths: Iterable[Path]) -> Iterator[Case]:
    """The cases of these files (JSON, or one JSON object a line) and folders of such files, in order."""
    for path in paths:
        if path.is_dir():
            yield from load(sorted(file for file in path.rglob("*.json*") if file.is_file()))
        elif path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                yield from (_case(path.stem, "", json.loads(line)) for line in lines)
        else:
            yield _case(path.parent.name, path.stem, json.loads(path.read_text(encoding="utf-8")))


def _case(source: str, name: str, row: Mapping[str, Any]) -> Case:
    instances = tuple(Instance(bool(test["valid"]), test["data"]) for test in row["tests"])
    return Case(source, str(row.get("id", name)), row["schema"], instances)


def only_format_forbids(case: Case, instance: Instance) -> bool:
    """Whether the instance would be valid if `format` were an annotation, as drafts since 2019-09 have it."""
    if instance.valid:
        return False
    judge = validator(case)
    return judge is not None and judge.is_valid(instance.data)


@cache
def _validator(schema: str) -> Any:
    try:
        return jsonschema_rs.validator_for(json.loads(schema), validate_formats=False)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def validator(case: Case) -> Any:
    """jsonschema-rs for the schema, `format` not asserted; None where it cannot be built."""
    return _validator(json.dumps(case.schema))


def spellings(schema: Any, data: Any) -> list[str]:
    """Texts of a value: keys in three orders, spaced and compact, 1.0 and 1, raw and escaped.

    The orders: as given, as the schema declares them, and so but the required ones first, which llama.cpp wants.
    """
    values = _distinct(form(order) for form, order in product((_same, _integral), _orders(schema, data)))
    ways = product(values, (_SPACED, _COMPACT), (False, True))
    texts = (json.dumps(value, separators=separators, ensure_ascii=escaped) for value, separators, escaped in ways)
    return [text for text in dict.fromkeys(texts) if text.isascii() or _encodable(text)]


def that_say(texts: Iterable[str], case: Case, instance: Instance) -> list[str]:
    """Those of the texts that say the same under the draft of the schema: until draft 4, 1.0 was no integer, but 1 is.

    A valid instance is not asked so closely: then 1.0 is as good as 1.
    """
    draft = _mapping(case.schema).get("$schema")
    if instance.valid or not (isinstance(draft, str) and re.search("draft-0[34]", draft)):
        return list(texts)
    given = json.dumps(instance.data, sort_keys=True)
    return [text for text in texts if json.dumps(json.loads(text), sort_keys=True) == given]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({json.dumps(value): value for value in values}.values())


def _encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _same(data: Any) -> Any:
    return data


def _integral(data: Any) -> Any:
    """The value with integers for floats that are whole."""
    match data:
        case float() if data.is_integer():
            return int(data)
        case list():
            return [_integral(item) for item in cast("list[Any]", data)]
        case dict():
            return {key: _integral(item) for key, item in cast("dict[str, Any]", data).items()}
        case _:
            return data


def _orders(schema: Any, data: Any) -> list[Any]:
    return [data, *(in_schema_order(schema, [schema], data, required_first=first) for first in (False, True))]


def in_schema_order(root: Any, schemas: Sequence[Any], data: Any, *, required_first: bool = False) -> Any:
    """The value with the keys of its objects in the order in which these schemas declare them, the others after."""
    applied = list(_applied(root, schemas, set()))
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data)
        declared = dict.fromkeys(key for schema in applied for key in _mapping(schema.get("properties")))
        required = (
            {key for schema in applied for key in _list(schema.get("required"))} if required_first else set[Any]()
        )
        order = sorted(declared, key=lambda key: key not in required)
        keys = [*(key for key in order if key in items), *(key for key in items if key not in declared)]
        inner = {key: _of_key(applied, key) for key in keys}
        return {key: in_schema_order(root, inner[key], items[key], required_first=required_first) for key in keys}
    if isinstance(data, list):
        values = cast("list[Any]", data)
        inner = [_of_index(applied, index) for index in range(len(values))]
        pairs = zip(inner, values, strict=True)
        return [in_schema_order(root, said, item, required_first=required_first) for said, item in pairs]
    return data


def _applied(root: Any, schemas: Iterable[Any], seen: set[int]) -> Iterator[Mapping[str, Any]]:
    """The schemas that say something of one place: these, what they refer to, and their branches."""
    for schema in schemas:
        one = _mapping(schema)
        if not one or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = [*(branch for name in _BRANCHES for branch in _list(one.get(name))), *(one.get(n) for n in _SINGLE)]
        inner += _mapping(one.get("dependentSchemas")).values()
        yield from _applied(root, [_at(root, one.get("$ref")), *inner], seen)


def _at(root: Any, reference: Any) -> Any:
    """What a reference into the document itself points to; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place: Any = root
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        listed = {f"{index}": item for index, item in enumerate(_list(place))}
        place = (listed or _mapping(place)).get(key)
    return place


def _of_key(schemas: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        matching = [
            value for pattern, value in _mapping(schema.get("patternProperties")).items() if _fits(pattern, key)
        ]
        named = _mapping(schema.get("properties"))
        own = [named[key]] if key in named else []
        found += own + matching or [schema.get("additionalProperties")]
    return found


def _fits(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:  # ECMA-262 knows patterns that Python does not; then the order of this one is not known
        return False


def _of_index(schemas: Iterable[Mapping[str, Any]], index: int) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        items = schema.get("items")
        first = _list(schema.get("prefixItems")) or _list(items)
        rest = _mapping(items) or schema.get("additionalItems")
        found.append(first[index] if index < len(first) else rest)
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
