"""`toolgram tune`: what is best for a model, as a profile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import typer

from toolgram.cli.inputs import BadInput, write_text
from toolgram.planning.profile import Measured, Profile
from toolgram.styles.registry import find_style, no_such_style
from toolgram.tune.trials import Asker
from toolgram.tune.tuning import tune

_BUDGET = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds_of(budget: str) -> float:
    """A time such as 90s, 10m or 2h, in seconds. Raises BadInput for what is none."""
    found = _BUDGET.fullmatch(budget)
    if found is None:
        raise BadInput(f"--budget is a time such as 90s, 10m or 2h, not {budget!r}")
    return float(found[1]) * _SECONDS[found[2]]


def tuned(model: str, asker: Asker, seconds: float, file: Path, names: Sequence[str] = ()) -> None:
    """Finds the profile, prints what was measured, and writes the file.

    Raises BadInput for a style that is none, and for a file that cannot be written: where that is known only in the
    end, the profile is printed.
    """
    for name in names:
        if find_style(name) is None:
            raise BadInput(no_such_style(name))
    profile = asyncio.run(_run(model, asker, seconds, names))
    for measured in profile.measured:
        typer.echo(line(measured))
    try:
        write_text(file, profile.write())
    except BadInput:
        typer.echo(profile.write())
        raise
    typer.echo(f"{file}: {profile}")
    if any(each.questions == "all" and each.right < each.without for each in profile.measured):
        typer.echo("warning: more of these answers were right without the profile than with it", err=True)


async def _run(model: str, asker: Asker, seconds: float, names: Sequence[str]) -> Profile:
    try:
        return await tune(model, asker, seconds, lambda text: typer.echo(text, err=True), names)
    finally:
        await asker.engine.aclose()


def line(measured: Measured) -> str:
    """What was measured, in a line."""
    with_it, without = _share(measured.right, measured.bounds), _share(measured.without, measured.bounds_without)
    low, high = measured.gain
    return (
        f"{measured.of} questions {_WHICH[measured.questions]}: {with_it} right with the profile, {without} without, "
        f"{100 * low:+.0f} to {100 * high:+.0f} points"
    )


_WHICH = {"with a call": "that a call answers", "without a call": "that no tool fits", "all": "in all"}


def _share(count: int, bounds: tuple[float, float]) -> str:
    return f"{count} ({100 * bounds[0]:.0f}-{100 * bounds[1]:.0f} %)"
