"""Values between tags: strings as they are, everything else as JSON, up to the mark that closes them.

What every encoding by tags is made of: the readers of single values, and their expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

from toolgram.errors import Relaxation
from toolgram.grammar.ir import NOTHING, Expr, Ref, Text, seq
from toolgram.grammar.raw_text import RawText, may_contain, raw_text
from toolgram.grammar.regular.automata import TooLarge, difference
from toolgram.grammar.regular.regex import pattern
from toolgram.grammar.walk import renamed, size
from toolgram.schema import compile_type, types
from toolgram.schema.types import Canonical, Type
from toolgram.schema.writing.json_style import RuleNames, Spelling
from toolgram.schema.writing.plain_strings import plain_string
from toolgram.wire.encodings.base import Spell, ToolArguments
from toolgram.wire.encodings.entities import Entities
from toolgram.wire.encodings.expected import CONTAINERS, STRING, Expected
from toolgram.wire.encodings.json import RawValue, Sink, Status, escape, skip_space
from toolgram.wire.encodings.manner import PLAIN, Manner
from toolgram.wire.encodings.printed import WORDS, PrintedValue, as_json_text
from toolgram.wire.marks import Marks

JsonType = Literal["string", "number", "boolean", "null", "object", "array"]
_LARGEST_INLINE = 4  # what is larger is one rule for the whole grammar
_TOO_MANY = re.compile(r"[\s}\]]*")
_LIKE_JSON = r"^([\[{\"]|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$|(true|false|null)$)"
_NUMBER_BEGINS = re.compile(r"-?[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]*)?")


class ValueReader(Protocol):
    """Reads one value and the mark that closes it."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        """Take as much as can be read."""
        ...

    def cut(self) -> None:
        """The text is over: hand on what was taken of the value."""
        ...


def value_reader(
    close: str, expected: Expected, kinds: frozenset[str], sink: Sink, manner: Manner = PLAIN
) -> ValueReader:
    """What reads a value that is `expected`, of these JSON types. `close` ends it: its mark, and white space that
    belongs to neither.

    A string that should be quoted and is not is taken as it is.
    """
    fence, entities = manner.fence, manner.entities
    if entities is not None and entities.in_json and (manner.quoted or kinds != STRING):
        return Collected(close, expected, kinds, sink, manner)
    if manner.quoted and "string" in kinds:
        raw = value_reader(close, expected, kinds, sink, replace(manner, quoted=False))
        return ByBeginning(partial(_by_beginning, '"', NestedJson(close, sink, manner), raw))
    if kinds <= CONTAINERS:
        return NestedJson(close, sink, manner)
    if kinds == STRING:
        reader = RawString(close, sink, manner)
        fenced = RawString(fence[1] + close, sink)
    else:
        reader = Collected(close, expected, kinds, sink, manner)
        fenced = Collected(fence[1] + close, expected, kinds & STRING, sink)
    if kinds & CONTAINERS and not (kinds & STRING and expected.text_may_begin_as_json):
        # In the strings of its JSON the mark may stand.
        return ByBeginning(partial(_by_beginning, "[{", NestedJson(close, sink, manner), reader))
    return ByBeginning(partial(_by_fence, fence[0], fenced, reader)) if fence[0] else reader


def _by_beginning(
    chars: str, opened: ValueReader, other: ValueReader, buffer: str, start: int
) -> tuple[int, ValueReader] | None:
    begin = skip_space(buffer, start)
    return None if begin == len(buffer) else (start, opened if buffer[begin] in chars else other)


def _by_fence(
    fence: str, fenced: ValueReader, other: ValueReader, buffer: str, start: int
) -> tuple[int, ValueReader] | None:
    if buffer.startswith(fence, start):
        return start + len(fence), fenced
    return None if fence.startswith(buffer[start:]) else (start, other)


class ByBeginning:
    """A value that what it begins with tells: `tell` gives what reads it, and from where on, once it can be told."""

    __slots__ = ("_reader", "_tell")

    def __init__(self, tell: Callable[[str, int], tuple[int, ValueReader] | None]) -> None:
        self._tell = tell
        self._reader: ValueReader | None = None

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        if self._reader is None:
            if (told := self._tell(buffer, start)) is None:
                return start, Status.MORE
            start, self._reader = told
        return self._reader.consume(buffer, start)

    def cut(self) -> None:
        """Hand on what was taken; where nothing was told yet, nothing was."""
        if self._reader is not None:
            self._reader.cut()


class RawString:
    """A string as it is, up to the mark that closes it; handed on as it comes."""

    __slots__ = ("_before", "_begun", "_closer", "_endings", "_entities", "_followed_by", "_held", "_marks", "_sink")

    def __init__(self, close: str, sink: Sink, manner: Manner = PLAIN) -> None:
        self._closer = close.strip()
        self._before = close[: close.index(self._closer)]
        self._endings = Marks.of(manner.endings)
        self._marks = Marks.of((self._closer,), (self._before + self._closer, *manner.endings))
        self._sink = sink
        self._begun = False
        self._entities = manner.entities
        self._followed_by = manner.followed_by
        self._held = ""  # what may be the beginning of an entity

    def _begin(self) -> None:
        self._sink('"')

    def _more(self, text: str) -> None:
        if self._entities is not None:
            text = self._held + text
            end = self._entities.whole(text)
            text, self._held = self._entities.read(text[:end]), text[end:]
        self._sink(escape(text))

    def _end(self) -> None:
        self._sink(escape(self._held) + '"')

    def cut(self) -> None:
        """All was handed on as it came."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        if not self._begun:
            self._begun = True
            self._begin()
        left_open = self._endings.find.search(buffer, start) if self._endings.find else None
        most = left_open.start() if left_open else len(buffer)
        end = buffer.find(self._closer, start, most)
        while end >= 0 and self._followed_by:
            after = skip_space(buffer, end + len(self._closer))
            if after == len(buffer):  # it may be text of the value
                keep = end - len(self._before) if buffer.endswith(self._before, start, end) else end
                self._more(buffer[start:keep])
                return keep, Status.MORE
            if buffer.startswith(self._followed_by, after):
                break
            end = buffer.find(self._closer, after, most)
        if end < 0 and left_open:
            self._more(buffer[start:most])
            self._end()
            return most, Status.DONE
        if end < 0:
            keep = self._marks.held_back(buffer, start)
            self._more(buffer[start:keep])
            return keep, Status.MORE
        self._more(buffer[start:end].removesuffix(self._before))
        self._end()
        return end + len(self._closer), Status.DONE


class Collected(RawString):
    """A value that only its whole tells: JSON of one of its types if it can be, else a string."""

    __slots__ = ("_expected", "_kinds", "_pieces", "_starts")

    def __init__(
        self, close: str, expected: Expected, kinds: frozenset[str], sink: Sink, manner: Manner = PLAIN
    ) -> None:
        self._expected = expected
        self._kinds = kinds
        self._pieces: list[str] = []
        self._starts = '{["' if manner.quoted else "{["  # of what is JSON for sure
        super().__init__(close, sink, manner)

    def _begin(self) -> None:
        pass

    def _more(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self) -> None:
        text = "".join(self._pieces)
        text = text if self._entities is None else self._entities.read(text)
        self._sink(as_json(text, self._expected, self._kinds))

    def cut(self) -> None:
        """Hand on the beginning of a value, unless what it is would only have shown later: a number or a string."""
        text = "".join(self._pieces).strip()
        if self._entities is not None:
            text = self._entities.read(text[: self._entities.whole(text)])
        if text.startswith(tuple(self._starts)) or (begins_number(text) and "string" not in self._kinds):
            self._sink(text)
        elif text and not begins_number(text) and not any(word.startswith(text) for word in WORDS):
            self._sink(f'"{escape(text)}')


class NestedJson:
    """An object, an array or a string in JSON, passed on as it comes; brackets too many after it are dropped."""

    __slots__ = ("_closer", "_done", "_endings", "_marks", "_sink", "_value")

    def __init__(self, close: str, sink: Sink, manner: Manner = PLAIN) -> None:
        self._closer = close.strip()
        self._endings = Marks.of(manner.endings)
        self._marks = Marks.of((self._closer,), manner.endings)
        self._sink = sink
        self._value: RawValue | PrintedValue | None = None
        self._done = False

    def cut(self) -> None:
        """All was handed on as it came."""

    def consume(self, buffer: str, start: int) -> tuple[int, Status]:
        i = start
        if self._value is None:
            i = skip_space(buffer, start)
            if i == len(buffer):
                return i, Status.MORE
            self._value = (PrintedValue if buffer[i] in "[{" else RawValue)(self._sink)
        if not self._done:
            i, status = self._value.consume(buffer, i)
            if status is not Status.DONE:
                return i, status
            self._done = True
        left_open = self._endings.find.search(buffer, i) if self._endings.find else None
        if left_open and _TOO_MANY.fullmatch(buffer, i, left_open.start()):
            return left_open.start(), Status.DONE
        end = buffer.find(self._closer, i)
        until = end if end >= 0 else self._marks.held_back(buffer, i)
        too_many = _TOO_MANY.match(buffer, i, until)
        if too_many is None or too_many.end() < until:
            return too_many.end() if too_many else i, Status.FAILED
        return (end + len(self._closer), Status.DONE) if end >= 0 else (until, Status.MORE)


def begins_number(text: str) -> bool:
    """Whether this is a number, or the beginning of one."""
    return bool(text) and _NUMBER_BEGINS.fullmatch(text) is not None


def as_json(text: str, expected: Expected, kinds: frozenset[str]) -> str:
    """The JSON that a raw value stands for: itself where it is JSON of one of these types, else a string.

    It is a string, too, where that may stand there and the JSON may not: "5.5" where strings and integers may.
    """
    word = text.strip()
    word = WORDS.get(word, word) if "string" in kinds else as_json_text(word)
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return f'"{escape(text)}"'
    is_text = json_type(value) not in kinds or ("string" in kinds and expected.is_rather_text(text, value))
    return f'"{escape(text)}"' if is_text else word


def json_type(value: object) -> JsonType:
    """The type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def holds_json(kind: Type) -> bool:
    """Whether the strings of this type may be any JSON at all."""
    if not isinstance(kind, types.String) or kind.min > 1 or kind.max is not None or not kind.exact:
        return False
    try:
        return kind.automaton is None or difference(pattern(_LIKE_JSON), kind.automaton).is_empty
    except TooLarge:
        return False


# Their expressions


@dataclass
class BetweenTags:
    """Makes the expressions of values between tags for one tool, over `rules`; what they do not enforce is noted.

    Strings contain nothing of what ends them. Where they need not be `exact`, lengths may be counted loosely.
    """

    canonical: Canonical
    spelling: Spelling
    names: RuleNames
    exact: bool
    rules: dict[str, Expr] = field(default_factory=dict[str, Expr])
    relaxations: list[Relaxation] = field(default_factory=list[Relaxation])
    capped: bool = False

    def arguments(self, expr: Expr, spell: Spell) -> ToolArguments:
        """The arguments, of such values."""
        return ToolArguments(expr, spell, self.rules, self.relaxations, self.capped)

    def any(self, ends: tuple[str, ...], entities: Entities | None = None) -> Expr:
        """Any text up to what ends it, which has a character for which an entity stands, where there are some."""
        return Text(ends) if entities is None else entities.text(None).expr

    def string(
        self, kind: types.String | types.Text, pointer: str, ends: tuple[str, ...], entities: Entities | None = None
    ) -> Expr:
        """As `any`, but for what a string may be; where its schema allows too many for a grammar, any at all."""
        if isinstance(kind, types.Text):
            if entities is not None:
                return entities.literal(kind.value)
            return NOTHING if any(end in kind.value for end in ends) else seq(kind.value)
        raw = self._raw_string(kind, ends, entities)
        self.relaxations += [Relaxation(pointer, *each) for each in raw.loose]
        return raw.expr

    def _raw_string(self, kind: types.String, ends: tuple[str, ...], entities: Entities | None) -> RawText:
        """The strings without what ends them, as an expression over the rules, and what of them is not exact."""
        try:
            if (plain := self._plain_string(kind, ends, entities)) is not None:
                return RawText(plain)
            if entities is None:
                raw = raw_text(ends, kind.automaton, kind.min, kind.max, exact=self.exact)
            else:
                raw = entities.text(kind.automaton, kind.min, kind.max)
        except TooLarge:
            keyword = "maxLength" if kind.automaton is None else "pattern"
            return RawText(self.any(ends, entities), (), ((keyword, "any string between raw tags"),))
        key = kind, ends, self.exact, entities
        new = {str(at): self.names.shared(f"raw-text-{at + 1}", key) for at in range(len(raw.bodies))}
        self.rules.update({new[str(at)]: renamed(body, new) for at, body in enumerate(raw.bodies)})
        expr = self._named(renamed(raw.expr, new), "raw-text", key)
        return raw._replace(expr=expr, bodies=())

    def _plain_string(self, kind: types.String, ends: tuple[str, ...], entities: Entities | None) -> Expr | None:
        """The strings if they are the same between quotes: then they are one rule, by the name that JSON has for it."""
        language, low, high = kind.automaton, kind.min, kind.max
        never = ends if entities is None else (char for char, _ in entities.pairs)
        if language is None or any(may_contain(language, text) for text in never):
            return None
        plain = plain_string(language, self.spelling, low, high)
        return None if plain is None else self._named(plain, "text", (self.spelling, ("text", language, low, high)))

    def _named(self, expr: Expr, hint: str, key: Hashable) -> Expr:
        """The expression, or, where it is large, a rule for it that is the same in the whole grammar."""
        if size(expr) <= _LARGEST_INLINE:
            return expr
        name = self.names.shared(hint, key)
        self.rules[name] = expr
        return Ref(name)

    def json(self, kind: Type, hint: str, entities: Entities | None = None) -> Expr:
        """A value as JSON, with what stands for some characters of it."""
        whole = replace(self.canonical, root=kind)
        compiled = compile_type(whole, spelling=self.spelling, names=self.names, root_name=hint, part=True)
        self.capped |= compiled.capped
        if entities is None or not entities.in_json:
            self.rules.update(compiled.rules)
            return compiled.expr

        def escaped(name: str) -> str:
            shared, wanted = name in compiled.rules, f"{name}-escaped"
            return self.names.known(wanted, (entities, name)) if shared else self.names.fresh(wanted)

        whole = {hint: compiled.expr, **compiled.rules}
        rules = entities.rules(whole, escaped)
        self.rules.update(rules)
        return Ref(next(iter(rules)))

    def rule(self, expr: Expr, hint: str) -> Ref:
        """The expression as a rule of its own."""
        name = self.names.fresh(f"{hint}-rest")
        self.rules[name] = expr
        return Ref(name)

    def relax(self, pointer: str, keyword: str, enforced: str) -> None:
        """Note what is enforced instead of a keyword."""
        self.relaxations.append(Relaxation(pointer, keyword, enforced))
