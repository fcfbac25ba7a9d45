"""The entry point of the `toolgram` command."""

from __future__ import annotations

import os
import sys

from toolgram.errors import MissingPackage, needing


def run() -> None:
    """Runs the command line; says what to install if packages are missing."""
    serves = sys.argv[1:2] == ["serve"]
    if serves:
        _begin_with_malloc()
    extra = "server" if serves else "cli"
    try:
        with needing(extra, "the command line"):
            from toolgram.cli.app import app
    except MissingPackage as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:  # in the first moment
        sys.exit(130)
    app()


def _begin_with_malloc() -> None:
    """Begin again with memory from the C library, where that is glibc and nothing else was asked for.

    What Python keeps itself it gives back only where nothing in a megabyte of it is in use any more. A server that has
    once planned something large would hold much of that for ever.
    """
    if sys.platform == "linux" and "PYTHONMALLOC" not in os.environ and sys.executable:
        try:
            os.confstr("CS_GNU_LIBC_VERSION")
        except (OSError, ValueError):  # another C library
            return
        os.environ["PYTHONMALLOC"] = "malloc"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - as we were started
