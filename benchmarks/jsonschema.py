"""How exact schema to grammar is, for toolgram and for peers, over schemas with valid and invalid instances.

By default over a sample of MaskBench and the official test suite (`_data.py` says where); or over files and folders in
their form: JSON (or one object a line) with `schema` and `tests`, each of `valid` and `data`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from _common import show
from _results import keep
from _schema_cases import DEFAULT_FILES, Case, load
from _schema_contestants import MODES, OURS, PEERS, READERS, Contestant, Outcome, Reader, judge
from _schema_pool import Lost, run
from _schema_tables import HEAD, Agreement, Outcomes, agreement, refusals, score, score_row, times, wrong_verdicts
from _schema_walks import Walked, walk
from toolgram.schema import Mode

SHOWN = 20
_WALKED = {"matcher": "our matcher", "lark": "llguidance", "ebnf": "XGrammar", "gbnf": "llama.cpp"}
MASKBENCH, SUITE = (path.stem for path in DEFAULT_FILES)


class Results(NamedTuple):
    """The cases, and what became of them for each contestant.

    Engines read our grammars of every nth case: in exact mode, and in relaxed mode where exact mode refuses the case.
    """

    cases: list[Case]
    exact: Outcomes
    relaxed: Outcomes
    peers: dict[str, Outcomes]
    read: list[Case]
    read_exact: dict[Reader, Outcomes]
    refused: list[Case]
    read_relaxed: dict[Reader, Outcomes]

    def contestants(self) -> dict[str, Outcomes]:
        """Who is compared."""
        return {"toolgram exact": self.exact, "toolgram relaxed": self.relaxed, **self.peers}


def judge_all(cases: list[Case], jobs: int, seconds: float, every: int) -> Results:
    """Let everybody convert every schema, and judge its instances."""

    def outcomes(contestants: Sequence[Contestant], of: Sequence[Case]) -> list[Outcomes]:
        found = run([(who, case) for who in contestants for case in of], judge, jobs, seconds)
        return [found[at * len(of) : (at + 1) * len(of)] for at in range(len(contestants))]

    def readings(mode: Mode, of: list[int], by_matcher: Outcomes) -> dict[Reader, Outcomes]:
        engines: list[Reader] = [reader for reader in READERS if reader != "matcher"]
        found = outcomes([OURS[mode, reader] for reader in engines], [cases[at] for at in of])
        return {"matcher": [by_matcher[at] for at in of], **dict[Reader, Outcomes](zip(engines, found, strict=True))}

    exact, relaxed, *peers = outcomes([OURS["exact", "matcher"], OURS["relaxed", "matcher"], *PEERS], cases)
    read = list(range(0, len(cases), every))
    refused = [at for at in read if isinstance(each := exact[at], Lost) or each.refusal is not None]
    return Results(
        cases,
        exact,
        relaxed,
        {who.name: each for who, each in zip(PEERS, peers, strict=True)},
        [cases[at] for at in read],
        readings("exact", read, exact),
        [cases[at] for at in refused],
        readings("relaxed", refused, relaxed),
    )


def show_scores(results: Results) -> None:
    """Print a table of verdicts for each source of cases."""
    for source in dict.fromkeys(case.source for case in results.cases):
        chosen = [at for at, case in enumerate(results.cases) if case.source == source]
        cases = [results.cases[at] for at in chosen]
        rows = [score_row(name, cases, [each[at] for at in chosen]) for name, each in results.contestants().items()]
        show(f"{source}: {len(cases)} schemas, {sum(len(case.instances) for case in cases)} instances", HEAD, rows)
    print("\nall-correct: compiled, every valid instance accepted in some spelling, every invalid one rejected.")
    print("except format: the same, where instances that `format` alone forbids (by jsonschema-rs) do not count.")
    print("of it by format: nothing else unsound was accepted.")
    print("Times: from schema to grammar object (llama.cpp: to text).")


def score_rows(results: Results) -> list[dict[str, object]]:
    """What `show_scores` prints, as values by the names of the columns."""
    rows: list[dict[str, object]] = []
    for source in dict.fromkeys(case.source for case in results.cases):
        chosen = [at for at, case in enumerate(results.cases) if case.source == source]
        cases = [results.cases[at] for at in chosen]
        for name, each in results.contestants().items():
            row = score_row(name, cases, [each[at] for at in chosen])
            rows.append({"source": source, **dict(zip(HEAD, row, strict=True))})
    return rows


def show_goals(results: Results) -> None:
    """Print what was aimed at beside what is."""

    sources = {case.source for case in results.cases}
    rows: list[list[object]] = []
    for source, who, outcomes, least in (
        (MASKBENCH, "exact", results.exact, 97.5),
        (MASKBENCH, "relaxed", results.relaxed, 98.5),
        (SUITE, "exact", results.exact, 75.0),
    ):
        if source not in sources:
            continue
        chosen = [at for at, case in enumerate(results.cases) if case.source == source]
        made = score([results.cases[at] for at in chosen], [outcomes[at] for at in chosen])
        right, unsound = made.percent(made.all_correct), made.percent(made.unsound)
        aside = made.percent(made.except_format), made.percent(made.unsound - made.by_format)
        rows.append([f"{source}, {who}: all-correct ≥ {least} %", right, aside[0], _met(right >= least)])
        if (source, who) == (MASKBENCH, "exact"):
            rows.append([f"{source}, {who}: unsound 0 %", unsound, aside[1], _met(unsound == 0)])
    engines = [each for read in (results.read_exact, results.read_relaxed) for each in list(read.values())[1:]]
    ours = [results.exact, results.relaxed, *engines]
    hung = sum(isinstance(each, Lost) and each.how == "hung" for outcomes in ours for each in outcomes)
    rows.append(["toolgram hangs, its dialects included: 0", hung, None, _met(hung == 0)])
    show("Goals", ["goal", "is", "except format", "met"], rows)


def _met(yes: bool) -> str:
    return "yes" if yes else "no"


def show_engines(results: Results) -> None:
    """Print what it takes to come from a schema to what an engine reads, in toolgram's way and in the engine's own."""
    pairs: tuple[tuple[str, Reader, str], ...] = (
        ("llguidance, a parser", "lark", "llguidance"),
        ("XGrammar, a grammar", "ebnf", "XGrammar"),
        ("llama.cpp, GBNF", "gbnf", "llama.cpp"),
    )
    read = {id(case) for case in results.read}
    rows: list[list[object]] = []
    for what, reader, peer in pairs:
        own = [each for case, each in zip(results.cases, results.peers[peer], strict=True) if id(case) in read]
        for who, outcomes in ((f"toolgram, {reader}", results.read_exact[reader]), (f"{peer} itself", own)):
            lost = Counter(each.how for each in outcomes if isinstance(each, Lost))
            rows.append([what, who, *times(outcomes), lost["hung"], lost["died"]])
    head = ["from schema to", "who", "p50 ms", "p95 ms", "max ms", "hung", "died"]
    show("Conversion for an engine, exact mode", head, rows)


def show_agreement(results: Results) -> None:
    """Print whether our matcher and the engines agree on our grammars."""
    exact = agreement(results.read, results.read_exact)
    relaxed = agreement(results.refused, results.read_relaxed)
    both = Agreement(
        exact.same + relaxed.same,
        exact.alike + relaxed.alike,
        exact.total + relaxed.total,
        exact.differing + relaxed.differing,
        exact.unread + relaxed.unread,
    )
    schemas = f"{len(results.read)} of {len(results.cases)} schemas"
    print(f"\nThe three dialects, each in its engine, and our matcher, asked about {schemas},")
    print(f"agree on {both.same} of {both.total} instances in every order of the keys, on {both.alike} in some order.")
    for who, count in both.unread.most_common():
        print(f"  not read, {count} schemas: {who}")
    for case, instance, said in both.differing[:SHOWN]:
        print(f"  {case.id}: {said}: {_short(instance.data)}")
    if len(both.differing) > SHOWN:
        print(f"  and {len(both.differing) - SHOWN} more")


def show_refusals(results: Results) -> None:
    """Print for which keyword schemas are refused, and what peers say when they refuse."""
    counts = refusals(results.exact)
    show("Refused in exact mode, by keyword", ["keyword", "schemas"], [[*pair] for pair in counts.most_common()])
    relaxed = refusals(results.relaxed)
    if relaxed:
        show("Refused in relaxed mode", ["keyword", "schemas"], [[*pair] for pair in relaxed.most_common()])
    rows = [[name, *pair] for name, each in results.peers.items() for pair in refusals(each).most_common(5)]
    show("What peers refuse, the five most frequent", ["peer", "why", "schemas"], rows)
    print("\nllama.cpp refuses by a C++ exception, which here ends the process: it died.")


def failure_lines(results: Results) -> list[str]:
    """A line of JSON for each wrong verdict, toolgram's first."""
    return [
        json.dumps(
            {
                "who": name,
                "source": wrong.case.source,
                "id": wrong.case.id,
                "kind": wrong.kind,
                "data": wrong.instance.data,
                "text": wrong.text,
            }
        )
        for name, outcomes in results.contestants().items()
        for wrong in wrong_verdicts(results.cases, outcomes)
    ] + [
        json.dumps({"who": name, "source": case.source, "id": case.id, "kind": "refused", "why": each.refusal})
        for name, outcomes in results.contestants().items()
        for case, each in zip(results.cases, outcomes, strict=True)
        if isinstance(each, Outcome) and each.refusal is not None
    ]


def show_failures(results: Results, path: Path | None) -> None:
    """Write every wrong verdict and refusal to the file, or print the first wrong verdicts of each of our modes."""
    if path:
        lines = failure_lines(results)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"\n{len(lines)} wrong verdicts and refusals of everybody are in {path}")
        return
    for name, outcomes in list(results.contestants().items())[: len(MODES)]:
        wrong = list(wrong_verdicts(results.cases, outcomes))
        print(f"\nWrong verdicts of {name}: {len(wrong)}")
        for each in [one for one in wrong if one.kind != "unsound by format alone"][:SHOWN]:
            print(f"  {each.kind}: {each.case.id}: {_short(each.instance.data)}")


def _short(data: object) -> str:
    text = json.dumps(data)
    return text if len(text) <= 100 else f"{text[:97]}..."


def show_walks(cases: list[Case], count: int, jobs: int, seconds: float) -> None:
    """Print how many random sentences are JSON, and valid by jsonschema-rs without `format`."""
    rows: list[list[object]] = []
    bad: list[str] = []
    ways = [*(("exact", reader) for reader in READERS), *(("relaxed", reader) for reader in READERS)]
    for mode, reader in ways:
        tasks: list[tuple[Mode, Reader, Case, int]] = [(mode, reader, case, count) for case in cases]
        found = run(tasks, walk, jobs, seconds)
        walked = [each for each in found if isinstance(each, Walked)]
        total, unfinished = sum(each.sampled for each in walked), sum(each.unfinished for each in walked)
        shares = _percents(total, sum(each.json for each in walked), sum(each.valid for each in walked))
        schemas, lost = sum(each.sampled > 0 for each in walked), len(found) - len(walked)
        unread = sum(each.unread is not None for each in walked)
        rows.append([mode, _WALKED[reader], schemas, total, *shares, unfinished, unread, lost])
        if mode == "exact":
            pairs = [(c, w.bad) for c, w in zip(cases, found, strict=True) if isinstance(w, Walked) and w.bad]
            bad += [f"{reader}: {case.id}: {text[:100]}" for case, text in pairs]
    show(
        "Random walks",
        ["mode", "under the masks of", "schemas", "sentences", "JSON %", "valid %", "unfinished", "not read", "lost"],
        rows,
    )
    for line in bad[:SHOWN]:
        print(f"  not valid, {line}")


def _percents(total: int, *counts: int) -> list[float | None]:
    return [100 * count / total if total else None for count in counts]


def show_masks(cases: list[Case], count: int) -> None:
    """Print what masks cost over the default model's vocabulary."""
    import _schema_masks  # here, because it needs the embedded engine and its model, which nothing else does

    for source in dict.fromkeys(case.source for case in cases):
        rows = _schema_masks.rows(_schema_masks.sample([case for case in cases if case.source == source], count))
        show(f"{source}: token masks along a valid instance, the schemas that all do", _schema_masks.HEAD, rows)
    print("\nconverted: processor time from the schema to the text of a grammar; engines begin with the schema itself.")
    print("first: from there to the first mask, in one thread, nothing kept from other schemas.")
    lark, schema = _schema_masks.least()
    print(f"llguidance reads the smallest Lark in {lark:.2f} ms, the smallest schema in {schema:.2f} ms.")
    print("toolgram in relaxed mode. Strict is what XGrammar does by default: it takes objects for closed, and")
    print("has less to do; the first mask is compared to it, and the others to those of the same language.")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders in MaskBench's form")
    parser.add_argument("--limit", type=int, help="so many schemas of each file or folder, evenly spread")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="processor time beyond which a stage of one schema is a hang"
    )
    parser.add_argument("--every", type=int, default=1, help="let engines read our grammars of every nth schema")
    parser.add_argument("--walks", type=int, default=0, help="so many random sentences of each grammar, too")
    parser.add_argument(
        "--masks", type=int, nargs="?", const=30, default=0, help="token masks of so many schemas of each source, too"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the scores there")
    parser.add_argument("--failures", type=Path, help="write every wrong verdict and refusal there, as JSON lines")
    return parser.parse_args(argv)


def chosen_cases(paths: Sequence[Path], limit: int | None) -> list[Case]:
    """The cases of these files and folders, or of the default ones as far as they are there."""
    groups = [list(load([path])) for path in (paths or [path for path in DEFAULT_FILES if path.exists()])]
    return [case for group in groups for case in group[:: max(len(group) // limit, 1) if limit else 1][:limit]]


def _sample(options: argparse.Namespace) -> str:
    return f" --limit {options.limit}" if options.limit else ""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables."""
    options = arguments(argv)
    cases = chosen_cases(options.paths, options.limit)
    if not cases:
        print(f"No schemas: {DEFAULT_FILES[0].parent} is not there: run benchmarks/fetch.py, or name files or folders.")
        return
    start = time.monotonic()
    results = judge_all(cases, options.jobs, options.seconds, options.every)
    show_scores(results)
    keep(options.json, f"python benchmarks/jsonschema.py{_sample(options)}", score_rows(results))
    show_goals(results)
    show_engines(results)
    show_agreement(results)
    show_refusals(results)
    show_failures(results, options.failures)
    if options.walks:
        show_walks(cases, options.walks, options.jobs, options.seconds)
    if options.masks:
        show_masks(cases, options.masks)
    print(f"\n{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
