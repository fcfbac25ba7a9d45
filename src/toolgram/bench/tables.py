"""What the answers come to: by kind, as a table for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import fmean
from typing import Any

from toolgram.bench.asking import Answer

_Z = 1.96  # of a normal distribution, 95 % are within so many deviations
_HEAD = ("kind", "right", "of", "%", "95 %", "tools", "number", "prompt", "tokens", "seconds")


@dataclass(frozen=True)
class Row:
    """The answers of a kind: how many are right, and within which bounds the share of them is (95 %, by Wilson).

    `tools` and `number` count those with the right tools, and with the right number of calls; the rest are means.
    """

    kind: str
    right: int
    of: int
    low: float
    high: float
    tools: int
    number: int
    prompt_tokens: float
    tokens: float
    seconds: float


def rows(answers: Sequence[Answer]) -> list[Row]:
    """A row for each kind, in the order in which they come, and one for all."""
    kinds = dict.fromkeys(answer.kind for answer in answers)
    groups = [(kind, [answer for answer in answers if answer.kind == kind]) for kind in kinds]
    return [_row(kind, group) for kind, group in [*groups, ("all", list(answers))] if group]


def _row(kind: str, group: Sequence[Answer]) -> Row:
    right = sum(answer.right for answer in group)
    low, high = interval(right, len(group))
    return Row(
        kind,
        right,
        len(group),
        low,
        high,
        sum(answer.tools for answer in group),
        sum(answer.number for answer in group),
        fmean(answer.prompt_tokens for answer in group),
        fmean(answer.tokens for answer in group),
        fmean(answer.seconds for answer in group),
    )


def interval(right: int, of: int) -> tuple[float, float]:
    """The bounds of a share, with 95 % confidence: Wilson's score interval."""
    share, spread = right / of, _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    width = _Z / (1 + spread) * sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, middle - width), min(1.0, middle + width)


def gain(right: Sequence[bool], before: Sequence[bool]) -> tuple[float, float]:
    """The bounds of how much larger one share is than another, of the same questions, with 95 % confidence."""
    changes = [one - other for one, other in zip(right, before, strict=True)]
    middle = fmean(changes)
    width = _Z * sqrt(fmean((change - middle) ** 2 for change in changes) / len(changes))
    return middle - width, middle + width


def table(answers: Sequence[Answer]) -> str:
    """The rows as text."""
    return columns([_HEAD, *map(_cells, rows(answers))])


def columns(cells: Sequence[Sequence[str]]) -> str:
    """Rows of cells as text, the first column to the left and the others to the right."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(_line(row, widths) for row in cells)


def _cells(row: Row) -> tuple[str, ...]:
    bounds = f"{100 * row.low:.0f}-{100 * row.high:.0f}"
    means = (f"{row.prompt_tokens:.0f}", f"{row.tokens:.1f}", f"{row.seconds:.2f}")
    counts = (str(row.right), str(row.of), f"{100 * row.right / row.of:.0f}", bounds, str(row.tools), str(row.number))
    return (row.kind, *counts, *means)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if not at else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


def wrong(answers: Sequence[Answer]) -> Iterator[str]:
    """The answers that are wrong, a paragraph each."""
    for answer in answers:
        if not answer.right:
            yield f"{answer.id}: {answer.ask}\n  {answer.fault}\n  {answer.text!r}"


def as_json(about: dict[str, Any], answers: Sequence[Answer]) -> dict[str, Any]:
    """All of it: what was measured, the rows, and each answer."""
    return {
        **about,
        "rows": [asdict(row) for row in rows(answers)],
        "answers": [asdict(answer) for answer in answers],
    }
