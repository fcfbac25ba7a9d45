"""What it costs, once for each template, to see what it can express, which style it speaks, and to discover one."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import toolgram
from _common import clear_caches, show
from _data import folder
from toolgram.styles.choose import choose_style
from toolgram.styles.discovery import discover
from toolgram.styles.registry import all_styles

ROUNDS = 3
TEMPLATES = folder() / "templates"


class Row(NamedTuple):
    """Milliseconds of processor time for one template, and what was chosen and found."""

    template: str
    capabilities: float
    detection: float
    discovery: float
    style: str
    discovered: str


def row(file: Path) -> Row:
    """One template, as if it were the first; of several rounds the quickest, since other work disturbs."""
    template = toolgram.ChatTemplate.from_file(file)
    rounds = (_round(template) for _ in range(ROUNDS))
    capabilities, detection, discovery = (min(each) for each in zip(*rounds, strict=True))
    chosen, found = choose_style(template)[0].name, "yes" if discover(template).style else "no"
    return Row(file.stem, capabilities, detection, discovery, chosen, found)


def _round(template: toolgram.ChatTemplate) -> tuple[float, float, float]:
    """Capabilities, detection, and what discovery takes after it; it shares renderings with detection."""
    clear_caches()
    all_styles()  # installed packages are asked for styles once, not for each template
    return (
        _milliseconds(lambda: template.capabilities),
        _milliseconds(lambda: choose_style(template)),
        _milliseconds(lambda: discover(template)),
    )


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def main() -> None:
    """Prints a row for each template, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=TEMPLATES, help="a folder of .jinja files")
    rows = [row(file) for file in sorted(parser.parse_args().folder.glob("*.jinja"))]
    show("Milliseconds of processor time, once for each template", Row._fields, rows)
    both = [each.detection + each.discovery for each in rows]
    print(f"\nDetection and discovery together: median {median(both):.1f}, most {max(both):.1f}.")


if __name__ == "__main__":
    main()
