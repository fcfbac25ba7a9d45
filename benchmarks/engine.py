"""The embedded engine: what requests cost, beside llama.cpp's own server, and what the grammar forces.

Times are in seconds; those of the processor count all threads, and depend less on what else the machine does.
Run: python benchmarks/engine.py [--tasks N] [text] [calls] [clients] [census]; or, each by its name alone, for
equality [--answers N] and memory [--requests N], which take longer.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence

import toolgram
from _common import show
from _engine_census import census
from _engine_equality import equality
from _engine_memory import memory
from _engine_peers import CONTEXT, SLOTS, Ask, Cost, at_once, llama_cpp, ours
from _tool_tasks import Task, tasks
from toolgram.engines.llama_cpp import LlamaCpp
from toolgram.engines.models import default_model

PARTS = ("text", "calls", "clients", "census")
LONG_PARTS = ("equality", "memory")
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
    parser.add_argument("--requests", type=int, default=10_000, help="how many requests the memory is watched over")
    options = parser.parse_args()
    parts = set(options.parts or PARTS)
    model = default_model()
    template = toolgram.ChatTemplate.from_gguf(model)
    engine = LlamaCpp(model, context=CONTEXT, parallel=SLOTS, budget=SLOTS * CONTEXT)
    if parts & {"calls", "text", "clients"}:
        mine, theirs = ours(engine, template), llama_cpp(model, template)
        chosen = smallest(options.tasks)
        if "text" in parts:  # before the prompts of calls are kept: each one that is costs every pass a little
            texts(mine, theirs, chosen)
        if "calls" in parts:
            calls(mine, theirs, chosen)
        if "clients" in parts:
            clients(mine, theirs, chosen)
    if "census" in parts:
        census(engine, template, smallest(2 * options.tasks))
    if "equality" in parts:
        equality(engine, template, options.answers)
    if "memory" in parts:
        memory(engine, options.requests)
    engine.close()
    print(f"\n{time.perf_counter() - began:.0f} seconds in all.")


def smallest(count: int) -> Sequence[Task]:
    """So many tasks, those with the fewest tools: reading long prompts costs everybody the same."""
    return sorted(tasks(), key=lambda task: len(task.tools))[:count]


def calls(mine: Mapping[str, Ask], theirs: Mapping[str, Ask], chosen: Sequence[Task]) -> None:
    """What a tool call costs: asked for the first time, and again."""
    who = {
        "toolgram": mine["call"],
        BASE: theirs["call"],
        "toolgram, as the chat layer": mine["required"],
        "llama.cpp chat, required": theirs["required"],
        "llama.cpp chat, auto": theirs["auto"],
    }
    pairs = {name: list[tuple[Cost, Cost]]() for name in who}
    for task in chosen:
        for name, ask in who.items():
            pairs[name].append((ask(task), ask(task)))
    rows = [_call_row(name, costs, pairs[BASE]) for name, costs in pairs.items()]
    head = ["who", "cold", "first token", "warm", "warm, processor", "decoding, processor", "passes", "calls"]
    head += ["× warm", "× decoding"]
    show(f"A tool call: medians over {len(chosen)} tasks; × is against {BASE}", head, rows)
    print(f"\nThe chat layer's prompt is cold for the first of each; {BASE} is given its prompt and grammar.")
    same = [at for at, (one, _) in enumerate(pairs["toolgram"]) if one.text == pairs[BASE][at][0].text]
    if same:
        alike = [[pairs[name][at][1] for at in same] for name in ("toolgram", BASE)]
        print(f"Where both write the same text ({len(same)} of {len(chosen)} tasks): {_times(*alike)}.")


def _call_row(name: str, costs: Sequence[tuple[Cost, Cost]], base: Sequence[tuple[Cost, Cost]]) -> list[object]:
    warm, other = [cost for _, cost in costs], [cost for _, cost in base]
    if unread := sum(not cost.tokens for cost in warm):
        print(f"\n{name} ends with an error on {unread} of {len(warm)} tasks, and says nothing of their tokens.")
    read = [(cost, at) for cost, at in zip(warm, other, strict=True) if cost.tokens]
    warm, other = [cost for cost, _ in read], [at for _, at in read]
    if not read:
        return [name, _median([cold.total for cold, _ in costs]), *[None] * 5, 0, None, None]
    return [
        name,
        _median([cold.total for cold, _ in costs]),
        _median([cost.first for cost in warm]),
        _median([cost.total for cost in warm]),
        _median([cost.cpu_total for cost in warm]),
        _median([cost.decode for cost in warm]),
        _median([cost.passes for cost in warm]),
        sum(cost.called for cost in warm),
        _ratio([cost.cpu_total for cost in warm], [cost.cpu_total for cost in other]),
        _ratio([cost.decode for cost in warm], [cost.decode for cost in other]),
    ]


def _times(mine: Sequence[Cost], base: Sequence[Cost]) -> str:
    warm = _ratio([cost.cpu_total for cost in mine], [cost.cpu_total for cost in base])
    decoding = _ratio([cost.decode for cost in mine], [cost.decode for cost in base])
    return f"warm × {warm:.2f}, decoding × {decoding:.2f}"


def texts(mine: Mapping[str, Ask], theirs: Mapping[str, Ask], chosen: Sequence[Task]) -> None:
    """What a text without a grammar costs."""
    asks = {"toolgram": mine["text"], "llama.cpp": theirs["text"]}
    costs = {name: list[Cost]() for name in asks}
    for task in chosen:
        for name, ask in asks.items():
            costs[name].append(ask(task))
    speeds = {name: [(cost.tokens - 1) / cost.decode for cost in each] for name, each in costs.items()}
    rows = [
        [name, _median([cost.first for cost in costs[name]]), _median(speed), _ratio(speed, speeds["llama.cpp"])]
        for name, speed in speeds.items()
    ]
    show("Text without a grammar", ["who", "first token", "tokens per processor second", "×"], rows)


def clients(mine: Mapping[str, Ask], theirs: Mapping[str, Ask], chosen: Sequence[Task]) -> None:
    """Tokens a second of tool calls and of texts, from several at once; each question was asked before."""
    few = chosen[:: max(1, len(chosen) // 8)][:8]
    rows: list[list[object]] = []
    for kind in ("call", "text"):
        for ask in (mine[kind], theirs[kind]):
            at_once(ask, few, 1)
        for count in CLIENTS:
            work = [few[at % len(few)] for at in range(max(count, len(few)))]
            found = [at_once(asks[kind], work, count) for asks in (mine, theirs)]
            speeds = [sum(cost.tokens for cost in costs) / wall for costs, wall, _ in found]
            firsts = [_median([cost.first for cost in costs]) for costs, _, _ in found]
            thrift = [sum(cost.tokens for cost in costs) / cpu for costs, _, cpu in found]
            rows.append([kind, count, *speeds, speeds[0] / speeds[1], *thrift, thrift[0] / thrift[1], *firsts])
    head = ["what", "clients", "tokens/s", "llama.cpp", "×", "per processor s", "llama.cpp", "×", "first", "llama.cpp"]
    show("Many clients", head, rows)


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    main()
