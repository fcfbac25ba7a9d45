"""Tagged parameters: each argument between tags of its own, strings raw, everything else as JSON.

A call of Qwen3-Coder (its chat template)::

    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    <parameter=days>
    3
    </parameter>
    </function>

Which values are raw is a matter of the tool's schema, so that the reader has to know it. What closes a value may have
the key in it, where keys are tags themselves: <city>Paris</city>.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from toolgram.grammar.ir import NOTHING, Expr, choice, seq
from toolgram.schema import types
from toolgram.schema.types import Canonical
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.schema.writing.object_members import occurs, unplaced
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.base import AnyEncoding, ArgumentsReader, ToolArguments
from toolgram.wire.encodings.expected import STRING, Expected, kinds_of, options_of
from toolgram.wire.encodings.json import Sink
from toolgram.wire.encodings.members import all_of
from toolgram.wire.encodings.notation import JSON
from toolgram.wire.encodings.parameter_tags import KEY, ParameterTags, TaggedReader
from toolgram.wire.encodings.printed import PRINTED
from toolgram.wire.encodings.raw import BetweenTags, as_json, json_type
from toolgram.wire.marks import as_tokens

_LETTER = re.compile(r"\w")


@dataclass(frozen=True)
class Tagged(ParameterTags, AnyEncoding):
    """Parameters, each of them between these tags."""

    @property
    def notation(self) -> Notation:
        """JSON, where values are no strings."""
        return JSON

    @property
    def may_be_empty(self) -> bool:
        """Whether no arguments are no text at all."""
        return True

    @property
    def opener(self) -> str:
        """The tag of the first parameter."""
        return self.tag

    @property
    def tags(self) -> tuple[str, ...]:
        """What stands around keys and values, white space aside."""
        texts = (self.open, *(text for _, text in self.after_key), *self.close.split(KEY))
        pieces = tuple(piece for text in texts for piece in text.split())
        return tuple(filter(_LETTER.search, pieces)) if self.keys_are_tags else pieces

    def reader(self, expected: Expected, sink: Sink) -> ArgumentsReader:
        """Reads parameter by parameter."""
        return TaggedReader(self, expected, sink)

    def arguments(
        self, canonical: Canonical, spelling: Spelling, names: RuleNames, hint: str, *, exact: bool
    ) -> ToolArguments:
        """The declared parameters in their order; what no schema declares has no tags."""
        values = BetweenTags(canonical, spelling, names, exact)
        made = _Parameters(self, values, hint)
        return values.arguments(made.expr(), made.spell)

    def write(self, value: Any, spelling: Spelling) -> str:
        """Each parameter in its tags; one that cannot stand there is left out."""
        if not isinstance(value, Mapping):
            raise ValueError("only an object has parameters")
        members = cast("Mapping[str, Any]", value).items()
        return "".join(_written(self, key, each, spell(each, spelling)) or "" for key, each in members)

    def respelled(self, change: Callable[[str], str]) -> Tagged:
        """The same with its tags so changed."""
        after_key = tuple((kind, change(text)) for kind, text in self.after_key)
        return replace(self, open=change(self.open), after_key=after_key, close=change(self.close))

    def is_shown_in(self, text: str) -> bool:
        """Whether a text has a value in these tags, white space included."""
        ways = "|".join(re.escape(way) for _, way in self.after_key)
        closer = r"[^\s<>]+".join(map(re.escape, self.close.rstrip().split(KEY)))
        return re.search(rf"{re.escape(self.open)}[^\s<>]+(?:{ways})\S.*?(?<=\S){closer}", text) is not None

    def or_spaced(self, other: AnyEncoding) -> Tagged:
        """The encoding whose grammar takes the tags of the other as well."""
        return replace(self, other=other) if isinstance(other, Tagged) else self

    def response_template(self, pattern: Callable[[str], str]) -> dict[str, Any] | None:
        """The pattern of one parameter; none says that strings are JSON too, or that entities stand in them."""
        if self.quoted or self.entities is not None:
            return None
        ways = "|".join(pattern(text) for _, text in self.after_key)
        closer = "(?P=key)".join(map(pattern, self.close.strip().split(KEY)))
        tag = rf"{pattern(self.open)}(?P<key>.+?)(?:{ways})(?P<value>.*?)\s*{closer}"
        return {"content": "xml-inline", "content_args": {"tag_pattern": tag}}


# The grammar of a tool's parameters, and how they are written


@dataclass(frozen=True)
class _Parameters:
    """The parameters of one tool between tags; `values` makes their values, and keeps the rules."""

    tags: Tagged
    values: BetweenTags
    hint: str

    @property
    def canonical(self) -> Canonical:
        """The type of the arguments."""
        return self.values.canonical

    def expr(self) -> Expr:
        """All of them."""
        return choice(*(self._object(each) for each in _objects(self.canonical)))

    def _object(self, kind: types.Object) -> Expr:
        if kind.some:  # a parameter that is not declared has no tags
            return NOTHING
        members = [(item, self._member(item)) for item in kind.properties if item.value != types.NEVER]
        if kind.rest != types.NEVER or kind.keys:
            pointer = kind.properties[0].pointer.rsplit("/properties/", 1)[0] if kind.properties else ""
            self.values.relax(pointer, "additionalProperties", "no parameters but the declared ones")
        ordered = [(member, occurs(item)) for item, member in members]
        return all_of(ordered, kind.min, kind.max, lambda expr: self.values.rule(expr, self.hint))

    def _member(self, item: types.Property) -> Expr:
        """One parameter: raw where it is a string, JSON where it is not; none that would be read by another name."""
        if not self.tags.can_say(item.name):
            return NOTHING
        kinds = kinds_of(self.canonical, item.value)
        options: list[Expr] = []
        for told in dict.fromkeys(self.tags.after(kind) for kind in sorted(kinds)):
            alike = frozenset(kind for kind in kinds if self.tags.after(kind) == told)
            value, one = self._value(item, alike), min(alike)
            opener = seq(self._tag(lambda tags: tags.open), self.tags.shown(item.name))
            whole = seq(opener, self._tag(lambda tags, one=one: tags.after(one)), value)
            options.append(seq(whole, self._tag(lambda tags: tags.after_value(item.name))))
        return choice(*options)

    def _tag(self, text: Callable[[ParameterTags], str]) -> Expr:
        """A text of the tags, in either white space."""
        return choice(*(as_tokens(text(tags)) for tags in (self.tags, self.tags.other) if tags is not None))

    def _value(self, item: types.Property, kinds: frozenset[str]) -> Expr:
        kind, hint, ends = self.canonical.resolve(item.value), f"{self.hint}-{item.name}", self.tags.ends(item.name)
        entities = self.tags.entities
        if kind == types.ANY:
            raw = "string" in kinds and not self.tags.quoted
            return self._any(kind, ends, hint) if raw else self.values.json(kind, hint, entities)
        parts = [part for part in options_of(self.canonical, kind) if kinds_of(self.canonical, part) <= kinds]
        if self.tags.quoted:
            return self.values.json(types.union(parts), hint, entities)
        if types.String() in parts:  # JSON is some text as well, and read as what it may be
            return self._any(types.union(part for part in parts if part != types.String()), ends, hint)
        strings = [
            self.values.string(part, item.pointer, ends, entities)
            for part in parts
            if isinstance(part, types.String | types.Text)
        ]
        others = [part for part in parts if not isinstance(part, types.String | types.Text)]
        printed = [PRINTED[part.text] for part in others if self.tags.python_words and isinstance(part, types.Word)]
        return choice(*strings, *([self.values.json(types.union(others), hint, entities)] if others else []), *printed)

    def _any(self, kind: types.Type, ends: tuple[str, ...], hint: str) -> Expr:
        """Any text up to what ends it, and what is JSON of this type, where it is none as it has no entities."""
        entities = self.tags.entities
        text = self.values.any(ends, entities)
        apart = entities is not None and not entities.in_json and kind != types.NEVER
        return choice(text, self.values.json(kind, hint)) if apart else text

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
        spelled = spell_as(canonical, value, self.values.spelling)
        if spelled is None or not self.tags.can_say(item.name):
            return None
        return _written(self.tags, item.name, value, spelled, Expected(self.canonical, item.value))


def _written(tags: Tagged, key: str, value: Any, spelled: str, expected: Expected | None = None) -> str | None:
    """One parameter as text: strings raw, others as they are spelled in JSON; None where it would read otherwise.

    `expected` is what the parameter may be, for which a string may be taken; none where the value shows what it is.
    """
    kind = "string" if isinstance(value, str) else json_type(json.loads(spelled))
    told = tags.after(kind)
    as_text = kind == "string" and not tags.quoted
    inside = tags.inside(value if as_text else spelled, is_json=not as_text)
    whole = tags.open + tags.shown(key) + told + inside + tags.after_value(key)
    if tags.quoted:
        return whole
    kinds = expected.kinds if expected else frozenset((kind,))
    alike = frozenset(each for each in kinds if tags.after(each) == told)
    is_text = kind == "string" or ("string" in alike and expected is not None and expected.text_may_begin_as_json)
    if is_text and any(end in inside for end in tags.ends(key)):
        return None
    if kind != "string":
        return whole if not is_text or tags.read(inside) == spelled else None
    fenced = bool(tags.fence[0]) and value.startswith(tags.fence[0])
    if fenced or (expected and alike != STRING and as_json(value, expected, alike) != spelled):
        return None
    return whole


def _objects(canonical: Canonical) -> Iterable[types.Object]:
    options = unplaced(options_of(canonical, canonical.root))
    return [kind for kind in options if isinstance(kind, types.Object)]
