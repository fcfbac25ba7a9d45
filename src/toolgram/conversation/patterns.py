"""Regular expressions of a request, which a text has to match as a whole."""

from __future__ import annotations

import re

from toolgram.errors import InvalidRequest

_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|[()]", re.DOTALL)
_BEFORE, _AFTER = "^(?:", ")$"


def as_a_whole(pattern: str, pointer: str) -> str:
    """The pattern, holding a text to all of it. Raises InvalidRequest where it ends a group that it did not begin."""
    depth = 0
    for piece in _PIECE.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(piece[0], 0)
        if depth < 0:
            raise InvalidRequest(pointer, f"a group is closed that is not open, at offset {piece.start()}")
    return f"{_BEFORE}{pattern}{_AFTER}"


def as_given(whole: str) -> str:
    """The pattern that was given to be held to `as_a_whole`."""
    return whole.removeprefix(_BEFORE).removesuffix(_AFTER)
