"""Paths as clients make them of an address that was given in another form than theirs."""

from __future__ import annotations

from collections.abc import Set

_VERSION = "/v1"


def path_meant(path: str, known: Set[str]) -> str:
    """The one of the `known` paths that is meant by one with slashes too many, or with `/v1` twice or not at all.

    It is the path itself where it is known, or none is meant. A client that joins its own `/v1/models` or `/models` to
    an address asks for `/v1/v1/models` where that has one, for `//v1/models` where it ends with a slash, and for
    `/models` where it has none.
    """
    if path in known:
        return path
    tidy = "/" + "/".join(filter(None, path.split("/")))
    meant = (tidy, _VERSION + tidy, tidy.removeprefix(_VERSION))
    return next((each for each in meant if each in known), path)
