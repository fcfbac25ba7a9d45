"""Runs of the questions as one HTML file: accuracy against the length of prompts, and how well a model decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from toolgram.bench.runs import Run, beside, calibration
from toolgram.bench.tables import interval, table

_WIDTH, _HEIGHT, _EDGE = 560, 320, 48
_COLORS = ("#0b6e99", "#c4462f", "#3a7d44", "#8a5fbf", "#b7791f", "#5b6770")
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>toolgram bench</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
pre { overflow-x: auto }
svg { max-width: 100%%; height: auto; overflow: visible }
svg text { font: 12px system-ui, sans-serif }
</style>
<h1>toolgram bench</h1>
%s
</html>
"""


def page(runs: Sequence[Run]) -> str:
    """The page of runs that have the same questions."""
    parts = [
        f"<pre>{escape(beside(runs))}</pre>",
        "<h2>Right answers against the tokens of the prompt</h2>",
        _against_tokens(runs),
        "<h2>Would the model call where it should?</h2>",
        "<p>Questions in bins of equal size by the model's own probability of a call; up: those that need one. "
        "On the diagonal the model knows.</p>",
        _calibrations(runs),
        *(f"<h2>{escape(run.name)}</h2>\n<pre>{escape(table(run.answers))}</pre>" for run in runs),
    ]
    return _PAGE % "\n".join(parts)


def _against_tokens(runs: Sequence[Run]) -> str:
    most = max(run.prompt_tokens for run in runs) * 1.1
    drawn: list[str] = []
    for color, run in zip(_cycled(len(runs)), runs, strict=True):
        low, high = interval(run.right, len(run.answers))
        x = run.prompt_tokens / most
        drawn += [_line([(x, low), (x, high)], color), _dot(x, run.right / len(run.answers), color, run.name)]
    ticks = [(at / 4, f"{at * most / 4:.0f}") for at in range(5)]
    return _plot(drawn, ticks, "tokens of the prompt, mean", "right")


def _calibrations(runs: Sequence[Run]) -> str:
    drawn = [_line([(0, 0), (1, 1)], "#bbb")]
    for color, run in zip(_cycled(len(runs)), runs, strict=True):
        points = [(each.probability, each.need / each.of) for each in calibration(run)]
        dots = (_dot(x, y, color, "" if at else run.name) for at, (x, y) in enumerate(points))
        drawn += [_line(points, color), *dots]
    return _plot(drawn, [(at / 4, f"{at / 4:.2f}") for at in range(5)], "probability of a call", "need a call")


def _cycled(count: int) -> list[str]:
    return [_COLORS[at % len(_COLORS)] for at in range(count)]


def _plot(drawn: Iterable[str], ticks: Sequence[tuple[float, str]], across: str, up: str) -> str:
    """A plot of the unit square: shares go up, and what the ticks say goes across."""
    frame = [_line([(0, 0), (1, 0)], "#333"), _line([(0, 0), (0, 1)], "#333")]
    below = (_text(x, 0, label, "middle", dy=18) for x, label in ticks)
    left = (_text(0, at / 4, f"{25 * at} %", "end", dx=-6, dy=4) for at in range(5))
    titles = (_text(0.5, 0, across, "middle", dy=38), _text(0, 1, up, "start", dx=8, dy=-8))
    inside = "\n".join([*frame, *below, *left, *titles, *drawn])
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">\n{inside}\n</svg>'


def _at(x: float, y: float) -> tuple[float, float]:
    return _EDGE + x * (_WIDTH - 2 * _EDGE), _HEIGHT - _EDGE - y * (_HEIGHT - 2 * _EDGE)


def _line(points: Iterable[tuple[float, float]], color: str) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(*point) for point in points))
    return f'<polyline points="{places}" fill="none" stroke="{color}"/>'


def _dot(x: float, y: float, color: str, label: str) -> str:
    left, top = _at(x, y)
    dot = f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{color}"/>'
    anchor, dx = ("start", 8) if x <= 0.5 else ("end", -8)  # towards the middle, where there is room
    return dot + (_text(x, y, label, anchor, dx=dx, dy=4) if label else "")


def _text(x: float, y: float, text: str, anchor: str, *, dx: float = 0, dy: float = 0) -> str:
    left, top = _at(x, y)
    return f'<text x="{left + dx:.1f}" y="{top + dy:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
