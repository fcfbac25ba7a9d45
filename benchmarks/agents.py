"""What grammars cost for the tools that agents offer: those of public MCP servers and coding agents, real templates.

Each set of conformance/tool_sets.jsonl with each of the templates (`_data.py` says where), in each dialect: processor
time of the plan and of the text, with a template that is known and tools that are not; the size of the text; and with
--engines whether the engine takes it, the time to its first mask, and whether it agrees with our own matcher.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import _peers  # noqa: F401 # pyright: ignore[reportUnusedImport] - makes the recognisers of the tests importable
import toolgram
from _common import clear_caches, show
from _data import folder

SHARED = folder()
DIALECTS = ("lark", "ebnf", "gbnf")
_ENGINES = {"lark": "llguidance", "ebnf": "XGrammar", "gbnf": "llama.cpp"}
FEW = (  # one for each way to write arguments: tags, elements, JSON, Python, delimiters of its own; open reasoning
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "GLM-4.6",
    "deepseek-ai-DeepSeek-V3.2",
    "MiniMax-M3",
    "Kimi-K3",
    "Qwen-Qwen3-0.6B",
    "openai-gpt-oss-120b",
    "LFM2-8B-A1B",
    "google-gemma-4-31B-it",
    "mistralai-Mistral-Nemo-Instruct-2407",
)
LARGEST_SET = 32
FIRST_MASK = 100  # milliseconds that it should take at most
NOW = datetime(2026, 1, 1)

Tool = Mapping[str, Any]
Sets = dict[str, list[Tool]]


class Cost(NamedTuple):
    """Of one set with one template in one dialect: processor seconds of plan and text, and the text's size.

    `refused`: what was said where there is no grammar.
    """

    tools: str
    offered: int
    template: str
    dialect: str
    plan: float
    text: float
    grammar: str
    refused: str = ""

    @property
    def both(self) -> float:
        """Plan and text."""
        return self.plan + self.text

    @property
    def per_tool(self) -> float:
        """Characters of text for each tool."""
        return len(self.grammar) / self.offered


def tool_sets(path: Path = SHARED / "conformance" / "tool_sets.jsonl") -> Sets:
    """The tools of each server, in OpenAI's shape."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["server"]: row["tools"] for row in rows}


def together(sets: Sets) -> list[Tool]:
    """All of them as one set, under names that differ."""
    return [
        {"type": "function", "function": {**tool["function"], "name": f"{server}_{tool['function']['name']}"[:64]}}
        for server, tools in sets.items()
        for tool in tools
    ]


def request(tools: Iterable[Tool]) -> dict[str, Any]:
    """A chat-completions body with these tools."""
    return {"messages": [{"role": "user", "content": "Have a look."}], "tools": list(tools)}


ONE_TOOL: list[Tool] = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what came out."""
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def costs(name: str, tools: Sequence[Tool], template: Path, dialects: Iterable[str]) -> Iterator[Cost]:
    """The cost of a set that is new, with a template that is known, in each dialect for itself."""
    known = toolgram.ChatTemplate.from_file(template)
    for dialect in dialects:
        clear_caches()
        cost("", ONE_TOOL, "", known, dialect)
        yield cost(name, tools, template.stem, known, dialect)


def cost(name: str, tools: Sequence[Tool], stem: str, template: toolgram.ChatTemplate, dialect: str) -> Cost:
    """The cost of a set, whatever is known of it."""
    gc.collect()  # what sets before this one left is not looked through in its time
    try:
        planning, plan = timed(lambda: toolgram.plan(request(tools), template, now=NOW))
        writing, text = timed(lambda: plan.constraint.grammar.to(dialect))
    except (toolgram.ToolgramError, ValueError) as error:
        return Cost(name, len(tools), stem, dialect, 0, 0, "", f"{type(error).__name__}: {error}"[:160])
    return Cost(name, len(tools), stem, dialect, planning, writing, text)


def one_more(tools: Sequence[Tool], template: Path, dialect: str) -> tuple[float, float]:
    """Processor seconds of the set with one tool more than is known, and of that tool alone."""
    known = toolgram.ChatTemplate.from_file(template)
    stem = template.stem
    clear_caches()
    cost("", tools[:-1], stem, known, dialect)
    more = cost("", tools, stem, known, dialect).both
    clear_caches()
    cost("", ONE_TOOL, stem, known, dialect)
    return more, cost("", tools[-1:], stem, known, dialect).both


def spread(values: Sequence[float], digits: int = 1) -> list[object]:
    """The median, the 95th percentile and the maximum."""
    if not values:
        return [None] * 3
    ordered = sorted(values)
    at = (statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], ordered[-1])
    return [round(value, digits) for value in at]


def show_costs(all_costs: Sequence[Cost], dialects: Sequence[str]) -> None:
    """Print the spread for each dialect, and what is worst."""
    small = [each for each in all_costs if each.offered <= LARGEST_SET and not each.refused]
    rows: list[list[object]] = []
    for dialect in dialects:
        of = [each for each in small if each.dialect == dialect]
        rows += [
            [dialect, "plan + text, ms", len(of), *spread([each.both * 1000 for each in of])],
            [dialect, "text alone, ms", len(of), *spread([each.text * 1000 for each in of])],
            [dialect, "characters a tool", len(of), *spread([each.per_tool for each in of], 0)],
            [dialect, "characters", len(of), *spread([float(len(each.grammar)) for each in of], 0)],
        ]
    head = ["dialect", "what", "grammars", "median", "95th", "max"]
    show(f"Sets of up to {LARGEST_SET} tools, processor time", head, rows)
    slow = sorted(small, key=lambda each: -each.both)[:6]
    large = sorted(small, key=lambda each: -len(each.grammar))[:4]
    worst = [
        [each.tools, each.template, each.dialect, each.plan * 1000, each.text * 1000, len(each.grammar)]
        for each in dict.fromkeys((*slow, *large))
    ]
    show("The slowest, and the largest", ["tools", "template", "dialect", "plan ms", "text ms", "characters"], worst)
    refused = Counter((each.template, each.refused) for each in all_costs if each.refused)
    if refused:
        show("Refused", ["template", "why", "times"], [[*what, times] for what, times in refused.most_common(10)])


def show_all_together(sets: Sets, templates: Sequence[Path], dialects: Sequence[str]) -> list[Cost]:
    """Print what all tools cost as one set, and one tool more on each set that is known."""
    many = together(sets)
    found = [each for path in templates for each in costs("all together", many, path, dialects)]
    rows = [
        [dialect, len(of := [each for each in found if each.dialect == dialect and not each.refused]),
         *spread([each.both * 1000 for each in of]), *spread([float(len(each.grammar)) for each in of], 0)]
        for dialect in dialects
    ]  # fmt: skip
    head = ["dialect", "grammars", "median ms", "95th", "max", "median characters", "95th", "max"]
    show(f"All {len(many)} tools as one set: plan + text", head, rows)
    show_one_more([tools for tools in sets.values() if len(tools) > LARGEST_SET // 2], templates, dialects[0])
    return found


def show_one_more(sets: Sequence[Sequence[Tool]], templates: Sequence[Path], dialect: str) -> None:
    """Print what one tool more costs on each set that is known, and with which templates most."""
    steps = {path.stem: [one_more(tools, path, dialect) for tools in sets] for path in templates}
    every = [step for of in steps.values() for step in of]
    if not every:
        return
    more, alone = map(sum, zip(*every, strict=True))
    ratios = spread([step / single for step, single in every], 2)
    print(f"\nOne tool more on a set that is known, {dialect}: {more / len(every) * 1000:.1f} ms,", end=" ")
    print(f"{more / alone:.1f} × that tool alone (median, 95th, max: {ratios}).")
    means = ([stem, *(statistics.mean(each) * 1000 for each in zip(*of, strict=True))] for stem, of in steps.items())
    rows = sorted(([stem, step, single, step / single] for stem, step, single in means), key=lambda row: -row[-1])
    show("Those with which it is most", ["template", "one more, ms", "alone, ms", "times"], rows[:8])
    print(f"With {rows[-1][0]} it is least: {rows[-1][-1]:.1f} times.")


def show_engines(found: Sequence[Cost]) -> None:
    """Print whether engines take the grammars, and the processor time to the first mask."""
    from _agent_engines import reading, vocabulary

    read = [(each, reading(each.dialect, each.grammar)) for each in found if not each.refused]
    rows: list[list[object]] = []
    for dialect in dict.fromkeys(each.dialect for each in found):
        of = [result for each, result in read if each.dialect == dialect]
        taken = [result.milliseconds for result in of if not result.refused]
        late = sum(each > FIRST_MASK for each in taken)
        rows.append([_ENGINES[dialect], len(of), len(of) - len(taken), *spread(taken), late])
    head = ["engine", "grammars", "refused", "median ms", "95th", "max", f"over {FIRST_MASK} ms"]
    show(f"Engines, {len(vocabulary())} tokens: the grammar read, and its first mask", head, rows)
    print("llama.cpp: the grammar read, no mask.")
    troubles = [
        [each.tools, each.template, _ENGINES[each.dialect], what.refused] for each, what in read if what.refused
    ]
    slow = sorted((pair for pair in read if not pair[1].refused), key=lambda pair: -pair[1].milliseconds)[:6]
    if troubles:
        show("Not taken", ["tools", "template", "engine", "what it said"], troubles[:20])
    rows = [[each.tools, each.template, _ENGINES[each.dialect], what.milliseconds] for each, what in slow]
    show("Slowest to a first mask", ["tools", "template", "engine", "ms"], rows)


def show_agreement(sets: Sets, templates: Sequence[Path], count: int) -> None:
    """Print how our matcher, llguidance and XGrammar agree on sentences and near misses, `count` of them in all."""
    from _agent_engines import disagreements, grammar_of, sentences

    rng = Random(7)
    each = max(1, count // (2 * len(sets) * len(templates)))
    asked, differing = 0, list[list[object]]()
    for path in templates:
        for name, tools in sets.items():
            grammar = grammar_of(tools, path, NOW)
            more, texts = disagreements(grammar, sentences(grammar, each, rng))
            asked += more
            differing += [[path.stem, name, repr(text)[:160]] for text in texts]
    print(f"\nOur matcher, llguidance and XGrammar were asked about {asked} texts and differ on {len(differing)}.")
    if differing:
        show("They differ", ["template", "tools", "text"], differing[:20])


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", choices=("few", "all"), default="few", help="eleven of them, or all")
    parser.add_argument("--only", default="", help="templates and tool sets with this in their name: TEMPLATE[/SET]")
    parser.add_argument("--dialect", action="append", choices=DIALECTS, help="this dialect; may be repeated")
    parser.add_argument("--limit", type=int, help="so many tool sets only")
    parser.add_argument("--engines", action="store_true", help="let the engines read the grammars")
    parser.add_argument("--agree", type=int, default=0, help="compare three recognisers on about so many texts")
    parser.add_argument("--no-all", action="store_true", help="without all tools as one set")
    chosen = parser.parse_args(arguments)
    if not (SHARED / "conformance" / "tool_sets.jsonl").exists():
        print(f"the tool sets are not there: {SHARED}/conformance/tool_sets.jsonl (TOOLGRAM_DATA names the folder)")
        return
    of_template, _, of_set = chosen.only.partition("/")
    every = sorted((SHARED / "templates").glob("*.jinja"))
    wanted = every if chosen.templates == "all" or of_template else [path for path in every if path.stem in FEW]
    templates = [path for path in wanted if of_template in path.stem]
    sets = {name: tools for name, tools in tool_sets().items() if of_set in name}
    sets = dict(list(sets.items())[: chosen.limit])
    dialects = chosen.dialect or DIALECTS
    found = [each for path in templates for name, tools in sets.items() for each in costs(name, tools, path, dialects)]
    show_costs(found, dialects)
    if not chosen.no_all:
        found += show_all_together(sets, templates, dialects)
    if chosen.engines:
        show_engines(found)
    if chosen.agree:
        show_agreement(sets, templates, chosen.agree)


if __name__ == "__main__":
    main(sys.argv[1:])
