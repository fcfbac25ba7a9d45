"""Values as JSON, as models are shown them: what is shown again is not written again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sys import getsizeof
from typing import Any

from toolgram.caching import packed, unpacked, weighed


def _bytes(content: bytes) -> int:
    """The weight of a cached text: what it was made of, and its longer, indented form."""
    return 3 * getsizeof(content)


def pretty(value: Any) -> str:
    """JSON over several lines, indented by two spaces."""
    return _pretty(packed(value))


@weighed(_bytes)
def _pretty(content: bytes) -> str:
    """Like `pretty`: indenting is slow, and a conversation shows the same tools at every turn."""
    return json.dumps(unpacked(content), indent=2, ensure_ascii=False)


def compact(value: Any) -> str:
    """JSON without any white space."""
    return _compact(packed(value))


@weighed(_bytes)
def _compact(content: bytes) -> str:
    return json.dumps(unpacked(content), separators=(",", ":"), ensure_ascii=False)


def listed(texts: Sequence[str], indent: int | None) -> str:
    """The list of what these texts, one at least, say as JSON, with the same indent."""
    if indent is None:
        return f"[{', '.join(texts)}]"
    line = "\n" + " " * indent
    within = f",{line}".join(text.replace("\n", line) for text in texts)
    return f"[{line}{within}\n]"
