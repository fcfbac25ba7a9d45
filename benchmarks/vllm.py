"""What toolgram costs in front of a vLLM, beside vLLM's own tool calling: one server, one template, one set of tasks.

Without --url a vLLM is started from the environment of `make test-vllm`, on the processor. One that runs already is to
have been started with --enable-auto-tool-choice, --tool-call-parser hermes, and --chat-template with the file that is
given here. The tasks are asked by turns, streamed, at temperature 0. vLLM has read each prompt before, so that no side
reads one for the other; `new` is the time to the first piece where tools are new, other columns are of what is asked
again.

    python benchmarks/vllm.py [--url URL] [--backend guidance] [--template FILE] [--tasks N] [--rounds N] [--clients N]
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import statistics
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from _common import end_in_order, show
from _server_peers import Server, running
from _tool_tasks import tasks
from _vllm_asks import KINDS, OUTCOMES, Answer, ask, at_once, body

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".vllm"
TURNS = 3  # of each of many clients

sys.path.append(str(ROOT / "tests"))
_real_vllm: Any = importlib.import_module("engines.real_vllm")


_ALONE = ["asked", "who", "new", "first piece", "95th", "whole", "95th", "tokens", "a token", "processor"]
_WHAT = ["asked", "who", "prompt tokens", "answers", *OUTCOMES]
_CROWD = ["asked", "clients", "who", "answers/s", "tokens/s", "first piece", "95th", "errors"]


@dataclass
class Side:
    """Who answers at an address, and what came: of new tools, and of those asked again."""

    name: str
    url: str
    new: list[Answer] = field(default_factory=list[Answer])
    again: list[Answer] = field(default_factory=list[Answer])
    spent: float | None = None
    """Seconds of toolgram's processor for an answer."""


def main() -> None:
    """Start what is not there, ask, and print the tables."""
    end_in_order()
    began = time.perf_counter()
    options = _options()
    if options.url is None and not (HOME / ".model").exists():
        print("There is no vLLM: `make .vllm/.model` installs one, or give the --url of one that runs.")
        return
    chosen = tasks()[:: len(tasks()) // options.tasks][: options.tasks]
    with _vllm(options) as url, running(_toolgram(options, url)) as ours:
        with urllib.request.urlopen(f"{url}/v1/models") as answer:  # noqa: S310 - the address is ours, or was given
            model: str = json.load(answer)["data"][0]["id"]
        other = next(task for task in tasks() if task not in chosen)
        for address in (url, ours.address):  # what is done once for a server is no cost of a question
            asyncio.run(ask(address, body("required", other, model)))
        asked = {kind: [body(kind, task, model) for task in chosen] for kind in options.kinds}
        found = {kind: _one_at_a_time(url, ours, bodies, options.rounds) for kind, bodies in asked.items()}
        _tell(found)
        rows = [
            row
            for clients in options.clients
            for kind, bodies in asked.items()
            for row in _crowd({"vLLM": url, "toolgram": ours.address}, kind, bodies, clients)
        ]
        show("Many at once: seconds", _CROWD, rows)
    print(f"\n{Path(model).name}, {options.backend}; {time.perf_counter() - began:.0f} seconds in all.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="of a vLLM that runs")
    parser.add_argument("--backend", choices=("xgrammar", "guidance"), default="xgrammar", help="of its grammars")
    parser.add_argument("--template", type=Path, default=Path(__file__).with_name("hermes.jinja"), metavar="FILE")
    parser.add_argument("--tasks", type=int, default=12, metavar="N", help="of the 54 that there are")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="in which they are asked again")
    parser.add_argument("--clients", type=int, nargs="*", default=[16], metavar="N", help="at once")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    return parser.parse_args()


@contextmanager
def _vllm(options: argparse.Namespace) -> Generator[str]:
    if options.url is not None:
        yield options.url.rstrip("/")
        return
    own = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--chat-template", str(options.template)]
    with _real_vllm.vllm(HOME, options.backend, own) as url:
        yield url


def _toolgram(options: argparse.Namespace, url: str) -> Sequence[str]:
    told = ["--chat-template", str(options.template), "--upstream-backend", options.backend]
    return [sys.executable, "-m", "toolgram", "serve", "--port", "0", "--upstream", url, *told]


def _one_at_a_time(url: str, ours: Server, bodies: Sequence[dict[str, Any]], rounds: int) -> Sequence[Side]:
    """Each body once, and again for some rounds; both sides by turns, now one first, now the other."""
    _, mine = sides = (Side("vLLM", url), Side("toolgram", ours.address))

    async def run() -> None:
        for asked in bodies:
            none = {"tool_choice": "none"} if "tools" in asked else {}
            await ask(url, {**asked, **none, "max_tokens": 1})
        for at, asked in enumerate(bodies):
            for side in sides if at % 2 else reversed(sides):
                side.new.append(await ask(side.url, asked))
        before = ours.worked()
        for at, asked in enumerate(bodies * rounds):
            for side in sides if at % 2 else reversed(sides):
                side.again.append(await ask(side.url, asked))
        mine.spent = (ours.worked() - before) / len(mine.again)

    asyncio.run(run())
    return sides


def _tell(found: Mapping[str, Sequence[Side]]) -> None:
    show("One at a time: milliseconds", _ALONE, [_alone(kind, side) for kind, sides in found.items() for side in sides])
    rows: list[list[object]] = []
    for kind, sides in found.items():
        for side in sides:
            answers = [*side.new, *side.again]
            counted = Counter(answer.outcome for answer in answers)
            read = sum(answer.prompt_tokens for answer in side.new)
            rows.append([kind, side.name, read, len(answers), *(counted[outcome] for outcome in OUTCOMES)])
    show("What came", _WHAT, rows)
    for kind, (theirs, mine) in found.items():
        pairs = [both for both in zip(theirs.again, mine.again, strict=True) if both[0].tokens == both[1].tokens]
        if pairs:
            ratio = statistics.median(ours.whole / other.whole for other, ours in pairs)
            print(f"\n{kind}: {len(pairs)} of {len(mine.again)} answers have as many tokens; toolgram's × {ratio:.2f}.")


def _alone(kind: str, side: Side) -> list[object]:
    new = statistics.median(answer.first for answer in side.new)
    first = _spread([answer.first for answer in side.again])
    whole = _spread([answer.whole for answer in side.again])
    several = [answer for answer in side.again if answer.tokens > 1]
    token = statistics.median((each.whole - each.first) / (each.tokens - 1) for each in several) if several else None
    times = [new, *first, *whole]
    tokens = statistics.median(answer.tokens for answer in side.again)
    each = [None if seconds is None else 1000 * seconds for seconds in (token, side.spent)]
    return [kind, side.name, *(1000 * seconds for seconds in times), round(tokens), *each]


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the 95th percentile."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def _crowd(
    addresses: Mapping[str, str], kind: str, bodies: Sequence[dict[str, Any]], clients: int
) -> Iterator[list[object]]:
    work = list(islice(cycle(bodies), clients * TURNS))
    for name, url in addresses.items():
        seconds, answers = at_once(url, work, clients)
        tokens = sum(answer.tokens for answer in answers)
        first = _spread([answer.first for answer in answers])
        errors = sum(answer.outcome == "error" for answer in answers)
        yield [kind, clients, name, len(answers) / seconds, tokens / seconds, *first, errors]


if __name__ == "__main__":
    main()
