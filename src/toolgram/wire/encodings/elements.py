"""Arguments as nested elements: keys are tags, objects and lists are elements inside elements, strings raw.

The arguments of a call of MiniMax M3 (its chat template), {"city": "Paris", "tags": ["a", "b"]}; each tag begins with
the same mark::

    ]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[<tags>]<]minimax[>[<item>a]<]minimax[>[</item>
    ]<]minimax[>[<item>b]<]minimax[>[</item>]<]minimax[>[</tags>

(on one line). What is a string, a list or an object with nothing in it is a matter of the tool's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolgram.grammar.ir import NOTHING, Expr, Ref, Text, choice, optional, repeat, seq
from toolgram.schema import types
from toolgram.schema.types import Canonical, Type, arrays
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.schema.writing.object_members import occurs, unplaced
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.base import AnyEncoding, ArgumentsReader, ToolArguments
from toolgram.wire.encodings.element_tags import ElementsReader, ElementTags
from toolgram.wire.encodings.expected import STRING, Expected, kinds_of, options_of
from toolgram.wire.encodings.json import Sink
from toolgram.wire.encodings.members import all_of
from toolgram.wire.encodings.notation import JSON
from toolgram.wire.encodings.raw import BetweenTags, as_json, holds_json
from toolgram.wire.marks import as_tokens


@dataclass(frozen=True)
class Elements(AnyEncoding):
    """The tags: `lead`<key>value`lead`</key>, and `item` as the key of each item of a list.

    `lead` is never empty and stands in no string: a value is an element inside this one, or text. With `omits_null` the
    family's templates leave out what is null, so that its models do, also where a schema requires it.
    """

    name: str
    lead: str
    item: str = "item"
    omits_null: bool = False

    @property
    def elements(self) -> ElementTags:
        """The tags, apart from their name as an encoding."""
        return ElementTags(self.lead, self.item, self.omits_null)

    @property
    def notation(self) -> Notation:
        """JSON, for what is neither a string nor made of elements."""
        return JSON

    @property
    def may_be_empty(self) -> bool:
        """Whether no arguments are no text at all."""
        return True

    @property
    def opener(self) -> str:
        """What each tag begins with."""
        return self.lead

    @property
    def tags(self) -> tuple[str, ...]:
        """What each tag begins with."""
        return (self.lead,)

    def reader(self, expected: Expected, sink: Sink) -> ArgumentsReader:
        """Reads element by element."""
        return ElementsReader(self.elements, expected, sink)

    def arguments(
        self, canonical: Canonical, spelling: Spelling, names: RuleNames, hint: str, *, exact: bool
    ) -> ToolArguments:
        """Elements for all that a schema names; an object whose keys none names is JSON.

        No grammar ties a tag to the one that closes it.
        """
        values, tags = BetweenTags(canonical, spelling, names, exact), self.elements
        return values.arguments(_Grammar(tags, values).arguments(hint), _Writer(tags, canonical, spelling).arguments)

    def write(self, value: Any, spelling: Spelling) -> str:
        """A value as elements, keys and items as they come."""
        match value:
            case Mapping():
                members = cast("Mapping[str, Any]", value).items()
                return "".join(self.elements.around(key, self.write(each, spelling)) for key, each in members)
            case list():
                items = cast("list[Any]", value)
                return "".join(self.elements.around(self.item, self.write(each, spelling)) for each in items)
            case str():
                return value
            case _:
                return spell(value, spelling)


# The grammar of a tool's arguments


@dataclass(frozen=True)
class _Grammar:
    """The arguments of one tool as elements; `values` makes what is in them, and keeps the rules."""

    tags: ElementTags
    values: BetweenTags
    _named: dict[Type, str] = field(default_factory=dict[Type, str])

    def arguments(self, hint: str) -> Expr:
        """All of them; no element is around them."""
        canonical = self.values.canonical
        omitted = self.tags.omitted(Expected(canonical, canonical.root))
        return choice(*(self._members(kind, hint, omitted, may_be_empty=True) for kind in _objects(canonical)))

    def _value(self, kind: Type, hint: str, pointer: str) -> Expr:
        """A value between its tags."""
        if not _may_recur(kind):
            return self._written(kind, hint, pointer)
        if kind not in self._named:
            name = self._named[kind] = self.values.names.fresh(hint)
            self.values.rules[name] = self._written(self.values.canonical.resolve(kind), hint, pointer)
        return Ref(self._named[kind])

    def _written(self, kind: Type, hint: str, pointer: str) -> Expr:
        """A value that is no reference."""
        if kind == types.ANY:
            return Text((self.tags.lead,))
        canonical = self.values.canonical
        parts = unplaced(options_of(canonical, kind))
        kinds = kinds_of(canonical, kind)
        written: list[Expr] = []
        plain: list[Type] = []
        for part in parts:
            match part:
                case types.String() | types.Text():
                    written.append(self.values.string(part, pointer, (self.tags.lead,)))
                case types.Array() | types.Items():
                    if not _is_item(parts, self.tags):
                        written.append(self._items(part, hint, pointer, may_be_empty="string" not in kinds))
                case types.Object() if part.properties:
                    may_be_empty = not kinds & {"string", "array"}
                    omitted = self.tags.omitted(Expected(canonical, kind))
                    written.append(self._members(part, hint, omitted, may_be_empty=may_be_empty))
                case _:
                    plain.append(part)
                    if _may_be_nothing(part, kinds):
                        written.append(seq())
        if any(map(holds_json, parts)):  # JSON is some text as well, and read as what it may be
            plain = []
        return choice(*written, *([self.values.json(types.union(plain), hint)] if plain else []))

    def _members(self, kind: types.Object, hint: str, omitted: Sequence[str], *, may_be_empty: bool) -> Expr:
        if kind.some:  # a key that is not declared has no tags
            return NOTHING
        pointer = kind.properties[0].pointer.rsplit("/properties/", 1)[0] if kind.properties else ""
        if kind.rest != types.NEVER or kind.keys:
            self.values.relax(pointer, "additionalProperties", "no keys but the declared ones")
        members = [
            (self._element(item.name, item.value, hint, item.pointer), "?" if item.name in omitted else occurs(item))
            for item in kind.properties
            if item.value != types.NEVER
        ]
        return all_of(
            members, max(kind.min, 0 if may_be_empty else 1), kind.max, lambda expr: self.values.rule(expr, hint)
        )

    def _element(self, name: str, kind: Type, hint: str, pointer: str) -> Expr:
        if not _is_name(name):
            return NOTHING
        value = self._value(kind, f"{hint}-{name}", pointer)
        return seq(as_tokens(self.tags.open(name)), value, as_tokens(self.tags.close(name)))

    def _items(self, kind: types.Array | types.Items, hint: str, pointer: str, *, may_be_empty: bool) -> Expr:
        """The first items each of its own type, then the others; none of them may be left out before the last."""
        if isinstance(kind, types.Items):
            self.values.relax(pointer, "items", "any number of each of the items between tags")
            kind = arrays.loosened(kind)
        least = kind.min if may_be_empty else max(kind.min, 1)
        count = len(kind.prefix)
        if kind.max is not None and kind.max < least:
            return NOTHING
        rest: Expr = NOTHING
        if kind.rest != types.NEVER:
            rest = self._element(self.tags.item, kind.rest, hint, pointer)
        most = None if kind.max is None else max(kind.max - count, 0)
        expr = repeat(rest, max(least - count, 0), most) if rest != NOTHING or least > count else seq()
        for index in reversed(range(count if kind.max is None else min(count, kind.max))):
            expr = seq(self._element(self.tags.item, kind.prefix[index], f"{hint}-{index + 1}", pointer), expr)
            if index >= least:
                expr = optional(expr)
        return expr


# How values are written


@dataclass(frozen=True)
class _Writer:
    """Writes the arguments of one tool as sentences of its grammar."""

    tags: ElementTags
    canonical: Canonical
    spelling: Spelling

    def arguments(self, value: object) -> str | None:
        """The arguments as the model would write them; None where they are not valid, or have no place in elements."""
        if not isinstance(value, Mapping):
            return None
        given = cast("Mapping[str, Any]", value)
        objects = _objects(self.canonical)
        omitted = self.tags.omitted(Expected(self.canonical, self.canonical.root))
        written = (self._members(kind, given, omitted) for kind in objects if self._as_json(kind, given) is not None)
        return next((text for text in written if text is not None), None)

    def _as_json(self, kind: Type, value: Any) -> str | None:
        return spell_as(replace(self.canonical, root=kind), value, self.spelling)

    def _value(self, kind: Type, value: Any) -> str | None:
        if kind == types.ANY:
            return self._plain(value, self._as_json(kind, value), kind)
        for part in options_of(self.canonical, kind):
            text = self._as_json(part, value)
            if text is None:
                continue
            if isinstance(part, types.Object) and part.properties:
                text = self._members(part, value, self.tags.omitted(Expected(self.canonical, kind)))
                return text if text or not self._kinds(kind) & {"string", "array"} else None
            if isinstance(part, types.Array | types.Items):
                return self._items(part, value) if value or "string" not in self._kinds(kind) else None
            return "" if _may_be_nothing(part, self._kinds(kind)) and not value else self._plain(value, text, kind)
        return None

    def _kinds(self, kind: Type) -> frozenset[str]:
        return kinds_of(self.canonical, kind)

    def _plain(self, value: Any, text: str | None, kind: Type) -> str | None:
        """A string as it is, anything else as its JSON; None where it would read otherwise."""
        kinds = self._kinds(kind)
        if text is None or ("string" in kinds and self.tags.lead in text):
            return None
        if not isinstance(value, str):
            return text
        return value if kinds == STRING or as_json(value, Expected(self.canonical, kind), kinds) == text else None

    def _members(self, kind: types.Object, given: Mapping[str, Any], omitted: Sequence[str]) -> str | None:
        if kind.some or not given.keys() <= {item.name for item in kind.properties if _is_name(item.name)}:
            return None
        said = given.keys() - {key for key in omitted if given.get(key) is None}
        present = [item for item in kind.properties if item.name in said]
        return self._joined((item.name, self._value(item.value, given[item.name])) for item in present)

    def _items(self, kind: types.Array | types.Items, given: Sequence[Any]) -> str | None:
        loose = arrays.loosened(kind)
        items = (self._value(types.item_at(loose, index), item) for index, item in enumerate(given))
        return self._joined((self.tags.item, text) for text in items)

    def _joined(self, elements: Iterable[tuple[str, str | None]]) -> str | None:
        pieces: list[str] = []
        for name, text in elements:
            if text is None:
                return None
            pieces.append(self.tags.around(name, text))
        return "".join(pieces)


def _objects(canonical: Canonical) -> list[types.Object]:
    options = unplaced(options_of(canonical, canonical.root))
    return [kind for kind in options if isinstance(kind, types.Object)]


def _may_be_nothing(part: Type, kinds: frozenset[str]) -> bool:
    """Whether an element with nothing in it is an object of this type, whose keys no schema names."""
    return isinstance(part, types.Object) and not part.min and not kinds & {"string", "array"}


def _is_name(key: str) -> bool:
    """Whether a tag can say this key."""
    return ">" not in key and not key.startswith("/")


def _may_recur(kind: Type) -> bool:
    """Whether the type may be inside of itself: it is a reference, or one of its options is."""
    options = kind.options if isinstance(kind, types.Union) else (kind,)
    return any(isinstance(option, types.Reference) for option in options)


def _is_item(parts: Iterable[Type], tags: ElementTags) -> bool:
    """Whether an object among these types has a key that would make a list look like it."""
    return any(
        isinstance(part, types.Object) and any(item.name == tags.item for item in part.properties) for part in parts
    )
