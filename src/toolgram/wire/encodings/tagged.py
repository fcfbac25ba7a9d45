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
from functools import cached_property
from typing import Any, cast

from toolgram.grammar.ir import NOTHING, Expr, Text, choice, seq
from toolgram.schema import types
from toolgram.schema.types import Canonical
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.notation import Encoding as Notation
from toolgram.schema.writing.values import spell, spell_as
from toolgram.wire.encodings.base import AnyEncoding, ArgumentsReader, ToolArguments
from toolgram.wire.encodings.expected import STRING, Expected, kinds_of, options_of
from toolgram.wire.encodings.in_order import in_order
from toolgram.wire.encodings.json import Sink, Status, escape, skip_space
from toolgram.wire.encodings.notation import JSON
from toolgram.wire.encodings.printed import PRINTED
from toolgram.wire.encodings.raw import BetweenTags, ValueReader, as_json, json_type, value_reader
from toolgram.wire.marks import Marks, as_tokens

MAX_KEY = 512
KEY = "{key}"  # in what closes a value
_LETTER = re.compile(r"\w")
_OF_A_TAG = r"[^\s<>()\[\]{}|｜/=\"']"  # what a key is made of where it is a tag itself


@dataclass(frozen=True)
class Tagged(AnyEncoding):
    """The tags: `open` key `after_key` value `close`, for each parameter.

    `after_key` may differ by the JSON type of the value: {"string": …, "number": …}; the entry "" is for the others.
    `close` ends raw text: its part without white space must not stand in a string. Where it has the key in it, as
    "{key}", keys are tags themselves, which have but words in them. `fence` is what a model may put around a string
    that has tags in it: ("<![CDATA[", "]]>"). With `python_words` the family's templates print true, false and null as
    Python does, so that its models write them so, or as JSON has them. `escapes` are characters of keys with what
    stands for them, that of the escapes themselves first: ("&", "&amp;"). With `quoted` strings are JSON as well.
    """

    name: str
    open: str
    after_key: tuple[tuple[str, str], ...]
    close: str
    fence: tuple[str, str] = ("", "")
    python_words: bool = False
    escapes: tuple[tuple[str, str], ...] = ()
    quoted: bool = False

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
        return self.open

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

    def response_template(self, pattern: Callable[[str], str]) -> dict[str, Any] | None:
        """The pattern of one parameter; none says that strings are JSON too."""
        if self.quoted:
            return None
        ways = "|".join(pattern(text) for _, text in self.after_key)
        closer = "(?P=key)".join(map(pattern, self.close.strip().split(KEY)))
        tag = rf"{pattern(self.open)}(?P<key>.+?)(?:{ways})(?P<value>.*?)\s*{closer}"
        return {"content": "xml-inline", "content_args": {"tag_pattern": tag}}

    def after(self, kind: str) -> str:
        """What stands between a key and a value of this JSON type."""
        known = dict(self.after_key)
        return known.get(kind, known.get("", ""))

    def after_value(self, key: str) -> str:
        """What stands after the value of a key."""
        return self.close.replace(KEY, self.shown(key))

    def closer(self, key: str) -> str:
        """The mark that ends a raw value."""
        return self.after_value(key).strip()

    @property
    def keys_are_tags(self) -> bool:
        """Whether keys are tags themselves."""
        return KEY in self.close

    @cached_property
    def told(self) -> frozenset[str]:
        """The JSON types of values that the tags tell."""
        return frozenset(kind for kind, _ in self.after_key if kind)

    @cached_property
    def key_end(self) -> re.Pattern[str]:
        """A key up to the value, and which of the ways to end it was taken; white space is lenient."""
        ways = "|".join(f"(?P<way{n}>{_lenient(text)})" for n, (_, text) in enumerate(self.after_key))
        key = rf"(?P<key>{self.word.pattern})\s*" if self.keys_are_tags else rf"(?P<key>[\s\S]{{0,{MAX_KEY}}}?)"
        return re.compile(f"{key}(?:{ways})")

    @cached_property
    def word(self) -> re.Pattern[str]:
        """A key that is a tag itself, which does not begin as the tag that closes it."""
        closing = self.close.strip().partition(KEY)[0]
        closes = closing.removeprefix(self.open) if closing.startswith(self.open) else ""
        return re.compile((f"(?!{re.escape(closes)})" if closes else "") + rf"{_OF_A_TAG}{{1,{MAX_KEY}}}")

    def begins(self, buffer: str, at: int) -> bool | None:
        """Whether a parameter begins here; None where more text must tell.

        Where keys are tags themselves, what follows the parameters may begin as they do, and goes on otherwise.
        """
        if not buffer.startswith(self.open, at):
            return None if self.open.startswith(buffer[at:]) else False
        key = at + len(self.open)
        if not self.keys_are_tags or self.key_end.match(buffer, key):
            return True
        begun = buffer[key : self.key_marks.held_back(buffer, key)].rstrip()
        return None if not begun or self.word.fullmatch(begun) else False

    def can_say(self, key: str) -> bool:
        """Whether a key is read as it is written, whatever comes after it."""
        shown = self.shown(key)
        texts = [shown + text for _, text in self.after_key]
        found = [self.key_end.match(text) for text in texts]
        return key == key.strip() and all(
            match is not None and match["key"].strip() == shown and match.end() == len(text)
            for match, text in zip(found, texts, strict=True)
        )

    def shown(self, key: str) -> str:
        """A key as it stands in its tag."""
        for char, escaped in self.escapes:
            key = key.replace(char, escaped)
        return key

    def meant(self, shown: str) -> str:
        """The key that stands in a tag."""
        for char, escaped in reversed(self.escapes):
            shown = shown.replace(escaped, char)
        return shown

    @cached_property
    def key_marks(self) -> Marks:
        """What ends a key, to find the half of it."""
        return Marks.of(tuple(text for _, text in self.after_key))


def _lenient(text: str) -> str:
    return r"\s*".join(map(re.escape, text.split())) + (r"\n?" if text.endswith("\n") else "")


class TaggedReader:
    """Reads the parameters of one call and hands their JSON text on in pieces; ends where no parameter begins."""

    __slots__ = ("_count", "_expected", "_sink", "_tags", "_value")

    def __init__(self, tags: Tagged, expected: Expected, sink: Sink) -> None:
        self._tags = tags
        self._expected = expected
        self._sink = sink
        self._value: ValueReader | None = None
        self._count = 0

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read; FAILED where a key has no end."""
        i = start
        while True:
            if self._value is not None:
                i, status = self._value.consume(buffer, i)
                if status is not Status.DONE:
                    return i, status
                self._value = None
                continue
            i, status = self._begin(buffer, i)
            if self._value is None:
                return i, status

    def cut(self, rest: str) -> None:
        """The text is over: hand on the part that is there of a key or value."""
        if self._value is not None:
            self._value.cut()
            return
        held = rest.lstrip()
        if held.startswith(self._tags.open) and self._tags.begins(held, 0) is not False:
            key = held[len(self._tags.open) :]
            key = key[: self._tags.key_marks.held_back(key, 0)].rstrip()
            if key:
                self._sink(f'{", " if self._count else "{"}"{escape(self._tags.meant(key))}')

    def _begin(self, buffer: str, i: int) -> tuple[int, Status]:
        """Enter the next parameter, or end."""
        at = skip_space(buffer, i)
        begins = self._tags.begins(buffer, at)
        if not begins:
            if begins is None:
                return i, Status.MORE
            self._sink("}" if self._count else "{}")
            return i, Status.DONE
        match = self._tags.key_end.match(buffer, at + len(self._tags.open))
        # A way to end the key is whole only when what follows shows that its white space is.
        if match is None or match.end() == len(buffer):
            too_long = match is None and len(buffer) - at > 2 * MAX_KEY
            return i, Status.FAILED if too_long else Status.MORE
        key = self._tags.meant(match["key"].strip())
        way = next(n for n in range(len(self._tags.after_key)) if match[f"way{n}"] is not None)
        self._sink(f'{", " if self._count else "{"}"{escape(key)}": ')
        self._count += 1
        # The tags may tell the type of a value, or what it is not, else the schema does.
        told = self._tags.after_key[way][0]
        expected = self._expected.member(key)
        kinds = frozenset((told,)) if told else expected.kinds - self._tags.told or expected.kinds
        close, quoted = self._tags.after_value(key), self._tags.quoted
        self._value = value_reader(close, expected, kinds, self._sink, self._tags.fence, quoted=quoted)
        return match.end(), Status.MORE


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
        ordered = [(member, item.required) for item, member in members]
        return in_order(ordered, kind.min, kind.max, lambda expr: self.values.rule(expr, self.hint))

    def _member(self, item: types.Property) -> Expr:
        """One parameter: raw where it is a string, JSON where it is not; none that would be read by another name."""
        if not self.tags.can_say(item.name):
            return NOTHING
        kinds = kinds_of(self.canonical, item.value)
        options: list[Expr] = []
        for told in dict.fromkeys(self.tags.after(kind) for kind in sorted(kinds)):
            alike = frozenset(kind for kind in kinds if self.tags.after(kind) == told)
            value = self._value(item, alike)
            opener = seq(as_tokens(self.tags.open), self.tags.shown(item.name), as_tokens(told))
            options.append(seq(opener, value, as_tokens(self.tags.after_value(item.name))))
        return choice(*options)

    def _value(self, item: types.Property, kinds: frozenset[str]) -> Expr:
        kind, hint, mark = self.canonical.resolve(item.value), f"{self.hint}-{item.name}", self.tags.closer(item.name)
        if kind == types.ANY:
            raw = "string" in kinds and not self.tags.quoted
            return Text((mark,)) if raw else self.values.json(kind, hint)
        parts = [part for part in options_of(self.canonical, kind) if kinds_of(self.canonical, part) <= kinds]
        if self.tags.quoted:
            return self.values.json(types.union(parts), hint)
        if types.String() in parts:  # JSON is some text as well, and read as what it may be
            return Text((mark,))
        strings = [
            self.values.string(part, item.pointer, mark)
            for part in parts
            if isinstance(part, types.String | types.Text)
        ]
        others = [part for part in parts if not isinstance(part, types.String | types.Text)]
        printed = [PRINTED[part.text] for part in others if self.tags.python_words and isinstance(part, types.Word)]
        return choice(*strings, *([self.values.json(types.union(others), hint)] if others else []), *printed)

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
    opened, closed = tags.open + tags.shown(key) + told, tags.after_value(key)
    if tags.quoted:
        return opened + spelled + closed
    kinds = expected.kinds if expected else frozenset((kind,))
    alike = frozenset(each for each in kinds if tags.after(each) == told)
    is_text = kind == "string" or ("string" in alike and expected is not None and expected.text_may_begin_as_json)
    if is_text and tags.closer(key) in (value if kind == "string" else spelled):
        return None
    if kind != "string":
        return opened + spelled + closed
    fenced = bool(tags.fence[0]) and value.startswith(tags.fence[0])
    if fenced or (expected and alike != STRING and as_json(value, expected, alike) != spelled):
        return None
    return opened + value + closed


def _objects(canonical: Canonical) -> Iterable[types.Object]:
    return [kind for kind in options_of(canonical, canonical.root) if isinstance(kind, types.Object)]
