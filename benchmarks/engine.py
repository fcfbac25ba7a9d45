"""The embedded engine: what the grammar forces, and what requests cost, beside llama.cpp's own server.

Times are in seconds; those of the processor count all threads, and do not depend on what else the machine does.
Run: python benchmarks/engine.py [--tasks N] [census] [calls] [text] [clients] [equality]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence

import toolgram
from _common import show
from _engine_census import census
from _engine_equality import equality
from _engine_peers import CONTEXT, SLOTS, Ask, Cost, at_once, llama_cpp, ours
from _tool_tasks import Task, tasks
from toolgram.engines.llama_cpp import LlamaCpp
from toolgram.engines.models import default_model

PARTS = ("census", "calls", "text", "clients", "equality")
CLIENTS = (1, 4, 16, 32)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument(
        "--tasks", type=int, default=20, help="how many tasks; the census takes twice as many, at most 54"
    )
    options = parser.parse_args()
    parts = options.parts or PARTS
    model = default_model()
    template = toolgram.ChatTemplate.from_gguf(model)
    engine = LlamaCpp(model, context=CONTEXT, parallel=SLOTS)
    chosen = tasks()[:: max(1, len(tasks()) // options.tasks)][: options.tasks]
    if "census" in parts:
        census(engine, template, tasks()[: 2 * options.tasks])
    if {"calls", "text", "clients"} & set(parts):
        mine, theirs = ours(engine, template), llama_cpp(model, template)
        if "calls" in parts:
            calls(mine, theirs, chosen)
        if "text" in parts:
            texts(mine, theirs, chosen)
        if "clients" in parts:
            clients(mine, theirs, chosen)
    if "equality" in parts:
        equality(engine, template, 10 * options.tasks)
    engine.close()


def calls(mine: Mapping[str, Ask], theirs: Mapping[str, Ask], chosen: Sequence[Task]) -> None:
    """What a tool call costs: asked for the first time, and again."""
    who = {
        "toolgram": mine["call"],
        "completion + GBNF": theirs["call"],
        "llama.cpp chat, required": theirs["required"],
        "llama.cpp chat, auto": theirs["auto"],
    }
    pairs = {name: [(ask(task), ask(task)) for task in chosen] for name, ask in who.items()}
    base = pairs["completion + GBNF"]
    rows = [
        [
            name,
            _median([cold.total for cold, _ in costs]),
            _median([warm.first for _, warm in costs]),
            _median([warm.total for _, warm in costs]),
            _median([warm.cpu_total for _, warm in costs]),
            _median([warm.decode for _, warm in costs]),
            _median([warm.passes for _, warm in costs]),
            _ratio([warm.cpu_total for _, warm in costs], [warm.cpu_total for _, warm in base]),
            _ratio([warm.decode for _, warm in costs], [warm.decode for _, warm in base]),
            sum(warm.called for _, warm in costs),
        ]
        for name, costs in pairs.items()
    ]
    head = ["who", "cold", "first token", "warm", "warm, processor", "decoding, processor", "passes"]
    head += ["× warm", "× decoding", "calls"]
    show(f"A tool call: medians over {len(chosen)} tasks; × is against completion + GBNF", head, rows)
    mismatched = sum(one.text != two.text for (_, one), (_, two) in zip(pairs["toolgram"], base, strict=True))
    print(f"\n{mismatched} of {len(chosen)} calls of toolgram have another text than completion + GBNF.")


def texts(mine: Mapping[str, Ask], theirs: Mapping[str, Ask], chosen: Sequence[Task]) -> None:
    """What a text without a grammar costs."""
    costs = {
        name: [asks["text"](task) for task in chosen] for name, asks in (("toolgram", mine), ("llama.cpp", theirs))
    }
    speeds = {name: [_speed(cost) for cost in each] for name, each in costs.items()}
    rows = [
        [name, _median([cost.first for cost in costs[name]]), _median(speed), _ratio(speed, speeds["llama.cpp"])]
        for name, speed in speeds.items()
    ]
    show("Text without a grammar", ["who", "first token", "tokens per processor second", "×"], rows)


def clients(mine: Mapping[str, Ask], theirs: Mapping[str, Ask], chosen: Sequence[Task]) -> None:
    """Tokens a second of tool calls and of texts, from several at once; each has asked before."""
    rows: list[list[object]] = []
    for kind in ("call", "text"):
        for count in CLIENTS:
            work = [chosen[at % len(chosen)] for at in range(max(count, len(chosen)))]
            found = [at_once(asks[kind], work, count) for asks in (mine, theirs)]
            speeds = [sum(cost.tokens for cost in costs) / wall for costs, wall, _ in found]
            firsts = [_median([cost.first for cost in costs]) for costs, _, _ in found]
            thrift = [sum(cost.tokens for cost in costs) / cpu for costs, _, cpu in found]
            rows.append([kind, count, *speeds, speeds[0] / speeds[1], *thrift, thrift[0] / thrift[1], *firsts])
    head = ["what", "clients", "tokens/s", "llama.cpp", "×", "per processor s", "llama.cpp", "×", "first", "llama.cpp"]
    show("Many clients", head, rows)


def _speed(cost: Cost) -> float:
    return (cost.tokens - 1) / cost.decode


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    main()
