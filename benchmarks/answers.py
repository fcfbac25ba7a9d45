"""How many answers are right: `toolgram serve` at its defaults, compared with llama.cpp's own server, on BFCL v4.

Each question of the Berkeley function calling leaderboard goes as a plain client would send it (messages, tools,
tool_choice, max_tokens; no style, nothing of parallel calls) to both servers, with the same model, by turns. An answer
is right if its calls are those that BFCL expects, in the sense of its own checker; with `auto` and a question that no
tool answers, if there is no call. An error is wrong. Whether one side is better is decided by the exact test on the
questions that only one of them has right, at 95 %.

With no arguments, 10 questions of each cell are asked at temperature 0: the figures that goals are set by come from
`--questions 60`. `--sampled` asks each again at the default temperature of a server, with a fixed seed.
The data come from the wheel of bfcl-eval, which pip fetches once; Qwen2.5-Coder-0.5B-Instruct takes part if its file
exists. `--check-comparison` compares the verdicts with BFCL's checker, and asks no model.
Run: python benchmarks/answers.py [--model smollm2] [--cell required/simple] [--side toolgram] [--wrong] …
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any

from _answers_bfcl import Question, questions, wheel
from _answers_check import check
from _answers_sides import HERMES, SIDES, answering
from _answers_tables import Marked, marked, tell, tell_worse, tell_wrong
from _common import end_in_order
from _engine_peers import WITH_TOOLS
from toolgram.models.catalog import cache_folder, default_model

CELLS = {
    "required/simple": ("required", "simple_python"),
    "required/multiple": ("required", "multiple"),
    "required/parallel": ("required", "parallel"),
    "auto/simple": ("auto", "simple_python"),
    "auto/irrelevance": ("auto", "irrelevance"),
}
MODELS = ("smollm2", "qwen")
QWEN = "qwen2.5-coder-0.5b-instruct.gguf"
QWEN_SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
LONGEST = 256  # tokens of an answer, so that one that runs away ends
SEED = 1


@dataclass(frozen=True)
class Model:
    """A file, and the templates that llama.cpp is given for each tool choice, where the model's own knows no tools."""

    name: str
    file: Path
    templates: Mapping[str, str] = field(default_factory=dict[str, str])


def main() -> None:
    """Ask, and print the tables."""
    end_in_order()
    options = _options()
    if options.check_comparison:
        check(wheel(options.bfcl))
        return
    began = time.perf_counter()
    found: list[Marked] = []
    for model, of_model in groupby(_shown(options.show) if options.show else _asked(options), lambda one: one.model):
        new = list(of_model)
        found += new
        if options.json:  # what there is, should the next model not come to an end
            options.json.write_text(json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8")
        if options.wrong:
            tell_wrong(new)
        tell(model, new)
    tell_worse(found)
    print(f"\n{time.perf_counter() - began:.0f} seconds in all.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, choices in (("model", MODELS), ("cell", tuple(CELLS)), ("side", SIDES)):
        parser.add_argument(f"--{name}", action="append", choices=choices, help="may be repeated; default: all")
    parser.add_argument("--questions", type=int, default=10, metavar="N", help="the first N of each cell")
    parser.add_argument("--sampled", action="store_true", help="also at the default temperature of a server")
    parser.add_argument("--style", metavar="NAME", help="of toolgram's requests; default: they do not say")
    parser.add_argument("--profile", metavar="FILE|none", help="of toolgram's server; default: its own")
    parser.add_argument("--parallel-tool-calls", choices=("true", "false"), help="default: requests do not say")
    parser.add_argument(
        "--parallel-tool-bias", type=float, action="append", metavar="N", help="of toolgram's requests; may be repeated"
    )
    parser.add_argument("--bfcl", type=Path, metavar="WHEEL", help="of bfcl-eval")
    parser.add_argument("--qwen", type=Path, metavar="FILE", help=f"{QWEN}, of which there is one only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="ask nobody: print what such a file contains")
    parser.add_argument("--wrong", action="store_true", help="print the wrong answers")
    parser.add_argument("--check-comparison", action="store_true", help="compare the verdicts with BFCL's checker")
    return parser.parse_args()


def _shown(file: Path) -> list[Marked]:
    return [Marked(**one) for one in json.loads(file.read_text(encoding="utf-8"))]


def _asked(options: argparse.Namespace) -> Iterator[Marked]:
    file = wheel(options.bfcl)
    print(f"{options.questions} questions of each cell, of {file.name}")
    for model in _models(options):
        with ExitStack() as stack:
            asks = {
                side: stack.enter_context(answering(side, model.file, model.templates, options.profile))
                for side in options.side or SIDES
            }
            temperatures = ("0", "default")[: 1 + options.sampled]
            for cell, temperature, own in product(options.cell or CELLS, temperatures, _own(options)):
                bias = own.get("parallel_tool_bias")
                name = cell if bias is None else f"{cell}, bias {bias:g}"
                print(f"{model.name} {name}, temperature {temperature} …", file=sys.stderr)
                chosen = questions(file, CELLS[cell][1], options.questions)
                for question, (side, ask) in product(chosen, asks.items()):
                    body = request(question, CELLS[cell][0], temperature, options.parallel_tool_calls)
                    more = own if side == "toolgram" else {}
                    yield marked((model.name, name, temperature, side), question, ask({**body, **more}))


def _own(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What toolgram alone is sent: each bias towards another call, with the style."""
    style = {"style": options.style} if options.style else {}
    return [
        style if bias is None else {**style, "parallel_tool_bias": bias}
        for bias in options.parallel_tool_bias or [None]
    ]


def request(question: Question, choice: str, temperature: str, parallel: str | None) -> dict[str, Any]:
    """What both servers are sent."""
    body = {"messages": question.messages, "tools": question.tools, "tool_choice": choice, "max_tokens": LONGEST}
    told = {"temperature": 0} if temperature == "0" else {"seed": SEED}
    return {**body, **told, **({} if parallel is None else {"parallel_tool_calls": parallel == "true"})}


def _models(options: argparse.Namespace) -> Iterator[Model]:
    chosen = options.model or MODELS
    if "smollm2" in chosen:
        yield Model("smollm2", default_model(), {"required": WITH_TOOLS, "auto": HERMES})
    qwen = options.qwen or cache_folder().with_name("toolgram-dev") / QWEN
    if "qwen" in chosen and _is_qwen(qwen):
        yield Model("qwen", qwen)


def _is_qwen(file: Path) -> bool:
    if not file.is_file():
        print(f"{QWEN} is not there: give --qwen FILE; its rows are left out.")
        return False
    with file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != QWEN_SHA256:
            sys.exit(f"{file} is not the file that was measured: its sha256 is another one")
    return True


if __name__ == "__main__":
    main()
