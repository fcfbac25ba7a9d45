"""`toolgram replay` as a command: its options, and what they make."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that `serve --record` wrote.", show_default=False)
    ],
    shrink: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the smallest request that still fails so there.")
    ] = None,
) -> None:
    """Put a recorded request again, without its model; exits with 1 if it does not end as it did."""
    from toolgram.errors import needing

    with needing("server", "toolgram replay"):
        from toolgram.cli.sessions.replay import replay as again
    if not again(file, shrink):
        raise typer.Exit(1)
