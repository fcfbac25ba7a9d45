"""The embedded engine: what requests cost, compared with llama.cpp's own server, and what the grammar forces.

Times are in seconds; processor times count all threads of a side, and depend less on what else the machine does.
With --threads both use that many threads for everything; to compare what each does with one core, give 1.
Run: python benchmarks/engine.py [--tasks N] [--threads N] [text] [calls] [clients] [census]; or, each by its name
alone, for equality [--answers N], trace [--tasks N], same [--requests N], turns [--tokens N] [--model FILE] and memory
[--requests N], which take longer.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import toolgram
from _common import show
from _engine_census import census
from _engine_equality import equality
from _engine_memory import memory
from _engine_peers import CONTEXT, SLOTS, TEMPERATURE, Cost, ours
from _engine_same import same
from _engine_sides import Side, apart, here
from _engine_trace import trace
from _engine_turns import turns
from _results import keep
from _tool_tasks import Task, tasks
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.models.catalog import default_model

PARTS = ("text", "calls", "clients", "census")
LONG_PARTS = ("equality", "trace", "same", "turns", "memory")
CLIENTS = (1, 4, 16, 32)
BASE = "completion + GBNF"


def main() -> None:
    """Prints the tables."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = f"of {', '.join(PARTS)} (all if none is named), {', '.join(LONG_PARTS)}"
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, *LONG_PARTS, []], help=parts)
    parser.add_argument("--tasks", type=int, default=20, help="how many tasks; the census takes twice as many")
    parser.add_argument("--answers", type=int, default=200, help="how many answers are compared")
    parser.add_argument(
        "--requests", type=int, help="how many are asked three times (64), or the memory is watched over (10000)"
    )
    parser.add_argument("--tokens", type=int, default=6000, help="of the first turn of a long conversation")
    parser.add_argument("--model", type=Path, help="the file of another model for the long conversation")
    parser.add_argument("--threads", type=int, help="threads of both sides")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what the census found there")
    options = parser.parse_args()
    parts = set(options.parts or PARTS)
    model = default_model()
    template = toolgram.ChatTemplate.from_gguf(model)
    engine = LlamaCpp(model, context=CONTEXT, parallel=SLOTS, budget=SLOTS * CONTEXT, threads=options.threads)
    if parts & {"calls", "text", "clients"}:
        mine, theirs = here(ours(engine, template)), apart(model, options.threads)
        chosen = smallest(options.tasks)
        if "text" in parts:
            texts(mine, theirs, chosen)
        if "calls" in parts:
            calls(mine, theirs, chosen)
        if "clients" in parts:
            clients(mine, theirs, chosen)
    if "census" in parts:
        found = census(engine, template, smallest(2 * options.tasks))
        rows = [
            {"tokens": each.completion_tokens, "forced": each.forced_tokens, "passes": each.forward_passes}
            for each in found
        ]
        keep(options.json, f"python benchmarks/engine.py census --tasks {options.tasks}", rows)
    if "equality" in parts:
        equality(engine, template, options.answers)
    if "trace" in parts:
        trace(engine, template, smallest(options.tasks))
    if "memory" in parts:
        memory(engine, options.requests or 10_000)
    engine.close()
    if "same" in parts:
        same(model, options.requests or 64, options.threads)
    if "turns" in parts:
        turns(options.model or model, options.tokens, options.threads)
    print(f"\n{time.perf_counter() - began:.0f} seconds in all.")


def smallest(count: int) -> Sequence[Task]:
    """So many tasks, those with the fewest tools: reading long prompts costs everybody the same."""
    return sorted(tasks(), key=lambda task: len(task.tools))[:count]


def calls(mine: Side, theirs: Side, chosen: Sequence[Task]) -> None:
    """What a tool call costs: asked for the first time, and again."""
    who = {
        "toolgram": (mine, "call"),
        BASE: (theirs, "call"),
        "toolgram, as the chat layer": (mine, "required"),
        "llama.cpp chat, required": (theirs, "required"),
        "llama.cpp chat, auto": (theirs, "auto"),
    }
    pairs = {name: list[tuple[Cost, Cost]]() for name in who}
    for task in chosen:
        for name, (side, kind) in who.items():
            pairs[name].append((side.ask(kind, task), side.ask(kind, task)))
    rows = [_call_row(name, costs, pairs[BASE]) for name, costs in pairs.items()]
    head = ["who", "cold", "first token", "warm", "decoding", "passes", "calls", "× warm", "× decoding"]
    head += ["warm, processor", "decoding", "× warm", "× decoding"]
    show(f"A tool call: medians over {len(chosen)} tasks; × is against {BASE}", head, rows)
    print(f"\nThe chat layer's prompt is cold for the first of each; {BASE} is given its prompt and grammar.")
    same = [at for at, (one, _) in enumerate(pairs["toolgram"]) if one.text == pairs[BASE][at][0].text]
    if same:
        warm, decoding, cpu_warm, cpu_decoding = _times(
            *([pairs[name][at][1] for at in same] for name in ("toolgram", BASE))
        )
        print(f"Where both write the same text ({len(same)} of {len(chosen)} tasks): warm × {warm:.2f}, ", end="")
        print(f"decoding × {decoding:.2f}; by the processor × {cpu_warm:.2f} and × {cpu_decoding:.2f}.")


def _call_row(name: str, costs: Sequence[tuple[Cost, Cost]], base: Sequence[tuple[Cost, Cost]]) -> list[object]:
    warm, other = [cost for _, cost in costs], [cost for _, cost in base]
    if unread := sum(not cost.tokens for cost in warm):
        print(f"\n{name} ends with an error on {unread} of {len(warm)} tasks, and says nothing of their tokens.")
    read = [(cost, at) for cost, at in zip(warm, other, strict=True) if cost.tokens]
    warm, other = [cost for cost, _ in read], [at for _, at in read]
    cold = _median([cold.total for cold, _ in costs])
    if not read:
        return [name, cold, *[None] * 4, 0, *[None] * 6]
    times = _times(warm, other)
    return [
        name,
        cold,
        _median([cost.first for cost in warm]),
        _median([cost.total for cost in warm]),
        _median([cost.decode for cost in warm]),
        _median([cost.passes for cost in warm]),
        sum(cost.called for cost in warm),
        *times[:2],
        _median([cost.cpu_total for cost in warm]),
        _median([cost.cpu_decode for cost in warm]),
        *times[2:],
    ]


def _times(mine: Sequence[Cost], base: Sequence[Cost]) -> list[float]:
    """The whole request and its decoding against those of the base, by the clock, and both by the processor."""
    values: list[Callable[[Cost], float]] = [
        lambda cost: cost.total,
        lambda cost: cost.decode,
        lambda cost: cost.cpu_total,
        lambda cost: cost.cpu_decode,
    ]
    return [_ratio(list(map(value, mine)), list(map(value, base))) for value in values]


def texts(mine: Side, theirs: Side, chosen: Sequence[Task]) -> None:
    """What a text without a grammar costs, greedily and as the server samples one where nobody says how."""
    sides = {"toolgram": mine, "llama.cpp": theirs}
    rows: list[list[object]] = []
    for kind, temperature in (("text", 0), ("sampled", TEMPERATURE)):
        costs = {name: list[Cost]() for name in sides}
        for task in chosen:
            for name, side in sides.items():
                costs[name].append(side.ask(kind, task))
        speeds = {name: [(cost.tokens - 1) / cost.decode for cost in each] for name, each in costs.items()}
        thrift = {name: [(cost.tokens - 1) / cost.cpu_decode for cost in each] for name, each in costs.items()}
        for name in sides:
            row: list[object] = [name, temperature, _median([cost.first for cost in costs[name]])]
            for found in (speeds, thrift):
                row += [_median(found[name]), _ratio(found[name], found["llama.cpp"])]
            rows.append(row)
    show("Text without a grammar", ["who", "temperature", "first token", "tokens/s", "×", "per processor s", "×"], rows)


def clients(mine: Side, theirs: Side, chosen: Sequence[Task]) -> None:
    """Tokens a second of tool calls and of texts, from several at once; each question was asked before."""
    few = chosen[:: max(1, len(chosen) // 8)][:8]
    rows: list[list[object]] = []
    for kind in ("call", "text"):
        for side in (mine, theirs):
            side.at_once(kind, few, 1)
        for count in CLIENTS:
            work = [few[at % len(few)] for at in range(max(count, len(few)))]
            found = [side.at_once(kind, work, count) for side in (mine, theirs)]
            speeds = [sum(cost.tokens for cost in run.costs) / run.wall for run in found]
            thrift = [sum(cost.tokens for cost in run.costs) / run.cpu for run in found]
            firsts = [_median([cost.first for cost in run.costs]) for run in found]
            rows.append([kind, count, *speeds, speeds[0] / speeds[1], *thrift, thrift[0] / thrift[1], *firsts])
    head = ["what", "clients", "tokens/s", "llama.cpp", "×", "per processor s", "llama.cpp", "×", "first", "llama.cpp"]
    show("Many clients", head, rows)


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    main()
