"""Limits of what a process may take, on systems that have them: not on Windows, where this cannot be imported."""

from __future__ import annotations

import resource
from contextlib import suppress


def lower(kind: int, most: int, *, for_good: bool = True) -> None:
    """Lower one of `resource.RLIMIT_…` of this process; one that is lower already stays.

    `for_good`: the process cannot raise it again. macOS knows RLIMIT_AS, and refuses it
    (https://github.com/python/cpython/issues/78783): there memory has no limit.
    """
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most if for_good else hard))
