"""`toolgram replay`: a recorded failure once more, offline, and the smallest that still fails."""

from __future__ import annotations

from pathlib import Path

import typer

from toolgram.cli.inputs import BadInput, write_text
from toolgram.server.recording.replay import alike, replayed
from toolgram.server.recording.shrink import shrunk
from toolgram.server.recording.values import End, Recording


def replay(file: Path, shrink: Path | None) -> bool:
    """Prints how a recording ended and how it ends now; whether these are alike. Raises ToolgramError.

    With `shrink` the smallest recording that ends so is written there.
    """
    recording = Recording.from_file(file)
    now = replayed(recording).end
    same = alike(now, recording.end)
    typer.echo(f"recorded: {told(recording.end)}")
    typer.echo(f"now: {'the same' if same else told(now)}")
    if shrink is None:
        return same
    if not same:
        raise BadInput(f"{file}: ends in another way now: there is nothing to shrink")
    smallest, tried = shrunk(recording)
    before, after = recording.to_json(), smallest.to_json()
    write_text(shrink, after)
    typer.echo(
        f"shrunk: {_size(recording)} to {_size(smallest)} in {tried} replays ({len(before)} to {len(after)} bytes)"
    )
    return same


def told(end: End) -> str:
    """How a request ended, in a line."""
    what = f"{end.kind}, status {end.status}"
    if end.code:
        what += f", {end.code}: {end.message}"
    if end.finish:
        what += f", finish {end.finish}"
    return " ".join("".join(c if c.isprintable() else repr(c)[1:-1] for c in what).split())


def _size(recording: Recording) -> str:
    written = sum(len(piece) for choice in recording.calls for call in choice for piece in call.pieces)
    return f"a body of {len(str(recording.body))} and an answer of {written} characters"
