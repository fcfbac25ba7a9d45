"""Does it reason in the place that its template has for that."""

from __future__ import annotations

from dataclasses import replace

from toolgram.doctor import judges
from toolgram.doctor.probe import Ask, Probe
from toolgram.doctor.probes.common import PUZZLE, RAIN
from toolgram.planning.plan import Plan


def _in_its_place(plan: Plan) -> str:
    return "" if plan.format.reasoning else f"{plan.style.name} has no place for reasoning with this template"


REASONING = (
    Probe(
        "reasons",
        "model",
        "Does it reason, apart from its answer?",
        (replace(PUZZLE, max_tokens=400),),
        judges.reasons,
        needs=_in_its_place,
    ),
    Probe(
        "reasons_then_calls",
        "enforced",
        "Does a required call follow the reasoning?",
        (Ask({**RAIN.body, "reasoning_max_tokens": 48}, max_tokens=200),),
        judges.valid,
        needs=_in_its_place,
    ),
    Probe(
        "reasoning_ends",
        "server",
        "Is a bound of the reasoning kept?",
        (Ask({**PUZZLE.body, "reasoning_max_tokens": 8}, max_tokens=200),),
        judges.closes_reasoning,
        needs=_in_its_place,
    ),
)
