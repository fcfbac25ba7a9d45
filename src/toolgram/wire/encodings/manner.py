"""How values between tags are written, whatever the tags are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from toolgram.wire.encodings.entities import Entities


@dataclass(frozen=True)
class Manner:
    """How values are written: a string may stand inside a `fence`, which is no part of it; `quoted` strings are JSON;
    for some characters `entities` stand. What closes a value is `followed_by` this, and what stands in `unclosed`
    follows one that nobody closed."""

    fence: tuple[str, str] = ("", "")
    quoted: bool = False
    entities: Entities | None = None
    followed_by: str = ""
    unclosed: str = ""

    @cached_property
    def endings(self) -> tuple[str, ...]:
        """What ends a value that nobody closed, with or without white space between its tags."""
        space = self.unclosed[: len(self.unclosed) - len(self.unclosed.lstrip())]
        return tuple(dict.fromkeys((self.unclosed, space + "".join(self.unclosed.split())))) if self.unclosed else ()


PLAIN = Manner()
