"""Tagged parameters from a tool's schema: what they look like, how values are written, which are strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from toolgram.errors import Relaxation
from toolgram.grammar.ir import NOTHING, Expr, Ref, Text, choice, seq
from toolgram.schema import compile_type, types
from toolgram.schema.types import Canonical, Type
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.values import spell_as
from toolgram.wire.encodings.expected import kinds_of, options_of
from toolgram.wire.encodings.in_order import in_order
from toolgram.wire.encodings.raw import as_json, json_type
from toolgram.wire.encodings.tagged import Tagged
from toolgram.wire.marks import as_tokens
from toolgram.wire.raw_language import raw_string

_STRING = frozenset(("string",))


@dataclass
class TaggedArguments:
    """The parameters of one tool between tags: `expr` over `rules`, and what could not be enforced between them."""

    tags: Tagged
    canonical: Canonical
    spelling: Spelling
    names: RuleNames
    hint: str
    exact: bool = False

    def __post_init__(self) -> None:
        self.rules: dict[str, Expr] = {}
        self.relaxations: list[Relaxation] = []
        self.capped = False
        self.expr: Expr = choice(*(self._object(each) for each in _objects(self.canonical)))

    def _object(self, kind: types.Object) -> Expr:
        if kind.some:  # a parameter that is not declared has no tags
            return NOTHING
        members = [(item, self._member(item)) for item in kind.properties if item.value != types.NEVER]
        if (kind.rest != types.NEVER or kind.keys) and kind.properties:
            pointer = kind.properties[0].pointer.rsplit("/properties/", 1)[0]
            self.relaxations.append(Relaxation(pointer, "additionalProperties", "no parameters but the declared ones"))
        return in_order([(member, item.required) for item, member in members], kind.min, kind.max, self._rule)

    def _rule(self, expr: Expr) -> Expr:
        name = self.names.fresh(f"{self.hint}-rest")
        self.rules[name] = expr
        return Ref(name)

    def _member(self, item: types.Property) -> Expr:
        """One parameter: raw where it is a string, JSON where it is not."""
        kinds = kinds_of(self.canonical, item.value)
        options: list[Expr] = []
        for told in dict.fromkeys(self.tags.after(kind) for kind in sorted(kinds)):
            alike = frozenset(kind for kind in kinds if self.tags.after(kind) == told)
            value = self._value(item, alike)
            opener = seq(as_tokens(self.tags.open), item.name, as_tokens(told))
            options.append(seq(opener, value, as_tokens(self.tags.close)))
        return choice(*options)

    def _value(self, item: types.Property, kinds: frozenset[str]) -> Expr:
        kind = self.canonical.resolve(item.value)
        if kind == types.ANY:
            return Text((self.tags.closer,)) if "string" in kinds else self._json(item, kind)
        parts = [part for part in options_of(self.canonical, kind) if kinds_of(self.canonical, part) <= kinds]
        if types.String() in parts:  # JSON is some text as well, and read as what it may be
            return Text((self.tags.closer,))
        strings = [self._string(item, part) for part in parts if isinstance(part, types.String | types.Text)]
        others = [part for part in parts if not isinstance(part, types.String | types.Text)]
        return choice(*strings, *([self._json(item, types.union(others))] if others else []))

    def _string(self, item: types.Property, kind: types.String | types.Text) -> Expr:
        if isinstance(kind, types.Text):
            return NOTHING if self.tags.closer in kind.value else seq(kind.value)
        raw = raw_string(kind, self.tags.closer, self.names, self.rules, exact=self.exact)
        self.relaxations += [Relaxation(item.pointer, *each) for each in raw.loose]
        return raw.expr

    def _json(self, item: types.Property, kind: Type) -> Expr:
        compiled = compile_type(
            replace(self.canonical, root=kind),
            spelling=self.spelling,
            names=self.names,
            root_name=f"{self.hint}-{item.name}",
        )
        self.rules.update(compiled.rules)
        self.capped |= compiled.capped
        return compiled.expr

    def spell(self, value: object) -> str | None:
        """The arguments as the model would write them; None where they are not valid, or have no place between tags."""
        if not isinstance(value, Mapping):
            return None
        given = cast("Mapping[str, Any]", value)
        written = (self._spell_object(kind, given) for kind in _objects(self.canonical))
        return next((text for text in written if text is not None), None)

    def _spell_object(self, kind: types.Object, given: Mapping[str, Any]) -> str | None:
        if kind.some or not given.keys() <= {item.name for item in kind.properties}:
            return None
        if not kind.min <= len(given) <= (len(given) if kind.max is None else kind.max):
            return None
        pieces: list[str] = []
        for item in kind.properties:
            if item.name in given:
                text = self._spell_value(item, given[item.name])
                if text is None:
                    return None
                pieces.append(text)
            elif item.required:
                return None
        return "".join(pieces)

    def _spell_value(self, item: types.Property, value: Any) -> str | None:
        canonical = replace(self.canonical, root=item.value)
        spelled = spell_as(canonical, value, self.spelling)
        if spelled is None:
            return None
        return written(self.tags, item.name, value, spelled, kinds_of(self.canonical, item.value))


def written(tags: Tagged, key: str, value: Any, spelled: str, kinds: frozenset[str] = _STRING) -> str | None:
    """One parameter as text: strings raw, others as they are spelled in JSON; None where it would read otherwise.

    `kinds` are the JSON types that the parameter may have, for which a string may be taken.
    """
    if isinstance(value, str):
        told = tags.after("string")
        alike = frozenset(kind for kind in kinds if tags.after(kind) == told)
        fenced = bool(tags.fence[0]) and value.startswith(tags.fence[0])
        if tags.closer in value or fenced or (alike != _STRING and as_json(value, alike) != spelled):
            return None
        return tags.open + key + told + value + tags.close
    kind = json_type(spelled)
    return tags.open + key + tags.after(kind or "") + spelled + tags.close


def _objects(canonical: Canonical) -> Iterable[types.Object]:
    return [kind for kind in options_of(canonical, canonical.root) if isinstance(kind, types.Object)]
