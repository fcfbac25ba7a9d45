"""Draws the pictures of the documents, from what the documents show and from what benchmarks measured.

    python docs/pictures.py [--check]

The tests run the documents, so that a picture of their output is one of a real run. `--check` says which pictures are
not as they would be drawn now.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import plots
from svg import ADVANCE, COLOURS, INK, PALE, arrow, box, code, picture, words

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
GREEN, ORANGE, BLUE, VIOLET = COLOURS[:4]
_PRINTED = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(page: str) -> list[str]:
    """What the code of a page prints, block by block."""
    return _PRINTED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def demo() -> str:
    """A terminal with what the first console block of the quick start shows, but for the message that a pipe gets."""
    text = _CONSOLE.findall((ROOT / "docs/quick-start.md").read_text(encoding="utf-8"))[0]
    text = re.sub(r"^\{\n.*?^\}\n", "", text, flags=re.MULTILINE | re.DOTALL)
    parts = [
        f'<circle cx="{24 + 20 * at}" cy="24" r="6" fill="{fill}"/>'
        for at, fill in enumerate(("#e5645a", "#e0b341", "#5fb760"))
    ]
    y = 58
    for whole in re.sub(r"\n{2,}(?!\$)", "\n", text).splitlines():
        for row in _wrapped(whole, 96):
            parts.append(code(20, y, _terminal(row, whole), size=13))
            y += 19
    title = "toolgram in a terminal: a model calls a tool, and answers in a schema"
    return picture(820, y + 4, title, *parts, paper="#12181f")


def _wrapped(row: str, width: int) -> list[str]:
    """The row in pieces that are not wider, cut at spaces where there is one."""
    pieces = list[str]()
    while len(row) > width:
        cut = row.rfind(" ", 0, width) + 1 or width
        pieces.append(row[:cut].rstrip())
        row = "    " + row[cut:]
    return [*pieces, row]


def _terminal(row: str, whole: str) -> list[tuple[str, str]]:
    """A row of a terminal in colours: commands, what is told of the run, and strings of JSON."""
    if whole.startswith("$"):
        return [(row, "#7fd6c2")]
    if re.match(r"(style|prompt|answer|forced by the grammar|finish):", row):
        return [(row, "#8b99a6")]
    pieces = [piece for piece in re.split(r'("[^"]*")', row) if piece]
    return [(piece, "#f0b27a" if piece.startswith('"') else "#e6edf3") for piece in pieces]


def style() -> str:
    """One call, as several styles write it."""
    parts = [words(24, 36, "get_weather(city: Oslo, days: 3), as five families write it", size=16, bold=True)]
    y = 60.0
    for at, row in enumerate(printed("concepts/style.md")[0].splitlines()):
        name, _, written = row.partition(" ")
        rows = str(ast.literal_eval(written.strip())).split("\n")
        high = 20 + 18 * len(rows)
        parts += [box(150, y, 586, high), words(138, y + 24, name, size=14, bold=True, fill=COLOURS[at], at="end")]
        parts += [code(164, y + 24 + 18 * line, _values(text), size=12.5) for line, text in enumerate(rows)]
        y += high + 10
    return picture(760, y + 10, "The same call in five styles", *parts)


def _values(text: str) -> list[tuple[str, str]]:
    """What is of the call itself in colour, and what is of the format pale."""
    pieces = re.split(r"(get_weather|\bcity\b|\bdays\b|Oslo|\b3\b)", text)
    return [(piece, INK if at % 2 else PALE) for at, piece in enumerate(pieces) if piece]


def wire_format() -> str:
    """A format, and its three interpreters at work."""
    grammar, events, written = printed("concepts/wire-format.md")
    texts = [("Opt(Content()),", PALE), ("Many(Call(Seq(", INK), ('  Mark("<call "),', GREEN), ("  Name(),", ORANGE)]
    texts += [('  Lit(">"),', GREEN), ("  Arguments(),", BLUE), ('  Mark("</call>"))))', GREEN)]
    parts = [words(24, 36, "One value, three interpreters", size=16, bold=True), box(24, 130, 190, 190)]
    parts += [words(38, 156, "wire format", bold=True)]
    parts += [code(38, 184 + 19 * at, [row], size=12) for at, row in enumerate(texts)]
    calls = grammar.removeprefix("root ::= ").partition(' ("')[0]  # without the white space at the end of a turn
    cut = '<call fi · nd>{"id":  · 7}</call>'
    rows = {
        "grammar: what a model may write": [calls],
        "reader: text to events": [cut, *(_short(event) for event in events.splitlines())],
        "writer: message to text": ["find(id: 7)", written.strip()],
    }
    y = 60
    for (name, lines), colour in zip(rows.items(), (GREEN, ORANGE, BLUE), strict=True):
        high = 40 + 19 * len(lines)
        parts += [box(270, y, 466, high, stroke=colour), words(284, y + 24, name, bold=True, fill=colour)]
        parts += [code(284, y + 48 + 19 * at, [(text, INK)], size=12) for at, text in enumerate(lines)]
        parts.append(arrow(214, 225, 264, y + high / 2))
        y += high + 14
    return picture(760, y + 6, "A wire format with its grammar, its reader and its writer", *parts)


def _short(event: str) -> str:
    """An event without what it has of no interest."""
    return re.sub(r"index=0, |, id=None|id=None|index=0|, complete=True, dropped_calls=0", "", event)


def relaxation() -> str:
    """What a schema admits and what its grammar does: two sets, with examples."""
    rows = printed("concepts/relaxation.md")[1].splitlines()
    matched = [re.match(r"(.*\S)\s+(valid|invalid)\s+(admitted|ruled out)$", row) for row in rows]
    text = {(row[2], row[3]): row[1] for row in matched if row is not None}
    ring = 'rx="200" ry="105" fill-opacity="0.12" stroke-width="2"'
    parts = [
        words(24, 36, "ids: a list of integers, uniqueItems", size=16, bold=True),
        f'<ellipse cx="285" cy="200" {ring} fill="{BLUE}" stroke="{BLUE}"/>',
        f'<ellipse cx="475" cy="200" {ring} fill="{GREEN}" stroke="{GREEN}"/>',
        words(200, 84, "what the schema admits", fill=BLUE, bold=True, at="middle"),
        words(560, 84, "what the grammar admits", fill=GREEN, bold=True, at="middle"),
        *_example(178, 190, _brief(text["valid", "ruled out"]), "stricter", ORANGE),
        *_example(380, 190, text["valid", "admitted"], "the same", INK),
        *_example(585, 190, text["invalid", "admitted"], "not enforced", ORANGE),
        *_example(380, 340, text["invalid", "ruled out"], "ruled out by both", PALE),
    ]
    return picture(760, 385, "What a schema admits, and what its grammar does", *parts)


def _example(x: float, y: float, text: str, verdict: str, colour: str) -> list[str]:
    left = x - len(text) * 12 * ADVANCE / 2
    under = words(x, y + 24, verdict, size=13, fill=colour, bold=True, at="middle")
    return [code(left, y, [(text, INK)], size=12), under]


def _brief(text: str) -> str:
    return re.sub(r"(\d{3})\d{9,}", r"\g<1>…", text)


def forced_tokens() -> str:
    """A call, token by token: what the model decided, and what was certain."""
    *rows, counts = printed("concepts/forced-tokens.md")[0].splitlines()
    parts = [words(24, 36, "Which tokens of a call the model decides", size=16, bold=True)]
    for at, row in enumerate(rows):
        x, y = 30.0, 82 + at * 34
        for piece in re.split(r"(\[[^\]]*\])", row):
            chosen = piece.startswith("[")
            text = piece[1:-1] if chosen else piece
            wide = len(text) * 13.5 * ADVANCE
            if chosen:
                parts.append(box(x - 1, y - 17, wide + 2, 24, fill="#fbe3d2", stroke=ORANGE))
            parts.append(code(x, y, [(text, INK if chosen else PALE)], size=13.5))
            x += wide
    y = 82 + len(rows) * 34
    parts += [
        box(30, y - 8, 18, 18, fill="#fbe3d2", stroke=ORANGE),
        words(56, y + 6, "chosen by the model", size=13),
        words(230, y + 6, "grey: forced by the grammar", size=13, fill=PALE),
        words(730, y + 6, counts, size=13, bold=True, at="end"),
    ]
    return picture(760, y + 34, "Which tokens of a call a model decides", *parts)


DRAWN: dict[str, Callable[[], str]] = {
    "demo": demo,
    "style": style,
    "wire-format": wire_format,
    "relaxation": relaxation,
    "forced-tokens": forced_tokens,
    **plots.DRAWN,
}


def stale() -> list[str]:
    """The pictures that are not as they would be drawn now."""
    files = {name: PICTURES / f"{name}.svg" for name in DRAWN}
    kept = {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.exists()}
    return [name for name, drawn in DRAWN.items() if kept.get(name) != drawn()]


def main() -> None:
    """Draws them, or says which would change."""
    parser = argparse.ArgumentParser(description="Draws the pictures of the documents.")
    parser.add_argument("--check", action="store_true", help="draw nothing; exit with 1 if a picture would change")
    if parser.parse_args().check:
        sys.exit("\n".join(f"docs/pictures/{name}.svg is old" for name in stale()))
    for name, drawn in DRAWN.items():
        (PICTURES / f"{name}.svg").write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
