"""Finding the profile of a model: races on one half of the questions, a report on the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from toolgram.bench.asking import Answer
from toolgram.bench.questions import Question
from toolgram.bench.tables import gain, interval
from toolgram.planning.profile import Kind, Measured, Profile
from toolgram.tune.candidates import styles, variants
from toolgram.tune.race import Runner, race
from toolgram.tune.trials import Asker, Trial, best_bias, best_parallel_bias, halves, is_worth_it

_STYLES, _VARIANTS, _FIT, _FIT_PARALLEL = 0.3, 0.2, 0.1, 0.15  # of all the time; the rest is for the report
_LEAST = 10  # questions in a report, whatever the time, and those that show whether odds are told

Told = Callable[[str], None]


@dataclass(frozen=True)
class Pair:
    """The answers to a question with the profile and without one."""

    question: Question
    answer: Answer
    without: Answer


async def tune(model: str, asker: Asker, seconds: float, told: Told, names: Sequence[str] = ()) -> Profile:
    """The profile of a model, with what was measured; `told` of what happens.

    `names` are the styles to choose from, all that the template admits if there are none.
    """
    first, other = halves()
    end = time.monotonic() + seconds
    told(f"styles, on up to {len(first)} questions")
    best = await race(styles(model, asker.template, names), first, _STYLES * seconds, asker.tried, told)
    told("variants of the best one")
    best = await race(variants(best.profile, asker.template), first, _VARIANTS * seconds, asker.tried, told)
    trials = await _with_odds(best, first, _FIT * seconds, asker)
    profile = replace(best.profile, tool_bias=best_bias(trials) or None)
    profile = await _fitted_to_parallel(profile, first, _FIT_PARALLEL * seconds, asker)
    told(f"measuring it on the other {len(other)} questions: {profile}")
    pairs = await _pairs(profile, other, end, asker)
    if profile.tool_bias:  # the report stands for it; what it asked makes the bias that is kept a better one
        trials += [Trial(bool(p.question.calls), p.answer.right, p.answer.call_log_odds, p.answer) for p in pairs]
        profile = replace(profile, tool_bias=best_bias(trials) or None)
    return replace(profile, measured=tuple(measured(pairs)))


async def _with_odds(best: Runner, questions: Sequence[Question], seconds: float, asker: Asker) -> list[Trial]:
    """What the best profile was tried on, and the odds alone of the questions that it did not get."""
    end = time.monotonic() + seconds
    trials = list(best.trials)
    for question in questions[len(trials) :]:
        if time.monotonic() > end or (trials and trials[-1].log_odds is None):
            break
        trials.append(await asker.tried(question, best.profile, odds_alone=True))
    return trials


async def _fitted_to_parallel(profile: Profile, questions: Sequence[Question], seconds: float, asker: Asker) -> Profile:
    """A profile with its bias towards another call, from questions of several calls, and twice as many of one.

    Those of several are asked again with it, in the second half of the time: it is worth what it costs only where more
    of them are right.
    """
    if profile.parallel_tool_calls is False:
        return profile
    half = time.monotonic() + seconds / 2
    several, one = ([q for q in questions if q.calls and (len(q.calls) > 1) == more] for more in (True, False))
    answers: list[tuple[Question, Answer]] = []
    for question in chain.from_iterable(zip(several, one[::2], one[1::2], strict=False)):
        known = any(answer.another_call_log_odds is not None for _, answer in answers)
        if time.monotonic() > half or (len(answers) == _LEAST and not known):
            break
        answers.append((question, (await asker.tried(question, profile)).answer))
    bias = best_parallel_bias(answers)
    if not bias:
        return profile
    biased = replace(profile, parallel_tool_bias=bias)
    pairs: list[tuple[bool, bool]] = []
    for question, before in answers:
        if len(question.calls) > 1 and (not pairs or time.monotonic() < half + seconds / 2):
            pairs.append((before.right, (await asker.tried(question, biased)).answer.right))
    return biased if is_worth_it(pairs) else profile


async def _pairs(profile: Profile, questions: Sequence[Question], end: float, asker: Asker) -> list[Pair]:
    pairs: list[Pair] = []
    for question in questions:
        if len(pairs) < _LEAST or time.monotonic() < end:
            pairs.append(Pair(question, await asker.ask(question, profile), await asker.ask(question, None)))
    return pairs


def measured(pairs: Sequence[Pair]) -> list[Measured]:
    """What the answers come to."""
    groups: dict[Kind, list[Pair]] = {
        "with a call": [pair for pair in pairs if pair.question.calls],
        "without a call": [pair for pair in pairs if not pair.question.calls],
        "all": list(pairs),
    }
    return [_measured(name, group) for name, group in groups.items() if group]


def _measured(name: Kind, pairs: Sequence[Pair]) -> Measured:
    right = [pair.answer.right for pair in pairs]
    without = [pair.without.right for pair in pairs]
    return Measured(
        name,
        len(pairs),
        sum(right),
        _rounded(interval(sum(right), len(pairs))),
        sum(without),
        _rounded(interval(sum(without), len(pairs))),
        _rounded(gain(right, without)),
    )


def _rounded(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    return round(low, 3), round(high, 3)
