"""Answers that were marked, and what they come to: tables, and which side is better."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any

import jsonschema_rs

from _answers_bfcl import Question
from _answers_compare import fault
from _answers_sides import SIDES, Answer
from _common import show

LEVEL = 0.05
HEAD = ["cell", "temperature", "side", "right", "of", "%", "with calls", "valid", "more calls", "length", "errors"]
HEAD += ["prompt", "tokens", "seconds"]
PAIRS = ["cell", "temperature", *(f"only {side}" for side in SIDES), "p", "toolgram is"]


@dataclass(frozen=True)
class Marked:
    """An answer of a side to a question; `fault` says what is wrong with it, "" that it is right.

    `valid`: every call names a tool that there is, and its arguments keep to its schema.
    """

    model: str
    cell: str
    temperature: str
    side: str
    question: str
    asked: str
    expected: Sequence[Any]
    fault: str
    valid: bool
    more: bool
    calls: Sequence[Any]
    text: str
    finish: str
    prompt_tokens: int
    tokens: int
    seconds: float
    error: str


def marked(where: tuple[str, str, str, str], question: Question, answer: Answer) -> Marked:
    """The answer of `where`: model, cell, temperature and side."""
    calls, expected, schemas = answer.calls, question.expected, question.schemas
    wrong = f"an error: {answer.error}" if answer.error else fault(expected, calls, schemas)
    valid = all(call.name in schemas and jsonschema_rs.is_valid(schemas[call.name], call.arguments) for call in calls)
    return Marked(
        *where,
        question=question.id,
        asked=str(question.messages[-1]["content"]),
        expected=[asdict(one) for one in expected],
        fault=wrong,
        valid=valid,
        more=len(calls) > len(expected),
        calls=[asdict(call) for call in calls],
        text=answer.text,
        finish=answer.finish,
        prompt_tokens=answer.prompt_tokens,
        tokens=answer.tokens,
        seconds=answer.seconds,
        error=answer.error,
    )


def tell(model: str, found: Sequence[Marked]) -> None:
    """Print the tables of a model."""
    groups = _groups(found)
    show(f"{model}: right answers", HEAD, [row for place, group in groups.items() for row in _rows(place[1:], group)])
    if pairs := [[*place[1:], *row] for place, group in groups.items() if (row := _compared(group))]:
        show(f"{model}: answers that only one side has right", PAIRS, pairs)


def tell_worse(found: Sequence[Marked]) -> None:
    """Print where toolgram is worse, if both sides were asked."""
    compared = {place: row for place, group in _groups(found).items() if (row := _compared(group))}
    worse = [f"{model} {cell} (temperature {t})" for (model, cell, t), row in compared.items() if row[-1] == "worse"]
    if compared:
        print(f"\ntoolgram is worse than llama.cpp in: {', '.join(worse) or 'no cell'} (p < {LEVEL}).")


def _groups(found: Sequence[Marked]) -> dict[tuple[str, ...], list[Marked]]:
    """The answers of each model, cell and temperature."""
    groups: dict[tuple[str, ...], list[Marked]] = {}
    for one in found:
        groups.setdefault((one.model, one.cell, one.temperature), []).append(one)
    return groups


def _rows(place: Sequence[str], group: Sequence[Marked]) -> list[list[object]]:
    sides = {side: [one for one in group if one.side == side] for side in SIDES}
    return [[*place, side, *_row(answers)] for side, answers in sides.items() if answers]


def _row(answers: Sequence[Marked]) -> list[object]:
    right, called = sum(not one.fault for one in answers), [one for one in answers if one.calls]
    prompts = [one.prompt_tokens for one in answers if not one.error]
    tokens = [one.tokens for one in answers if not one.error]  # with an error nobody says how many there were
    return [
        right,
        len(answers),
        round(100 * right / len(answers)),
        len(called),
        sum(one.valid for one in called),
        sum(one.more for one in answers),
        sum(one.finish == "length" for one in answers),
        sum(bool(one.error) for one in answers),
        statistics.fmean(prompts) if prompts else None,
        statistics.fmean(tokens) if tokens else None,
        statistics.fmean(one.seconds for one in answers),
    ]


def _compared(group: Sequence[Marked]) -> list[object]:
    """How many only one side has right, and what that tells; nothing where a side is missing."""
    right = [{one.question for one in group if one.side == side and not one.fault} for side in SIDES]
    if {one.side for one in group} != set(SIDES):
        return []
    ours, theirs = len(right[0] - right[1]), len(right[1] - right[0])
    p = sign_test(ours, theirs)
    return [ours, theirs, p, "same" if p >= LEVEL else "better" if ours > theirs else "worse"]


def sign_test(one: int, other: int) -> float:
    """How likely a difference as great is by chance, to either side: McNemar's exact test."""
    both = one + other
    return min(1.0, 2 * sum(comb(both, count) for count in range(min(one, other) + 1)) / 2**both)


def tell_wrong(found: Iterable[Marked]) -> None:
    """Print the wrong answers, with all that is known of them."""
    for one in found:
        if one.fault:
            print(f"\n== {one.model} {one.cell} (temperature {one.temperature}) {one.side} {one.question}")
            print(f"asked:    {one.asked}\nexpected: {one.expected}\ngot:      {one.calls}")
            print(f"wrong:    {one.fault}\nfinish:   {one.finish}, {one.tokens} tokens\nwritten:  {one.text!r}")
