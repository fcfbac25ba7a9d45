"""The tags of parameters, and the reader of arguments that are made of them; `tagged` shows a sample."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from toolgram.wire.encodings.entities import Entities
from toolgram.wire.encodings.expected import Expected
from toolgram.wire.encodings.json import Sink, Status, escape, skip_space
from toolgram.wire.encodings.manner import Manner
from toolgram.wire.encodings.raw import ValueReader, value_reader
from toolgram.wire.marks import Marks

_MAX_KEY = 512
KEY = "{key}"  # in what closes a value
_BETWEEN = re.compile(r"\s+|(?<=>)(?=<)")
_OF_A_TAG = r"[^\s<>()\[\]{}|｜/=\"']"  # what a key is made of where it is a tag itself


@dataclass(frozen=True)
class ParameterTags:
    """The tags: `open` key `after_key` value `close`, for each parameter.

    `after_key` may differ by the JSON type of the value: {"string": …, "number": …}; the entry "" is for the others.
    `close` ends raw text: its part without white space must not stand in a string. Where it has the key in it, as
    "{key}", keys are tags themselves, which have but words in them. `fence` is what a model may put around a string
    that has tags in it: ("<![CDATA[", "]]>"). With `python_words` the family's templates print true, false and null as
    Python does, so that its models write them so, or as JSON has them. `escapes` are characters of keys with what
    stands for them, that of the escapes themselves first: ("&", "&amp;"). With `quoted` strings are JSON as well.
    `entities` stand for some characters of values, one of which is in `close`. What closes a value is `followed_by`
    this, white space aside: a reader takes it for text of the value else. `unclosed` is what follows the last value
    where its models forget to close that: a reader ends the value there, and a grammar has no string with the beginning
    of it, so that they close it. A grammar takes the tags of `other` too, which differ from these in white space: a
    template of the family has it so.
    """

    name: str
    open: str
    after_key: tuple[tuple[str, str], ...]
    close: str
    fence: tuple[str, str] = ("", "")
    python_words: bool = False
    escapes: tuple[tuple[str, str], ...] = ()
    quoted: bool = False
    entities: Entities | None = None
    followed_by: str = ""
    unclosed: str = ""
    other: ParameterTags | None = None

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

    def ends(self, key: str) -> tuple[str, ...]:
        """What no raw value contains: the mark that ends it, and with what one that is left open would go on."""
        begun = self.unclosed.partition(">")[0]  # models that must not write the word of this tag write the right one
        return (self.closer(key), begun) if begun else (self.closer(key),)

    @cached_property
    def tag(self) -> str:
        """What opens a parameter, without white space before it: a reader takes any."""
        return self.open.lstrip()

    @cached_property
    def manner(self) -> Manner:
        """How values are written."""
        return Manner(self.fence, self.quoted, self.entities, self.followed_by, self.unclosed)

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
        key = rf"(?P<key>{self.word.pattern})\s*" if self.keys_are_tags else rf"(?P<key>[\s\S]{{0,{_MAX_KEY}}}?)"
        return re.compile(f"{key}(?:{ways})")

    @cached_property
    def word(self) -> re.Pattern[str]:
        """A key that is a tag itself, which does not begin as the tag that closes it."""
        closing = self.close.strip().partition(KEY)[0]
        closes = closing.removeprefix(self.tag) if closing.startswith(self.tag) else ""
        return re.compile((f"(?!{re.escape(closes)})" if closes else "") + rf"{_OF_A_TAG}{{1,{_MAX_KEY}}}")

    def begins(self, buffer: str, at: int) -> bool | None:
        """Whether a parameter begins here; None where more text must tell.

        Where keys are tags themselves, what follows the parameters may begin as they do, and goes on otherwise.
        """
        if not buffer.startswith(self.tag, at):
            return None if self.tag.startswith(buffer[at:]) else False
        key = at + len(self.tag)
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

    def inside(self, value: str, *, is_json: bool) -> str:
        """A value as it stands between its tags."""
        entities = self.entities
        return value if entities is None or (is_json and not entities.in_json) else entities.written(value)

    def read(self, inside: str) -> str:
        """The value that stands between tags, where it is none that is only JSON."""
        return inside if self.entities is None else self.entities.read(inside)

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
    """The pattern of a text, with any white space where it has some, and between its tags."""
    pieces = _BETWEEN.split(text.strip())
    return r"\s*".join(map(re.escape, pieces)) + (r"\n?" if text.endswith("\n") else "")


class TaggedReader:
    """Reads the parameters of one call and hands their JSON text on in pieces; ends where no parameter begins."""

    __slots__ = ("_count", "_expected", "_sink", "_tags", "_value")

    def __init__(self, tags: ParameterTags, expected: Expected, sink: Sink) -> None:
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

    def close_at_end(self, rest: str) -> bool:
        """Behind a parameter, or before the first, nothing more is due."""
        is_between = self._value is None and not rest.strip()
        if is_between:
            self._sink("}" if self._count else "{}")
        return is_between

    def cut(self, rest: str) -> None:
        """The text is over: hand on the part that is there of a key or value."""
        if self._value is not None:
            self._value.cut()
            return
        held = rest.lstrip()
        if held.startswith(self._tags.tag) and self._tags.begins(held, 0) is not False:
            key = held[len(self._tags.tag) :]
            whole = self._tags.key_end.match(key)
            key = whole["key"].strip() if whole else key[: self._tags.key_marks.held_back(key, 0)].rstrip()
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
        match = self._tags.key_end.match(buffer, at + len(self._tags.tag))
        # A way to end the key is whole only when what follows shows that its white space is.
        if match is None or match.end() == len(buffer):
            too_long = match is None and len(buffer) - at > 2 * _MAX_KEY
            return i, Status.FAILED if too_long else Status.MORE
        key = self._tags.meant(match["key"].strip())
        way = next(n for n in range(len(self._tags.after_key)) if match[f"way{n}"] is not None)
        self._sink(f'{", " if self._count else "{"}"{escape(key)}": ')
        self._count += 1
        # The tags may tell the type of a value, or what it is not, else the schema does.
        told = self._tags.after_key[way][0]
        expected = self._expected.member(key)
        kinds = frozenset((told,)) if told else expected.kinds - self._tags.told or expected.kinds
        self._value = value_reader(self._tags.after_value(key), expected, kinds, self._sink, self._tags.manner)
        return match.end(), Status.MORE
