"""The id of a call on the wire, and what it is for a client."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallId:
    """The id of a call: `length` characters out of `alphabet` (a character class, as in "a-zA-Z0-9"), or up to `most`.

    `form` says what the id is where the wire shows but a part of it: "functions.{name}:{id}".
    """

    alphabet: str = "a-zA-Z0-9"
    length: int = 9
    form: str = "{id}"
    most: int | None = None

    @property
    def longest(self) -> int:
        """How many characters there are at most."""
        return self.length if self.most is None else self.most

    @property
    def pattern(self) -> str:
        """The regular expression of what the wire shows."""
        sizes = f"{self.length}" if self.longest == self.length else f"{self.length},{self.longest}"
        return f"[{self.alphabet}]{{{sizes}}}"

    @property
    def has_name(self) -> bool:
        """Whether ids have the tool's name in them."""
        return "{name}" in self.form

    def fitted(self, name: str, id_: str, place: int) -> str:
        """The id itself, if a call of this tool may have it, else the one of a call at this place, where ids count."""
        return id_ if not name or self.admits(name, id_) else self.form.format(name=name, id=place)

    def admits(self, name: str, id_: str) -> bool:
        """Whether a call of this tool may have this id."""
        before, _, after = self.form.replace("{name}", name).partition("{id}")
        return re.fullmatch(re.escape(before) + self.pattern + re.escape(after), id_) is not None


COUNT = CallId("0-9", 1, most=3)
"""An id that is a number, which counts calls."""
