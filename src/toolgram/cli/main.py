"""The entry point of the `toolgram` command."""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import Any

from toolgram.errors import MissingPackage, needing

MEMORY = {
    "PYTHONMALLOC": "malloc",
    "MALLOC_ARENA_MAX": "1",  # Python runs one thread at a time, and each further arena keeps what is free to itself
    "MALLOC_MMAP_THRESHOLD_": str(128 << 10),  # what is larger goes back at once, however large others were before it
}
"""Variables with which the memory of a server is that of glibc, which gives back what is free."""


def run() -> None:
    """Runs the command line; says what to install if packages are missing."""
    _steady_streams()
    serves = sys.argv[1:2] == ["serve"]
    if serves:
        _begin_with_malloc()
    extra = "server" if serves else "cli"
    try:
        with needing(extra, "the command line"):
            from toolgram.cli.app import app
    except MissingPackage as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:  # in the first moment
        sys.exit(130)
    app()


def _steady_streams() -> None:
    """What a shell closed goes nowhere, and what stdout has no character for is written as JSON escapes it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - as long as we run
    codecs.register_error("toolgram.json", _escaped)
    out: Any = sys.stdout
    if out.errors == "strict" and isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="toolgram.json")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


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
        os.environ.update({**MEMORY, **os.environ})
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - as we were started
