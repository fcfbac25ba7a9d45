"""Rule names that a dialect takes."""

from __future__ import annotations

import re
from collections.abc import Container

from toolgram.grammar.walk import fresh

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*").fullmatch
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def dashed(name: str, taken: Container[str]) -> str:
    """The name in letters, digits and dashes, beginning with a letter; with a number where it is taken."""
    if _PLAIN(name) and name not in taken:
        return name
    plain = _OTHER.sub("-", name).strip("-") or "rule"
    return fresh(plain if plain[0].isalpha() else f"r-{plain}", taken)
