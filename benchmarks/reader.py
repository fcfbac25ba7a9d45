"""What reading costs for each token fed, in microseconds; it must not grow with the length of the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import _peers as peers
import toolgram
from _common import STYLES, median, show
from _outputs import cut, cutter, output, plan_for
from toolgram.events import Event

LENGTHS = (2_000, 10_000, 100_000)
REREAD_MOST = 10_000  # tokens; beyond it, reading everything again at each token takes minutes

Read = Callable[[Sequence[str]], object]


def read(plan: toolgram.Plan, pieces: Sequence[str]) -> list[Event]:
    """All events of a fresh reader, fed piece by piece."""
    reader = plan.reader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.finish()


def read_by_transformers(pieces: Sequence[str]) -> dict[str, object]:
    """The message of a fresh parser of transformers, fed piece by piece."""
    parser = peers.transformers_parser()
    for piece in pieces:
        parser.feed(piece)
    message, _ = parser.finalize()
    return message


def read_by_rereading(pieces: Sequence[str]) -> list[str]:
    """What the parser that reads all text again at every piece tells."""
    told: list[str] = []
    peers.reread(pieces, told.append)
    return told


def row(read: Read, style: str, lengths: Sequence[int], seconds: float) -> list[float | None]:
    """Microseconds a token at each length, and how many times the first the last is."""
    plan = plan_for(style)
    costs: list[float] = []
    for length in lengths:
        pieces = cut(output(plan, length))
        costs.append(median(lambda pieces=pieces: read(pieces), seconds) / len(pieces) * 1e6)
    return [*costs, *[None] * (len(LENGTHS) - len(costs)), costs[-1] / costs[0]]


def main() -> None:
    """Print the table."""
    bearable = [length for length in LENGTHS if length <= REREAD_MOST]
    rows: list[list[object]] = []
    for style in STYLES:
        plan = plan_for(style)
        rows.append(["toolgram", style, *row(lambda pieces, plan=plan: read(plan, pieces), style, LENGTHS, 0.7)])
    rows.append(["transformers, ResponseParser", "long", *row(read_by_transformers, "long", LENGTHS, 0.7)])
    rows.append(["regular expressions over all text", "long", *row(read_by_rereading, "long", bearable, 0.7)])
    head = ["reader", "style", *(f"{length:,} tokens" for length in LENGTHS), "last ÷ first"]
    show(f"Reading half text, half a call's long argument, in {cutter()}: median µs a token", head, rows)
    print("\ntransformers: its streaming parser with a response template; arguments are parsed when the call closes.")
    print("regular expressions over all text: at every token, in the way of vLLM's hermes parser, rewritten in short.")


if __name__ == "__main__":
    main()
