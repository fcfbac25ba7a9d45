"""Runs of the questions, as `toolgram bench --json` writes them, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import exp
from statistics import fmean
from typing import Any

from toolgram.bench.asking import Answer
from toolgram.bench.tables import columns, gain, interval

_HEAD = ("run", "right", "of", "%", "95 %", "prompt", "ratio", "points", "95 %")
_BINS = 5


@dataclass(frozen=True)
class Run:
    """The answers of a model, asked in one way, which `name` says."""

    name: str
    answers: tuple[Answer, ...]

    @classmethod
    def read(cls, name: str, document: Mapping[str, Any]) -> Run:
        """A run out of what `as_json` makes of it. Raises KeyError and TypeError for what is none."""
        known = [field.name for field in fields(Answer)]
        return cls(name, tuple(Answer(**{key: one[key] for key in known}) for one in document["answers"]))

    @property
    def right(self) -> int:
        """How many answers are right."""
        return sum(answer.right for answer in self.answers)

    @property
    def prompt_tokens(self) -> float:
        """The mean of them."""
        return fmean(answer.prompt_tokens for answer in self.answers)


def common(runs: Sequence[Run]) -> list[Run]:
    """The runs with the questions that all of them have, in the order of the first."""
    found = [{answer.id: answer for answer in run.answers} for run in runs]
    order = [id_ for id_ in found[0] if all(id_ in of for of in found)]
    return [Run(run.name, tuple(of[id_] for id_ in order)) for run, of in zip(runs, found, strict=True)]


def beside(runs: Sequence[Run]) -> str:
    """A table of runs with the same questions: of each the share that is right and the mean tokens of its prompts.

    From the second run on also the ratio of the tokens to those of the first, and by how many points the share is
    higher, with its bounds (95 %, paired).
    """
    first, *_ = runs
    return columns([_HEAD, *(_cells(run, first) for run in runs)])


def _cells(run: Run, first: Run) -> tuple[str, ...]:
    count = len(run.answers)
    low, high = interval(run.right, count)
    share = (str(run.right), str(count), f"{100 * run.right / count:.0f}", f"{100 * low:.0f}-{100 * high:.0f}")
    tokens = f"{run.prompt_tokens:.0f}"
    if run is first:
        return (run.name, *share, tokens, "", "", "")
    low, high = gain([answer.right for answer in run.answers], [answer.right for answer in first.answers])
    points = 100 * (run.right - first.right) / count
    ratio = f"{run.prompt_tokens / first.prompt_tokens:.2f}"
    return (run.name, *share, tokens, ratio, f"{points:+.1f}", f"{100 * low:+.1f} to {100 * high:+.1f}")


@dataclass(frozen=True)
class Bin:
    """Questions for which the model would call with about the same probability, and how many of them need a call."""

    probability: float
    need: int
    of: int


def calibration(run: Run) -> list[Bin]:
    """The questions whose odds of a call are known, in bins of equal size, the least likely call first."""
    known = sorted(
        (1 / (1 + exp(-max(-500.0, min(500.0, answer.call_log_odds)))), answer.kind != "none")
        for answer in run.answers
        if answer.call_log_odds is not None
    )
    edges = [round(at * len(known) / _BINS) for at in range(_BINS + 1)]
    bins = (known[low:high] for low, high in pairwise(edges))
    return [Bin(fmean(p for p, _ in group), sum(need for _, need in group), len(group)) for group in bins if group]
