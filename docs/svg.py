"""Small SVG pictures: boxes, words, lines, and plots of lines and bars. All lengths are in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, log10

INK, PALE, PAPER, EDGE = "#1f2a33", "#5d6b78", "#fbfcfd", "#d3dae1"
COLOURS = ("#0f6b5c", "#b4541a", "#3f51b5", "#8a5a9e", "#7a7a2e", "#4a7a96")
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
ADVANCE = 0.61  # of a character of MONO, in its size


def picture(width: float, height: float, title: str, *parts: str, paper: str = PAPER) -> str:
    """A whole picture, with a title for those who do not see it."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
        f'height="{_n(height)}" role="img" font-family="{SANS}">\n<title>{escape(title)}</title>\n'
        f'<rect width="{_n(width)}" height="{_n(height)}" rx="10" fill="{paper}"/>\n{body}\n</svg>\n'
    )


def box(x: float, y: float, width: float, height: float, *, fill: str = "#fff", stroke: str = EDGE) -> str:
    """A box with round corners."""
    size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect {size} rx="6" fill="{fill}" stroke="{stroke}"/>'


def words(
    x: float, y: float, text: str, *, size: float = 14, fill: str = INK, bold: bool = False, at: str = "start"
) -> str:
    """A line of text on the base line y; `at` is what x is: its start, middle or end."""
    weight = ' font-weight="600"' if bold else ""
    where = "" if at == "start" else f' text-anchor="{at}"'
    return f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{fill}"{weight}{where}>{escape(text)}</text>'


def code(x: float, y: float, spans: Sequence[tuple[str, str]], *, size: float = 13) -> str:
    """A line of code on the base line y, made of pieces with a colour each. Every piece is as wide as it must be."""
    out = list[str]()
    column = 0
    for text, fill in spans:
        left = x + column * size * ADVANCE
        column += len(text)
        if text.strip():
            length = f' textLength="{_n(len(text) * size * ADVANCE)}"'
            out.append(
                f'<text x="{_n(left)}" y="{_n(y)}" font-size="{_n(size)}" fill="{fill}" font-family="{MONO}" '
                f'xml:space="preserve"{length}>{escape(text)}</text>'
            )
    return "\n".join(out)


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """A line that ends in a small head, to the right or downwards."""
    heads = {True: "l-7 -4 v8 z", False: "l-4 -7 h8 z"}
    head = f'<path d="M{_n(to_x)} {_n(to_y)} {heads[to_x > x]}" fill="{PALE}"/>'
    return f'<path d="M{_n(x)} {_n(y)} L{_n(to_x)} {_n(to_y)}" stroke="{PALE}" stroke-width="1.5"/>\n{head}'


def line(points: Sequence[tuple[float, float]], stroke: str, *, width: float = 2, dashes: str = "") -> str:
    """A line through points."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{_n(width)}"{dashed}/>'


def bars(
    title: str, rows: Sequence[tuple[str, Sequence[tuple[float, str]]]], notes: Sequence[str], *, most: float
) -> str:
    """Rows of bars from the left, each of parts (a length and a colour); the first part's length stands beside it."""
    left, wide, step, top = 190, 480, 34, 64
    scale = wide / most
    parts = [words(24, 34, title, size=16, bold=True)]
    for at, (name, lengths) in enumerate(rows):
        y, x = top + at * step, float(left)
        parts.append(words(left - 12, y + 15, name, size=13, at="end"))
        for length, colour in lengths:
            size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(length * scale)}" height="20"'
            parts.append(f'<rect {size} fill="{colour}"/>')
            x += length * scale
        parts.append(words(x + 8, y + 15, f"{lengths[0][0]:.1f}", size=13))
    bottom = top + len(rows) * step + 12
    parts += [words(24, bottom + 18 * at, note, size=12, fill=PALE) for at, note in enumerate(notes)]
    return picture(760, bottom + 18 * len(notes) + 6, title, *parts)


def lines(
    title: str,
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    axes: tuple[str, str],
    notes: Sequence[str] = (),
) -> str:
    """Lines of values over values, both on logarithmic scales; each line is named at its end."""
    left, top, wide, high = 70, 64, 460, 260
    xs = [log10(x) for _, points in series for x, _ in points]
    ys = [log10(y) for _, points in series for _, y in points]
    low, tall = int(min(ys) // 1), ceil(max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        right = (log10(x) - min(xs)) / (max(xs) - min(xs))
        return left + right * wide, top + high - (log10(y) - low) / (tall - low) * high

    parts = [words(24, 34, title, size=16, bold=True)]
    for power in range(low, tall + 1):
        y = top + high - (power - low) / (tall - low) * high
        parts += [
            line([(left, y), (left + wide, y)], EDGE, width=1),
            words(left - 8, y + 4, f"{10**power:g}", size=12, at="end"),
        ]
    for x in sorted({x for _, points in series for x, _ in points}):
        parts.append(words(place(x, 10**low)[0], top + high + 18, f"{x:,.0f}", size=12, at="middle"))
    parts += [words(left + wide / 2, top + high + 38, axes[0], size=12, fill=PALE, at="middle")]
    parts += [words(left, top - 10, axes[1], size=12, fill=PALE)]
    for (name, points), colour in zip(series, COLOURS, strict=False):
        placed = [place(*point) for point in points]
        parts.append(line(placed, colour, width=2.5))
        parts += [f'<circle cx="{_n(x)}" cy="{_n(y)}" r="3.5" fill="{colour}"/>' for x, y in placed]
        x, y = placed[-1]
        parts.append(words(x + 9, y + 4, name, size=12, fill=colour, bold=True))
    bottom = top + high + 60
    parts += [words(24, bottom + 18 * at, note, size=12, fill=PALE) for at, note in enumerate(notes)]
    return picture(760, bottom + 18 * len(notes), title, *parts)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
