"""Python types as JSON Schemas, and JSON back to their values: a type is what pydantic takes for one."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from traceback import format_exception_only
from typing import Any, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import ErrorDetails, PydanticSerializationError, SchemaError, core_schema

from toolgram.caching import MEGABYTE, Memory, weighed
from toolgram.errors import InvalidOutput, ToolgramError, json_pointer
from toolgram.schema.python_patterns import of_python, of_rust

_NAIVE = r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$"
_HEX = "[0-9A-Fa-f]"
# Keys of objects that are no strings in Python: how they are written.
_KEYS: dict[str, JsonSchemaValue] = {
    "integer": {"pattern": "^(?:0|-?[1-9][0-9]{0,18})$"},
    "number": {"pattern": r"^-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,17})?$"},
    "boolean": {"enum": ["true", "false"]},
}
_BASE64 = r"^(?:[{0}]{{4}})*(?:[{0}]{{2}}==|[{0}]{{3}}=)?$"
_OF_FORMATS: dict[str, JsonSchemaValue] = {  # pydantic's own ones, in keywords that others know
    "ipvanyaddress": {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    "base64": {"type": "string", "pattern": _BASE64.format("A-Za-z0-9+/")},
    "base64url": {"type": "string", "pattern": _BASE64.format("A-Za-z0-9_-")},
}
_OF_STRINGS = frozenset(("type", "format", "minLength", "maxLength"))
_OF_HOSTS = frozenset(("http", "https", "ws", "wss", "ftp"))  # schemes of which each URL has a host (WHATWG)
_TAG = "\0tag"  # of a union, while its schema is made: the key that tells its options apart
# Of errors whose last step is a member that is not there.
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
_IN_OTHER_WORDS = {  # which speak of Python functions, and a model wrote an object
    "arguments_type": "Arguments must be an object",
    "missing_argument": "Field required",
    "missing_keyword_only_argument": "Field required",
    "unexpected_keyword_argument": "There is no such parameter",
}


class NoSchema(ToolgramError):
    """What is no type, or one that JSON Schema cannot express."""


@dataclass(frozen=True, eq=False)
class PythonType:
    """A type: its name, the JSON Schema of what it is validated from, and what reads its values."""

    name: str
    schema: Mapping[str, Any]
    _adapter: TypeAdapter[Any]

    @staticmethod
    def of(hint: Any) -> PythonType:
        """The type that a hint stands for. Raises NoSchema."""
        try:
            adapter = TypeAdapter[Any](hint)
            schema = adapter.json_schema(schema_generator=_Schema)
        except SchemaError as error:
            raise NoSchema(" ".join(str(error).split())) from error
        except (PydanticUserError, NameError, TypeError, AttributeError) as error:
            raise NoSchema(str(error).split("\n", 1)[0]) from error
        name = hint.__name__ if isinstance(hint, type) else "answer"
        if schema.get("title") == name:
            del schema["title"]
        return PythonType(name, schema, adapter)

    def read(self, text: str) -> Any:
        """The value that JSON text stands for, as pydantic validates it. Raises InvalidOutput."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            problems = tuple(dict.fromkeys(_problems(error, text)))
            raise InvalidOutput(*problems) from error
        except Exception as error:  # whatever the type's own validators raise for a value that they did not think of
            raised = "".join(format_exception_only(error)).strip()
            raise InvalidOutput(("", f"the type's own code raised {raised}")) from error


def python_type(hint: Any) -> PythonType:
    """As `PythonType.of`, made once for types that were used of late. Raises NoSchema."""
    if inspect.isroutine(hint):
        raise NoSchema("a function is not a type")  # pydantic would call it with what it reads
    try:
        hash(hint)
    except TypeError:  # of what stands in an Annotated
        return PythonType.of(hint)
    return _remembered(hint, repr(hint))  # equal unions may try their members in another order, as their texts tell


def _weight(_hint: Any, _text: str) -> int:
    return MEGABYTE // 8  # a model of ten fields: its class, what validates it and its schema


@weighed(_weight, Memory(16 * MEGABYTE))  # not that of what requests bring: programs have types
def _remembered(hint: Any, _text: str) -> PythonType:
    return PythonType.of(hint)


class _Schema(GenerateJsonSchema):
    """Schemas that a model is shown, and that a grammar can hold it to.

    They have no titles but those that a user gave, and the order of keys in which APIs document them. A decimal is a
    number: as a text, which pydantic takes too, nothing would bound it. No default is null where null is refused: who
    is about to write what it was told would have to write something else.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's own declaration

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:  # noqa: ARG002 - pydantic's
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's
        return False

    def generate(self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        for name, definition in made.get("$defs", {}).items():
            if self.normalize_name(definition.get("title", "")) == name:
                del definition["title"]
        _require_tags(made, made.get("$defs", {}))
        return made

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        made = super().generate_inner(schema)
        own = _OF_FORMATS.get(str(made.get("format")))
        if own is None or made.get("type") != "string" or not made.keys() <= _OF_STRINGS:
            return made  # with other keywords it is what a user says of a text
        return deepcopy(own)  # without lengths, which are those of what is decoded

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        made = super().url_schema(schema)
        if schemes := schema.get("allowed_schemes"):
            host = "//[^/?#@:]" if schema.get("host_required") or _OF_HOSTS.issuperset(schemes) else ""
            made["pattern"] = f"^(?:{'|'.join(map(re.escape, schemes))}):{host}"
        return made

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        for value in schema["expected"]:
            if isinstance(value, Enum) and not isinstance(value, str | int):
                instead = f"name the value instead ({value.value!r}), or make {type(value).__name__} a StrEnum"
                raise NoSchema(f"Literal[{value}]: pydantic takes no JSON for it: {instead}")
        return super().literal_schema(schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        for member in schema["members"]:
            if not isinstance(member.value, str | int | float | None):
                raise NoSchema(f"{member}: pydantic takes no JSON for it: its value is a {type(member.value).__name__}")
        return super().enum_schema(schema)

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        made = super().tagged_union_schema(schema)
        tag = made.pop("discriminator", {}).get("propertyName")  # OpenAPI's, which says the options once more
        if tag is not None:
            made[_TAG] = tag
        return made

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        self._refuse_path(schema.get("validation_alias"))
        return super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        self._refuse_path(schema.get("validation_alias"))
        return super().dataclass_field_schema(schema)

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonSchemaValue:
        self._refuse_path(schema.get("validation_alias"))
        return super().typed_dict_field_schema(schema)

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        made = super().str_schema(schema)
        if (pattern := schema.get("pattern")) is not None:
            engine = schema.get("regex_engine") or self._config.config_dict.get("regex_engine")
            if isinstance(pattern, re.Pattern) or engine == "python-re":
                made["pattern"] = of_python(pattern)
            else:
                made["pattern"] = of_rust(pattern)
        return made

    def _refuse_path(self, alias: Any) -> None:
        """Raises NoSchema for a field that is read from within others alone: pydantic's schema has it beside them."""
        if self._config.config_dict.get("validate_by_name") or self._config.config_dict.get("populate_by_name"):
            return
        if not isinstance(alias, list):
            return
        given = cast("list[Any]", alias)  # a path, which pydantic's schema knows nothing of, or several
        several = isinstance(given[0], list)
        if not several or all(len(path) > 1 for path in given):
            path = "/".join(map(str, given[0] if several else given))
            raise NoSchema(f"a field that is read from {path}: make what it is in a model of its own")

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        made = super().datetime_schema(schema)
        # As a format it has an offset always.
        return {"type": "string", "pattern": _NAIVE} if schema.get("tz_constraint") == "naive" else made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        number = cast("JsonSchemaValue", super().decimal_schema(schema)["anyOf"][0])
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        if places is not None:
            number.setdefault("multipleOf", 10**-places)
        if digits is not None:  # of which so many stand before the point
            beyond = 10 ** max(0, digits - (places or 0))
            number["exclusiveMaximum"] = min(number.get("exclusiveMaximum", beyond), beyond)
            number["exclusiveMinimum"] = max(number.get("exclusiveMinimum", -beyond), -beyond)
        return number

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        made = super().uuid_schema(schema)
        if (version := schema.get("version")) is not None:  # of which pydantic makes a format of its own
            rest = f"{version}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}"
            made["pattern"] = f"^{_HEX}{{8}}-{_HEX}{{4}}-{rest}$"
        return made

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        return self._keyed(super().dict_schema(schema), schema.get("keys_schema"))

    def ordered_dict_schema(self, schema: core_schema.OrderedDictSchema) -> JsonSchemaValue:
        return self._keyed(super().ordered_dict_schema(schema), schema.get("keys_schema"))

    def counter_schema(self, schema: core_schema.CounterSchema) -> JsonSchemaValue:
        return self._keyed(super().counter_schema(schema), schema.get("keys_schema"))

    def _keyed(self, made: JsonSchemaValue, keys: core_schema.CoreSchema | None) -> JsonSchemaValue:
        """The schema of a mapping that admits no key which pydantic refuses, as far as a pattern can say."""
        if "patternProperties" in made:  # without this, other keys have any value
            made["additionalProperties"] = False
        of = {} if keys is None else self._resolved(self.generate_inner(keys))
        values = of.get("enum", [of["const"]] if "const" in of else [])
        kind = of.get("type", "string")
        if kind in ("array", "object", "null") or not all(isinstance(value, str) for value in values):
            raise NoSchema(f"the keys of an object are texts, and none is {json.dumps(values) if values else kind}")
        if kind in _KEYS:
            made.setdefault("propertyNames", dict(_KEYS[kind]))
        return made

    def _resolved(self, made: JsonSchemaValue) -> JsonSchemaValue:
        return self.resolve_ref_schema(made) if "$ref" in made else made

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", "") is None and self._resolved(made).get("type", "null") != "null":
            del made["default"]
        return made

    def encode_default(self, dft: Any) -> Any:
        default = float(dft) if isinstance(dft, Decimal) else super().encode_default(dft)
        try:
            json.dumps(default, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError("it is not JSON") from error  # for which pydantic leaves it out
        return default


def _require_tags(made: Any, definitions: Mapping[str, JsonSchemaValue]) -> None:
    """Requires the key by which pydantic tells the options of a union, in each of them.

    It refuses an object without that key, also where the option has a default for it.
    """
    if isinstance(made, list):
        for each in cast("list[Any]", made):
            _require_tags(each, definitions)
    if not isinstance(made, dict):
        return
    schema = cast("JsonSchemaValue", made)
    if (tag := schema.pop(_TAG, None)) is not None:
        _require(tag, schema, definitions)
    for each in [*schema.values()]:  # one of these may be a union with this very schema, which requires a key then
        _require_tags(each, definitions)


def _require(key: str, schema: JsonSchemaValue, definitions: Mapping[str, JsonSchemaValue]) -> None:
    """Requires a key of objects that have it, in all options of unions, those inside of others included."""
    of = definitions.get(schema.get("$ref", "").removeprefix("#/$defs/"), schema)
    if key in of.get("properties", ()):
        of["required"] = [name for name in of["properties"] if name == key or name in of.get("required", ())]
    for option in of.get("oneOf", ()):
        _require(key, option, definitions)


def _problems(error: ValidationError, text: str) -> Iterator[tuple[str, str]]:
    """What is wrong and where: JSON pointers into the text, and in words."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None  # of which all problems are the root's
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        yield _pointer(detail, document), _IN_OTHER_WORDS.get(detail["type"], detail["msg"])


def _pointer(detail: ErrorDetails, value: Any) -> str:
    """Where an error is; pydantic's place holds also the tags of unions, which are no part of the document."""
    *_, last = ("", *detail["loc"])
    pointer = ""
    for step in detail["loc"]:
        match value:
            case dict() if str(step) in value:
                value = cast("Any", value[str(step)])
            case list() if isinstance(step, int) and step < len(cast("list[Any]", value)):
                value = cast("Any", value[step])
            case _ if step is last and detail["type"] in _MISSING:
                pass
            case _:
                continue
        pointer += json_pointer(step)
    return pointer
