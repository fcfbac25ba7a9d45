"""What a schema says of a value: notations that do not show the types of their values are read by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from toolgram.schema import types
from toolgram.schema.types import Canonical, Type, arrays
from toolgram.schema.writing.json_style import Spelling
from toolgram.schema.writing.values import spell_as

_ANY_DIGITS = Spelling(integer_digits=None, fraction_digits=None)
CONTAINERS = frozenset(("object", "array"))
STRING = frozenset(("string",))
_EVERYTHING = frozenset(("string", "number", "boolean", "null", "object", "array"))


@dataclass(frozen=True)
class Expected:
    """A value of `kind`, a type of `canonical`."""

    canonical: Canonical
    kind: Type

    @property
    def kinds(self) -> frozenset[str]:
        """The JSON types that the value may have."""
        return kinds_of(self.canonical, self.kind)

    def member(self, key: str) -> Expected:
        """What is expected under this key."""
        found = (types.value_of(option, key) for option in self._objects)
        return self._any_of(found)

    def item(self, index: int) -> Expected:
        """What is expected as the item of a list at this index."""
        found = (types.item_at(option, index) for option in self._arrays)
        return self._any_of(found)

    def declares(self, key: str) -> bool:
        """Whether an object that is expected here names this key."""
        return any(item.name == key for option in self._objects for item in option.properties)

    def is_rather_text(self, text: str, value: object) -> bool:
        """Whether the text is a string that may stand here, where the JSON value that it is may not."""
        canonical, kind = self.canonical, self.kind
        return not _admits(canonical, kind, value) and _admits(canonical, kind, text)

    @property
    def text_may_begin_as_json(self) -> bool:
        """Whether a string that may stand here begins with a bracket of JSON."""
        return any(_begins_with(option, "[{") for option in options_of(self.canonical, self.kind))

    @property
    def empty(self) -> str:
        """The JSON of the value of which nothing is written."""
        if "string" in self.kinds:
            return '""'
        if any(option.min == 0 for option in self._arrays):
            return "[]"
        return "{}" if "object" in self.kinds else "null" if "null" in self.kinds else '""'

    @property
    def may_have_no_members(self) -> bool:
        """Whether an object that is declared here may be empty."""
        return any(not option.min and not any(item.required for item in option.properties) for option in self._objects)

    @property
    def nullable(self) -> tuple[str, ...]:
        """The keys of an object that must be there and may be null: a notation may leave them out to say that they are.

        None where objects of several types are expected, or keys are counted.
        """
        objects = tuple(self._objects)
        if len(objects) != 1 or objects[0].min or objects[0].max is not None:
            return ()
        properties = (item for item in objects[0].properties if item.required)
        return tuple(item.name for item in properties if types.NULL in options_of(self.canonical, item.value))

    @property
    def _objects(self) -> Iterator[types.Object]:
        return (option for option in options_of(self.canonical, self.kind) if isinstance(option, types.Object))

    @property
    def _arrays(self) -> Iterator[types.Array]:
        for option in options_of(self.canonical, self.kind):
            if isinstance(option, types.Array | types.Items):
                yield arrays.loosened(option)

    def _any_of(self, kinds: Iterator[Type]) -> Expected:
        """Any of these types; where none is admissible nothing is known."""
        kind = types.union(kind for kind in kinds if kind != types.NEVER)
        return Expected(self.canonical, types.ANY if kind == types.NEVER else kind)


UNKNOWN = Expected(Canonical(types.ANY, {}), types.ANY)


def kinds_of(canonical: Canonical, kind: Type) -> frozenset[str]:
    """The JSON types of a type's values."""
    kind = canonical.resolve(kind)
    if kind == types.ANY:
        return _EVERYTHING
    return frozenset(_kind(part) for part in options_of(canonical, kind))


def options_of(canonical: Canonical, kind: Type) -> Iterator[Type]:
    """The types of which a type is the union, itself if it is none."""
    kind = canonical.resolve(kind)
    if isinstance(kind, types.Union):
        for option in kind.options:
            yield from options_of(canonical, option)
    else:
        yield kind


def _begins_with(kind: Type, chars: str) -> bool:
    """Whether a string of this type may begin with one of these characters."""
    match kind:
        case types.Text(value):
            return value[:1] in chars if value else False
        case types.String(_, _, automaton) if automaton is not None:
            return any(char in charset for charset, _ in automaton.states[0].edges for char in chars)
        case types.String() | types.Anything():
            return True
        case _:
            return False


def _admits(canonical: Canonical, kind: Type, value: object) -> bool:
    """Whether a JSON value is of the type; keys that no schema forbids may stand in an object besides."""
    return any(
        _fits(canonical, option, cast("dict[str, object]", value))
        if isinstance(value, dict) and isinstance(option, types.Object) and option.closed
        else spell_as(replace(canonical, root=option), cast("object", value), _ANY_DIGITS) is not None
        for option in options_of(canonical, kind)
    )


def _fits(canonical: Canonical, kind: types.Object, given: dict[str, object]) -> bool:
    """Whether what an object declares is there, and as it is declared."""
    return all(
        _admits(canonical, item.value, given[item.name]) if item.name in given else not item.required
        for item in kind.properties
    )


def _kind(kind: Type) -> str:
    match kind:
        case types.Word("null"):
            return "null"
        case types.Word():
            return "boolean"
        case types.Number():
            return "number"
        case types.Array() | types.Items():
            return "array"
        case types.Object():
            return "object"
        case _:
            return "string"
