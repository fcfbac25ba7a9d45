"""The entry point of the `toolgram` command."""

from __future__ import annotations

import sys

from toolgram.errors import MissingPackage, needing


def run() -> None:
    """Runs the command line; says what to install if packages are missing."""
    extra = "server" if sys.argv[1:2] == ["serve"] else "cli"
    try:
        with needing(extra, "the command line"):
            from toolgram.cli.app import app
    except MissingPackage as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:  # in the first moment
        sys.exit(130)
    app()
