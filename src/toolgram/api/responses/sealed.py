"""Reasoning as `encrypted_content`: a text that clients hand back unread, from which no server needs to have kept it.

It is opaque, and no secret: whoever is given a response may read its reasoning.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

_OURS = "toolgram reasoning 1\n"


def sealed(reasoning: str) -> str:
    """The reasoning as one word."""
    return b64encode(f"{_OURS}{reasoning}".encode(errors="surrogatepass")).decode()


def unsealed(word: str | None) -> str:
    """The reasoning in a word, empty for none and for one of another server's."""
    try:
        said = b64decode(word or "", validate=True).decode(errors="surrogatepass")
    except ValueError:
        return ""
    return said.removeprefix(_OURS) if said.startswith(_OURS) else ""
