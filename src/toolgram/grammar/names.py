"""Rule names that a dialect takes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolgram.grammar.walk import fresh


def dashed(names: Iterable[str]) -> dict[str, str]:
    """For each name one of letters, digits and dashes that begins with a letter; all of them differ, `root` stays."""
    out: dict[str, str] = {"root": "root"}
    taken = {"root"}
    for name in names:
        if name not in out:
            plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "rule"
            out[name] = fresh(plain if plain[0].isalpha() else f"r-{plain}", taken)
            taken.add(out[name])
    return out
