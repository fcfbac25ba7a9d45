"""What reading costs for each token fed, in microseconds; it must not grow with the length of the output."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import _peers as peers
import toolgram
from _common import CHATML, median, show
from _outputs import cut, cutter, output, plan_for
from _results import keep
from toolgram.conversation.events import Event
from toolgram.errors import TemplateError
from toolgram.styles.response_template.write import response_template

LENGTHS = (2_000, 10_000, 100_000)
SECONDS = 0.3
PEER_MOST = 10_000  # tokens: parsers that read everything again take minutes beyond it

Read = Callable[[Sequence[str]], object]


def read(plan: toolgram.Plan, pieces: Sequence[str]) -> list[Event]:
    """All events of a fresh reader, fed piece by piece."""
    reader = plan.reader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.finish()


def read_by_transformers(template: Any, pieces: Sequence[str]) -> dict[str, object]:
    """The message of a fresh parser of transformers, fed piece by piece."""
    parser = peers.transformers_parser(template)
    for piece in pieces:
        parser.feed(piece)
    message, _ = parser.finalize()
    return message


def read_by_rereading(pieces: Sequence[str]) -> list[str]:
    """What the parser that reads all text again at every piece tells."""
    told: list[str] = []
    peers.reread(pieces, told.append)
    return told


def described(plan: toolgram.Plan) -> dict[str, Any] | None:
    """The style of a plan as a response template, None where that format cannot express it."""
    try:
        return response_template(plan.style, CHATML)
    except TemplateError:
        return None


def costs(read: Read, style: str, lengths: Sequence[int], seconds: float) -> list[float]:
    """Microseconds a token at each length."""
    plan = plan_for(style)
    measured: list[float] = []
    for length in lengths:
        pieces = cut(output(plan, length))
        measured.append(median(lambda pieces=pieces: read(pieces), seconds) / len(pieces) * 1e6)
    return measured


def row(style: str, lengths: Sequence[int], seconds: float) -> list[float | None]:
    """What a style costs here at each length, how many times the first the last is, and what it costs transformers."""
    plan = plan_for(style)
    ours = costs(lambda pieces: read(plan, pieces), style, lengths, seconds)
    short = [length for length in lengths if length <= PEER_MOST]
    template = described(plan)
    if template is None:
        return [*ours, ours[-1] / ours[0], *[None] * len(short)]
    return [*ours, ours[-1] / ours[0], *costs(lambda pieces: read_by_transformers(template, pieces), style, short, 0)]


def kept_rows(rows: Sequence[Sequence[object]], again: Sequence[float]) -> list[dict[str, object]]:
    """Microseconds a token by reader, style and length."""
    short = [length for length in LENGTHS if length <= PEER_MOST]
    kept: list[dict[str, object]] = []
    for style, *costs in rows:
        told = [("toolgram", *pair) for pair in zip(LENGTHS, costs, strict=False)]
        told += [("transformers", *pair) for pair in zip(short, costs[-len(short) :], strict=True)]
        kept += [{"reader": who, "style": style, "tokens": n, "µs": cost} for who, n, cost in told if cost is not None]
    return kept + [
        {"reader": "rereading", "style": "long", "tokens": n, "µs": cost} for n, cost in zip(short, again, strict=True)
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured there")
    options = parser.parse_args()
    rows: list[list[object]] = [[style, *row(style, LENGTHS, SECONDS)] for style in toolgram.style_names()]
    short = [length for length in LENGTHS if length <= PEER_MOST]
    head = ["style", *(f"{length:,} tokens" for length in LENGTHS), "last ÷ first"]
    head += [f"transformers, {length:,}" for length in short]
    show(f"Reading half text, half a call's long argument, in {cutter()}: median µs a token", head, rows)
    again = costs(read_by_rereading, "long", short, SECONDS)
    peer = ["regular expressions over all text, long", *again]
    show("At every token, in the way of vLLM's hermes parser, rewritten in short", ["peer", *head[1:3]], [peer])
    keep(options.json, "python benchmarks/reader.py", kept_rows(rows, again))
    print("\ntransformers: its streaming parser, with the response template that toolgram writes of the style,")
    print("if it can be expressed; it parses arguments when the call closes.")


if __name__ == "__main__":
    main()
