"""Encodings: how the arguments of a call are written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Encoding:
    """A notation for JSON values; the defaults are JSON's own.

    `keyword_arguments` writes the outermost object as (k=v), `bare_keys` leaves the quotes of keys away. Strings stand
    between `quote`s; where `escapes` is False they are raw and must not contain the quote.
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

    @property
    def is_json(self) -> bool:
        """Whether the notation is JSON itself, but for its separators."""
        return self.name == "json"


JSON = Encoding("json")
PYTHON = Encoding("python", true="True", false="False", null="None", keyword_arguments=True)
