"""Encodings: notations for JSON values, in which a model family writes the arguments of a call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

_ESCAPING = (('"', None), ('"', "'"), ("'", '"'))  # the quotes of strings with escapes, and the others
BARE_WORD = re.compile(r"""[^\s,(){}\[\]:="']+""")


@dataclass(frozen=True, slots=True)
class Encoding:
    """A notation for JSON values; the defaults are JSON's own.

    `keyword_arguments` writes the outermost object as (k=v), `bare_keys` leaves the quotes of keys away. Strings stand
    between `quote`s; where `escapes` is False they are raw and must not contain the quote. Of the keys that no schema
    declares, those that are not quoted are ASCII identifiers. A separator that is None is that of the wire format.
    With `margins`, a line break and more, each member of the outermost object stands after one of them, on a line of
    its own, and one of the `last_margins` before what closes the object, unless it is empty; the first is the one that
    is written, the others are read as well. With `sorts_keys` the keys of every object come in the order of the
    alphabet, as Jinja's `dictsort` has it, whatever the schema's is. Models may write null as `other_null` as well,
    where templates print both, and put strings with escapes between `other_quote`s, as in Python, whose escapes they
    may use then.
    Raises ValueError for a notation that cannot be read back: other quotes with escapes than Python's, a raw one that
    overlaps itself, raw strings as keys.
    """

    name: str
    true: str = "true"
    false: str = "false"
    null: str = "null"
    quote: str = '"'
    escapes: bool = True
    bare_keys: bool = False
    keyword_arguments: bool = False
    item_separator: str | None = None
    key_separator: str | None = None
    margins: tuple[str, ...] = ()
    last_margins: tuple[str, ...] = ("",)
    sorts_keys: bool = False
    other_null: str | None = None
    other_quote: str | None = None

    def __post_init__(self) -> None:
        if self.escapes and (self.quote, self.other_quote) not in _ESCAPING:
            raise ValueError(f"{self.name}: strings with escapes stand between double quotes, or Python's")
        if self.other_quote and not self.escapes:
            raise ValueError(f"{self.name}: raw strings stand between quotes of one kind")
        if not self.escapes and not self.bare_keys:
            raise ValueError(f"{self.name}: raw strings want bare keys")
        if not self.quote or any(self.quote.endswith(self.quote[:n]) for n in range(1, len(self.quote))):
            raise ValueError(f"{self.name}: the end of a string is not clear with the quote {self.quote!r}")

    @property
    def is_json(self) -> bool:
        """Whether the notation is JSON itself, except for its separators."""
        return self.name == "json"

    @property
    def counts_characters(self) -> bool:
        """Whether the length of a string can be bounded: a quote of several characters in raw text is in the way."""
        return self.escapes or len(self.quote) == 1

    @property
    def by_quote(self) -> tuple[Encoding, ...]:
        """The notation, and where strings may stand between other quotes, that with those."""
        if self.other_quote is None:
            return (self,)
        return (self, replace(self, quote=self.other_quote, other_quote=self.quote))

    def ordered(self, keys: Iterable[str]) -> Iterable[str]:
        """Keys in the order in which they are written."""
        return sorted(keys, key=str.lower) if self.sorts_keys else keys

    def words(self, text: str) -> tuple[str, ...]:
        """All that may stand for JSON's null, true or false."""
        return (self.word(text), *((self.other_null,) if text == "null" and self.other_null else ()))

    def word(self, text: str) -> str:
        """What stands for JSON's null, true or false."""
        return {"null": self.null, "true": self.true, "false": self.false}[text]

    def can_quote(self, text: str) -> bool:
        """Whether a string can say this."""
        return self.escapes or self.quote not in text


JSON = Encoding("json")
PYTHON = Encoding("python", true="True", false="False", null="None", keyword_arguments=True, other_quote="'")
