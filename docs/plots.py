"""Plots and tables of what benchmarks measured, from the JSON that they write (benchmarks/results).

    python docs/plots.py

prints the table of schemas and the figures beside it, as docs/comparison.md and README.md have them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from svg import COLOURS, bars, lines

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
GOOD, BAD, REFUSED, WRONG = COLOURS[0], "#c0392b", "#c9d1d9", "#e0b341"
_SOURCES = {
    "maskbench_dev": ("exactness", "real schemas of MaskBench"),
    "json_schema_test_suite_2020_12": ("exactness-suite", "schemas of the official suite"),
}


def results(name: str) -> dict[str, Any]:
    """What a benchmark kept: its command, date, versions and rows."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def measured(name: str) -> str:
    """By which command, and when."""
    kept = results(name)
    return f"{kept['command']}, {kept['date']}"


def exactness(source: str) -> str:
    """For each contestant the share of schemas that are enforced exactly, refused, too narrow and unsound."""
    rows = [row for row in results("jsonschema")["rows"] if row["source"] == source]
    shown = list[tuple[str, list[tuple[float, str]]]]()
    for row in sorted(rows, key=lambda row: -row["all-correct %"]):
        right, unsound = row["all-correct %"], row["unsound %"]
        refused = 100 - row["compiled %"]
        narrow = max(100 - right - unsound - refused, 0)
        shown.append((row["who"], [(right, GOOD), (refused, REFUSED), (narrow, WRONG), (unsound, BAD)]))
    notes = [
        "green: every valid instance accepted, every invalid one rejected, in per cent of the schemas",
        "grey: refused, or a crash; yellow: a valid instance is ruled out; red: an invalid one is admitted",
        measured("jsonschema"),
    ]
    return bars(f"How exactly schemas are enforced: {rows[0]['schemas']} {_SOURCES[source][1]}", shown, notes, most=110)


def reading_costs() -> dict[str, list[tuple[int, float]]]:
    """For each reader the lengths of answers, in tokens, and the microseconds a token: the median over the styles."""
    rows = results("reader")["rows"]
    costs = dict[str, list[tuple[int, float]]]()
    for reader in dict.fromkeys(row["reader"] for row in rows):
        mine = [row for row in rows if row["reader"] == reader]
        lengths = sorted({row["tokens"] for row in mine})
        costs[reader] = [(n, median(row["µs"] for row in mine if row["tokens"] == n)) for n in lengths]
    return costs


def reading() -> str:
    """Microseconds a token by the length of the output, of toolgram and peers."""
    names = {"toolgram": "toolgram", "transformers": "transformers", "rereading": "reading all text again"}
    costs = reading_costs()
    notes = [
        "the median over the styles that each can express; at every token, in the way of a stream",
        "reading all text again: in the way of vLLM's hermes parser, rewritten in short",
        measured("reader"),
    ]
    series = [(name, costs[reader]) for reader, name in names.items()]
    return lines("What reading costs, by the length of the answer", series, ("tokens", "µs a token"), notes)


def passes() -> str:
    """Forward passes of calls with forced tokens and, a pass a token, without."""
    rows = results("engine")["rows"]
    tokens, taken = sum(row["tokens"] for row in rows), sum(row["passes"] for row in rows)
    count = len(rows)
    shown = [
        ("forced tokens", [(taken / count, GOOD)]),
        ("a pass for each token", [(tokens / count, REFUSED)]),
    ]
    notes = [f"forward passes of a call, the mean of {count} calls by SmolLM2 135M", measured("engine")]
    return bars("What forced tokens save", shown, notes, most=1.1 * tokens / count)


_NAMES = {
    "toolgram exact": ("toolgram, `strict`", "toolgram"),
    "toolgram relaxed": ("toolgram", "toolgram"),
    "llguidance": ("llguidance (vLLM's `guidance`)", "llguidance"),
    "XGrammar": ("XGrammar (vLLM's and SGLang's default)", "xgrammar"),
    "llama.cpp": ("llama.cpp", "xllamacpp"),
}


def table() -> str:
    """The shares of schemas that each enforces exactly, and where it admits an invalid instance, as Markdown."""
    kept = results("jsonschema")
    rows = {(row["who"], row["source"]): row for row in kept["rows"]}
    counts = {source: rows["toolgram exact", source]["schemas"] for source in _SOURCES}
    head = ["From schema to grammar", "Version"]
    for source, name in zip(_SOURCES, ("MaskBench", "official suite"), strict=True):
        head += [f"{name}: exact, % of {counts[source]:,}", "admits what is invalid, %"]
    lines = [head, ["---"] * len(head)]
    for who, (name, package) in _NAMES.items():
        shares = [f"{rows[who, source][key]:.1f}" for source in _SOURCES for key in ("all-correct %", "unsound %")]
        version = kept["versions"][package]
        lines.append([name, f"{'xllamacpp ' if package == 'xllamacpp' else ''}{version}", *shares])
    printed = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{printed}\n\n`{kept['command']}`, {kept['date']}."


def sentences() -> str:
    """What reading and forced tokens come to, in words, as Markdown."""
    reader = {
        who: " and ".join(f"{cost:.1f} µs at {n:,} tokens" for n, cost in costs) for who, costs in _ends().items()
    }
    rows = results("engine")["rows"]
    saved = 100 - 100 * sum(row["passes"] for row in rows) / sum(row["tokens"] for row in rows)
    return (
        f"- A token of a stream is read in {reader['toolgram']}; by transformers' parser in {reader['transformers']}; "
        f"by one that reads all text again in {reader['rereading']} (`{results('reader')['command']}`).\n"
        f"- Forced tokens save {saved:.0f} % of the forward passes of a call, over {len(rows)} calls "
        f"(`{results('engine')['command']}`)."
    )


def _ends() -> dict[str, list[tuple[int, float]]]:
    """The costs of reading the shortest answer and the longest one."""
    return {reader: [costs[0], costs[-1]] for reader, costs in reading_costs().items()}


DRAWN: dict[str, Callable[[], str]] = {
    **{name: (lambda source=source: exactness(source)) for source, (name, _) in _SOURCES.items()},
    "reading": reading,
    "passes": passes,
}

if __name__ == "__main__":
    print(f"\n{table()}\n\n{sentences()}\n")
