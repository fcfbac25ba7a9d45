"""Successive halving: all candidates get the same questions, and the better half of them goes on to more."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from toolgram.bench.questions import Question
from toolgram.planning.profile import Profile
from toolgram.tune.trials import Trial, best_bias, score

_LEAST = 5  # questions in a round, whatever the time

Try = Callable[[Question, Profile], Awaitable[Trial]]


@dataclass
class Runner:
    """A profile in a race, and what it did so far."""

    profile: Profile
    trials: list[Trial] = field(default_factory=list[Trial])

    @property
    def score(self) -> float:
        """How good it is, with the bias that is best for it; of two that are equal, that with the shorter prompts."""
        shortness = 1 / (1 + sum(trial.answer.prompt_tokens for trial in self.trials))
        return score(self.trials, best_bias(self.trials)) + shortness


async def race(
    profiles: Sequence[Profile],
    questions: Sequence[Question],
    seconds: float,
    tried: Try,
    told: Callable[[str], None],
) -> Runner:
    """The best of some profiles on these questions, of which as many are asked as there is time for."""
    runners = [Runner(profile) for profile in profiles]
    begun = time.monotonic()
    end = begun + seconds
    at = 0
    for left in range(math.ceil(math.log2(len(runners))), 0, -1):
        until = time.monotonic() + max(0.0, end - time.monotonic()) / left
        first = at
        while at < len(questions) and (at < first + _LEAST or time.monotonic() < until):
            for runner in runners:
                runner.trials.append(await tried(questions[at], runner.profile))
            at += 1
            if at == 1 and (least := _LEAST * (time.monotonic() - begun)) > seconds:
                told(f"{len(runners)} are asked {_LEAST} questions each, whatever the budget: some {least:.0f} s")
        runners.sort(key=lambda runner: -runner.score)
        for runner in runners:
            told(f"{runner.score:.3f} after {at} questions: {runner.profile}")
        runners = runners[: math.ceil(len(runners) / 2)]
    return runners[0]
