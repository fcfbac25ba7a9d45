"""The ground of all bodies: what a field may be, and what is wrong with one in a sentence with its place.

A body is a Pydantic model. From it come the check, the typed request and its part of the OpenAPI document::

    class Point(Fields):
        x: Annotated[float, Number(0, 1)]
        label: Filled | None = None

    validated(Point, {"x": 2})      # InvalidRequest: /x: must be between 0 and 1, not 2
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from toolgram.errors import InvalidRequest, json_pointer

Json = Mapping[str, Any]

MAX_INTEGER = 2**53 - 1
"""The largest whole number on which all readers of JSON agree (RFC 8259, 6)."""
MAX_DEPTH = 200
MAX_TURNS = 1 << 14
MAX_LABELS = 1 << 10

_TAG = "\ue00f"  # begins the names of a union's kinds, which are no part of a pointer
_OURS = "wrong"


class Fields(BaseModel):
    """An object of a body. A field may be null where it may be absent; further ones are kept; nothing is converted."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    @property
    def given(self) -> dict[str, Any]:
        """The object as JSON: what was given of it, and nothing else."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    @property
    def further(self) -> tuple[str, ...]:
        """The names of the fields that are not known here and say something."""
        return tuple(name for name, value in (self.model_extra or {}).items() if value is not None)


def further_of(name: str, inner: Fields | None) -> tuple[str, ...]:
    """The further fields of an object that stands in a body under a name, as they are told."""
    return () if inner is None else tuple(f"{name}.{each}" for each in inner.further)


Model = TypeVar("Model", bound=Fields)


def validated(model: type[Model], body: Any) -> Model:
    """A body, checked. Raises InvalidRequest for what is wrong with it first."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=True)[0]
        raise InvalidRequest(_pointer(first["loc"]), _sentence(first)) from None


def json_of(body: Any) -> Any:
    """The body as JSON of dicts and lists, itself if it is so already.

    Raises InvalidRequest for what is not JSON, or nested so deep that no template or schema means it.
    """
    return body if is_json(body) else _as_json(body)


_SCALARS = frozenset((str, int, float, bool, type(None)))  # most of what a body holds; others may derive from them
_KEYS = frozenset((str,))


def is_json(body: Any) -> bool:
    """Whether it is made of the very types of JSON, level by level, and no deeper than `MAX_DEPTH`.

    Nearly every body is, and this is fast.
    """
    level: list[Any] = [body]
    for _ in range(MAX_DEPTH):
        objects: list[dict[Any, Any]] = [value for value in level if type(value) is dict]
        lists: list[list[Any]] = [value for value in level if type(value) is list]
        if len(objects) + len(lists) < len(level) or not _KEYS.issuperset(map(type, chain.from_iterable(objects))):
            return False
        members = chain.from_iterable([value.values() for value in objects])
        inside = chain(members, chain.from_iterable(lists))
        level = [value for value in inside if type(value) not in _SCALARS]
        if not level:
            return True
    return False


def _as_json(body: Any) -> Any:
    """Like `json_of`, one value at a time, and says where what is wrong stands."""
    waiting: list[tuple[Any, str, int]] = [(body, "", 0)]
    converted = False
    while waiting:
        value, pointer, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidRequest(pointer[:200], f"nested more than {MAX_DEPTH} deep")
        inside: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict | Mapping):  # a dict is found sooner than by what a Mapping is
            members = cast("Mapping[Any, Any]", value)
            converted = converted or not isinstance(value, dict)
            if wrong := [key for key in members if not isinstance(key, str)]:
                raise InvalidRequest(pointer, f"the key {wrong[0]!r} is not a string")
            inside = members.items()
        elif isinstance(value, list | tuple):
            converted = converted or not isinstance(value, list)
            inside = enumerate(cast("Sequence[Any]", value))
        elif type(value) not in _SCALARS and not isinstance(value, str | int | float):
            raise InvalidRequest(pointer, _not_json(value))
        waiting += [(each, f"{pointer}/{key}", depth + 1) for key, each in inside if type(each) not in _SCALARS]
    return _converted(body) if converted else body


def _not_json(value: object) -> str:
    if isinstance(value, type):
        name = value.__name__
        return (
            f"{name} is a Python type, which stands as response_format itself (or list[{name}]): give its JSON Schema"
        )
    return f"{type(value).__name__} is no type of JSON"


def _converted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _converted(each) for key, each in cast("Json", value).items()}
    if isinstance(value, list | tuple):
        return [_converted(each) for each in cast("Sequence[Any]", value)]
    return value


# What a field may be ------------------------------------------------------------------------------------------------


def wrong(sentence: str) -> PydanticCustomError:
    """What a check of a field raises: the sentence after its place."""
    return PydanticCustomError(_OURS, "{sentence}", {"sentence": sentence})


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `low` to `high`, both included; a `whole` one may be written `3.0`."""

    low: float
    high: float | None = None
    whole: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        bounds = {"minimum": self.low, **({} if self._most == math.inf else {"maximum": self._most})}
        return {"type": "integer" if self.whole else "number", **bounds}

    @property
    def _most(self) -> float:
        return self.high if self.high is not None else MAX_INTEGER if self.whole else math.inf

    def _check(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong(f"must be a number, not {kind(value)}")
        if not self.low <= value <= self._most:
            least = self.high is None and not value > self.low
            told = f"at least {self.low:g}" if least else f"between {self.low:g} and {self._most:g}"
            raise wrong(f"must be {told}, not {value}")
        if not self.whole:
            return value
        # A number that is too large for an integer of 64 bits comes as the nearest one that is not.
        if value != int(value) or (isinstance(value, float) and abs(value) > MAX_INTEGER):
            raise wrong(f"must be a whole number, not {value}")
        return int(value)


def _filled(value: str) -> str:
    if not value:
        raise wrong("must not be empty")
    return value


def _object(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise wrong(f"must be an object, not {kind(value)}")
    return cast("Any", value)


def at_most(count: int) -> BeforeValidator:
    """An object with no more members than this, of which none is looked at where there are more."""

    def check(value: Any) -> Any:
        if isinstance(value, Mapping) and len(cast("Json", value)) > count:
            raise wrong(f"must hold at most {count}, not {len(cast('Json', value))}")
        return cast("Any", value)

    return BeforeValidator(check)


Item = TypeVar("Item")

Filled = Annotated[str, AfterValidator(_filled), WithJsonSchema({"type": "string", "minLength": 1})]
"""A string that is not empty."""
Many = Annotated[list[Item], Field(fail_fast=True)]
"""A list, of which only what is wrong first is looked for."""
Some = Annotated[list[Item], Field(min_length=1, fail_fast=True)]
"""A list that is not empty."""
Turns = Annotated[list[Item], Field(min_length=1, max_length=MAX_TURNS, fail_fast=True)]
"""The messages of a conversation."""
Labels = Annotated[dict[str, str], at_most(MAX_LABELS)]
"""What a client notes down with a request."""
Schema = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "boolean"}, {"type": "array", "maxItems": 0}]})
]
"""A JSON Schema, which is checked when it is compiled; PHP writes `[]` for an empty one."""
Held = Annotated[Any, AfterValidator(_object), WithJsonSchema({"type": "object"})]
"""An object that is held by reference, and not looked into."""
Count = Annotated[int, Number(0, whole=True)]


def absent(sentence: str, *, empty: bool = False) -> AfterValidator:
    """A field that others have, and that may only be null here; with `empty`, false and whatever is empty too."""

    def check(value: Any) -> Any:
        if value if empty else value is not None:
            raise wrong(sentence)
        return value

    return AfterValidator(check)


def whole(sentence: str) -> WrapValidator:
    """A field with one sentence for all that may be wrong inside of it."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise wrong(sentence) from None

    return WrapValidator(check)


def among(kind: str, *others: str) -> AfterValidator:
    """A `type` that is of this kind; the sentence names the `others` that may stand in its place."""
    known = " or ".join(f'"{each}"' for each in (kind, *others))

    def check(value: str) -> str:
        if value != kind:
            raise wrong(f"unknown type {_short(value)}: must be {known}")
        return value

    return AfterValidator(check)


def unlike(*kinds: str) -> WithJsonSchema:
    """What the document says of a `type` that is none of these kinds, which are told apart `by` it."""
    return WithJsonSchema({"type": "string", "not": {"enum": list(kinds)}})


def by(told: Callable[[Any], str | None], sentence: str) -> Discriminator:
    """Tells the kinds of a union apart: a value is of the kind that `told` names; None: it is none, by the sentence."""

    def tag(value: Any) -> str | None:
        name = told(value)
        return None if name is None else _TAG + name

    return Discriminator(tag, _OURS, sentence)


def of(name: str) -> Tag:
    """Marks one kind of a union whose kinds are told apart `by` a function."""
    return Tag(_TAG + name)


def type_of(value: Any) -> str | None:
    """The `type` of an object; None where it has none that is a string, or is no object."""
    named = cast("Json", value).get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return named if isinstance(named, str) else None


# What is wrong with one ---------------------------------------------------------------------------------------------


def _pointer(loc: Sequence[int | str]) -> str:
    steps = [step for step in loc if not (isinstance(step, str) and step.startswith(_TAG))]
    if steps[-1:] == ["[key]"]:  # the member itself is meant
        steps.pop()
    return json_pointer(*steps)


_MUST: Mapping[str, str] = {
    "model_type": "must be an object, not {kind}",
    "model_attributes_type": "must be an object, not {kind}",
    "dict_type": "must be an object, not {kind}",
    "list_type": "must be a list, not {kind}",
    "string_type": "must be a string, not {kind}",
    "string_unicode": "holds half of a character (a lone surrogate)",
    "bool_type": "must be true or false, not {kind}",
}


def _sentence(error: ErrorDetails) -> str:
    value: Any = error["input"]
    match error["type"]:
        case "missing":
            return "is missing"
        case "literal_error":
            expected = error.get("ctx", {})["expected"]
            return f"must be {expected}, not {_short(value)}"
        case "too_short":
            return "must not be empty"
        case "too_long":
            return f"must hold at most {error.get('ctx', {})['max_length']}, not {len(value)}"
        case type_ if type_ in _MUST:
            return _MUST[type_].format(kind=kind(value))
        case _:
            return re.sub(r"\s+", " ", error["msg"])


def _short(value: Any) -> str:
    """The value in a sentence: a string as it is, of anything else what it is."""
    if not isinstance(value, str):
        return kind(value)
    return repr(value if len(value) <= 40 else value[:40] + "…")


def kind(value: Any) -> str:
    """What a value is, in JSON's words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
