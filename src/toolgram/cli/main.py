"""The entry point of the `toolgram` command."""

from __future__ import annotations

import sys


def run() -> None:
    """Runs the command line; says what to install if packages are missing."""
    try:
        from toolgram.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("error: the command line needs more packages: pip install 'toolgram[cli]'")
    app()
