"""How much discovery alone reads of templates that nobody has seen: ten variants of each family, with recorded turns.

A line for each family, then those turns that were not read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

import _peers  # noqa: F401 # pyright: ignore[reportUnusedImport] - makes the tests importable
from _common import show
from _data import folder
from unseen import FAMILIES, VARIANTS, Turn, reads, turns

CASES = folder() / "conformance" / "chat_cases.jsonl"


def main() -> None:
    """Prints how many turns were read."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    if not CASES.exists():
        sys.exit(f"the recorded turns are not there: {CASES} (TOOLGRAM_DATA names the folder)")
    recorded = [json.loads(line) for line in CASES.read_text().splitlines()]
    every, read = Counter[str](), Counter[str]()
    wrong: list[tuple[Turn, str]] = []
    for turn in turns(recorded):
        every[turn.variant.family] += 1
        if trouble := reads(turn):
            wrong.append((turn, trouble))
        else:
            read[turn.variant.family] += 1
    rows = [(family, every[family], read[family]) for family in every]
    show(f"{len(FAMILIES)} families, {VARIANTS} variants of each", ["family", "turns", "read"], rows)
    print(f"\nread: {read.total()} of {every.total()} ({100 * read.total() / every.total():.1f} %)")
    for turn, trouble in wrong:
        print(f"{turn.variant.family} {turn.variant.number}, {turn.slip}: {trouble[:200]}\n    {turn.text[:200]!r}")


if __name__ == "__main__":
    main()
