"""Nested elements from a tool's schema: what they look like, and how values are written in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from toolgram.errors import Relaxation
from toolgram.grammar.ir import NOTHING, Expr, Ref, Text, choice, optional, repeat, seq
from toolgram.schema import compile_type, types
from toolgram.schema.types import Canonical, Type, arrays
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.elements import Elements
from toolgram.wire.encodings.expected import kinds_of, options_of
from toolgram.wire.encodings.in_order import in_order
from toolgram.wire.encodings.raw import as_json
from toolgram.wire.marks import as_tokens
from toolgram.wire.raw_language import raw_string

_STRING = frozenset(("string",))


@dataclass
class ElementArguments:
    """The arguments of one tool as elements: `expr` over `rules`, and what could not be enforced in them.

    An object whose keys no schema names is written as JSON, since no grammar ties a tag to the one that closes it.
    """

    tags: Elements
    canonical: Canonical
    spelling: Spelling
    names: RuleNames
    hint: str
    exact: bool = False

    def __post_init__(self) -> None:
        self.rules: dict[str, Expr] = {}
        self.relaxations: list[Relaxation] = []
        self.capped = False
        self._named: dict[str, str] = {}
        objects = [kind for kind in options_of(self.canonical, self.canonical.root) if isinstance(kind, types.Object)]
        self.expr: Expr = choice(*(self._members(kind, self.hint, may_be_empty=True) for kind in objects))

    def _value(self, kind: Type, hint: str, pointer: str) -> Expr:
        """A value between its tags."""
        if isinstance(kind, types.Reference):
            if kind.key not in self._named:
                name = self._named[kind.key] = self.names.fresh(hint)
                self.rules[name] = self._value(self.canonical.resolve(kind), hint, pointer)
            return Ref(self._named[kind.key])
        if kind == types.ANY:
            return Text((self.tags.lead,))
        parts = list(options_of(self.canonical, kind))
        kinds = kinds_of(self.canonical, kind)
        written: list[Expr] = []
        plain: list[Type] = []
        for part in parts:
            match part:
                case types.String() | types.Text():
                    written.append(self._string(part, pointer))
                case types.Array() | types.Items():
                    if not _is_item(parts, self.tags):
                        written.append(self._items(part, hint, pointer, may_be_empty="string" not in kinds))
                case types.Object() if part.properties:
                    may_be_empty = not kinds & {"string", "array"}
                    written.append(self._members(part, hint, may_be_empty=may_be_empty))
                case _:
                    plain.append(part)
        if types.String() in parts:  # JSON is some text as well, and read as what it may be
            plain = []
        return choice(*written, *([self._json(types.union(plain), hint)] if plain else []))

    def _string(self, kind: types.String | types.Text, pointer: str) -> Expr:
        if isinstance(kind, types.Text):
            return NOTHING if self.tags.lead in kind.value else seq(kind.value)
        raw = raw_string(kind, self.tags.lead, self.names, self.rules, exact=self.exact)
        self.relaxations += [Relaxation(pointer, *each) for each in raw.loose]
        return raw.expr

    def _json(self, kind: Type, hint: str) -> Expr:
        compiled = compile_type(
            replace(self.canonical, root=kind), spelling=self.spelling, names=self.names, root_name=hint
        )
        self.rules.update(compiled.rules)
        self.capped |= compiled.capped
        return compiled.expr

    def _members(self, kind: types.Object, hint: str, *, may_be_empty: bool) -> Expr:
        if kind.some:  # a key that is not declared has no tags
            return NOTHING
        pointer = kind.properties[0].pointer.rsplit("/properties/", 1)[0] if kind.properties else ""
        if (kind.rest != types.NEVER or kind.keys) and kind.properties:
            self.relaxations.append(Relaxation(pointer, "additionalProperties", "no keys but the declared ones"))
        members = [
            (self._element(item.name, item.value, hint, item.pointer), item.required)
            for item in kind.properties
            if item.value != types.NEVER
        ]
        return in_order(members, max(kind.min, 0 if may_be_empty else 1), kind.max, lambda expr: self._rule(expr, hint))

    def _rule(self, expr: Expr, hint: str) -> Ref:
        name = self.names.fresh(f"{hint}-rest")
        self.rules[name] = expr
        return Ref(name)

    def _element(self, name: str, kind: Type, hint: str, pointer: str) -> Expr:
        if not _is_name(name):
            return NOTHING
        value = self._value(kind, f"{hint}-{name}", pointer)
        return seq(as_tokens(self.tags.open(name)), value, as_tokens(self.tags.close(name)))

    def _items(self, kind: types.Array | types.Items, hint: str, pointer: str, *, may_be_empty: bool) -> Expr:
        """The first items each of its own type, then the others; none of them may be left out before the last."""
        if isinstance(kind, types.Items):
            self.relaxations.append(Relaxation(pointer, "items", "any number of each of the items between tags"))
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

    # Writing

    def spell(self, value: object) -> str | None:
        """The arguments as the model would write them; None where they are not valid, or have no place in elements."""
        if not isinstance(value, Mapping):
            return None
        given = cast("Mapping[str, Any]", value)
        objects = [kind for kind in options_of(self.canonical, self.canonical.root) if isinstance(kind, types.Object)]
        written = (self._spell_members(kind, given) for kind in objects if self._fits(kind, given))
        return next((text for text in written if text is not None), None)

    def _fits(self, kind: Type, value: Any) -> bool:
        return spell_as(replace(self.canonical, root=kind), value, self.spelling) is not None

    def _spell(self, kind: Type, value: Any) -> str | None:
        if kind == types.ANY:
            return self._spell_plain(value, spell_as(replace(self.canonical, root=kind), value, self.spelling), kind)
        for part in options_of(self.canonical, kind):
            text = spell_as(replace(self.canonical, root=part), value, self.spelling)
            if text is None:
                continue
            if isinstance(part, types.Object) and part.properties:
                return self._spell_members(part, value) if value or "string" not in self._kinds(kind) else None
            if isinstance(part, types.Array | types.Items):
                return self._spell_items(part, value) if value or "string" not in self._kinds(kind) else None
            return self._spell_plain(value, text, kind)
        return None

    def _kinds(self, kind: Type) -> frozenset[str]:
        return kinds_of(self.canonical, kind)

    def _spell_plain(self, value: Any, text: str | None, kind: Type) -> str | None:
        """A string as it is, anything else as its JSON; None where it would read otherwise."""
        if text is None or not isinstance(value, str):
            return text
        kinds = self._kinds(kind)
        if self.tags.lead in value or (kinds != _STRING and as_json(value, kinds) != text):
            return None
        return value

    def _spell_members(self, kind: types.Object, given: Mapping[str, Any]) -> str | None:
        if kind.some or not given.keys() <= {item.name for item in kind.properties if _is_name(item.name)}:
            return None
        present = [item for item in kind.properties if item.name in given]
        return self._joined((item.name, self._spell(item.value, given[item.name])) for item in present)

    def _spell_items(self, kind: types.Array | types.Items, given: Sequence[Any]) -> str | None:
        loose = arrays.loosened(kind)
        items = (self._spell(types.item_at(loose, index), item) for index, item in enumerate(given))
        return self._joined((self.tags.item, text) for text in items)

    def _joined(self, elements: Iterable[tuple[str, str | None]]) -> str | None:
        pieces: list[str] = []
        for name, text in elements:
            if text is None:
                return None
            pieces.append(self.tags.open(name) + text + self.tags.close(name))
        return "".join(pieces)


def written_elements(tags: Elements, value: Any, spelling: Spelling) -> str:
    """A value of the history as elements, whatever its schema."""
    match value:
        case Mapping():
            members = cast("Mapping[str, Any]", value).items()
            return "".join(
                tags.open(key) + written_elements(tags, each, spelling) + tags.close(key) for key, each in members
            )
        case list():
            items = cast("list[Any]", value)
            return "".join(
                tags.open(tags.item) + written_elements(tags, each, spelling) + tags.close(tags.item) for each in items
            )
        case str():
            return value
        case _:
            return spell(value, spelling)


def _is_name(key: str) -> bool:
    """Whether a tag can say this key."""
    return ">" not in key and not key.startswith("/")


def _is_item(parts: Iterable[Type], tags: Elements) -> bool:
    """Whether an object among these types has a key that would make a list look like it."""
    return any(
        isinstance(part, types.Object) and any(item.name == tags.item for item in part.properties) for part in parts
    )
