"""Trying profiles on questions: what a model answers when it must call, and how much it wants to where it need not.

A question is asked but once, with a bias that makes the model call in the way in which it would call by itself. From
the odds of the call, which the engine tells without the bias, follows what the answer is with any other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from math import ceil, floor, isclose, tanh
from statistics import fmean, median, quantiles
from typing import Any

from toolgram.bench.asking import Answer, answer
from toolgram.bench.questions import KINDS, Question, questions
from toolgram.engines.base import Engine, Sampling
from toolgram.planning.plan import plan
from toolgram.planning.profile import Profile
from toolgram.template.chat_template import ChatTemplate

_CALLS_EACH = 4  # questions with a call for each without one, as long as there are
_MOST_BIAS = 100.0
_SPREAD = 10  # questions of a kind that tell how their odds spread
_NEAR = 0.3  # of that spread
_STEPS = 400  # in which a bias is looked for
_SPARED = 0.95  # of questions of one call, which a bias towards another leaves alone


@dataclass(frozen=True)
class Trial:
    """The answer to a question that a call answers, or none does, and whether it is right if the model calls.

    Without `log_odds` the model made its choice, and `right` is what came of it.
    """

    calls: bool
    right: bool
    log_odds: float | None
    answer: Answer

    def is_right(self, bias: float) -> bool:
        """Whether the answer is right with a bias towards a call."""
        if self.log_odds is None:
            return self.right
        called = self.log_odds + bias > 0
        return called and self.right if self.calls else not called


@dataclass(frozen=True)
class Asker:
    """Who is asked: a model with its chat template; `tools` are offered beside those of each question."""

    template: ChatTemplate
    engine: Engine
    sampling: Sampling
    tools: tuple[Any, ...] = ()

    async def ask(self, question: Question, profile: Profile | None) -> Answer:
        """The answer with a profile, as a user gets it."""
        return await self._answer(question, profile, self.sampling)

    async def tried(self, question: Question, profile: Profile, *, odds_alone: bool = False) -> Trial:
        """The answer with a bias towards a call; with `odds_alone`, or where no call is right, its first token."""
        forced = replace(profile, tool_bias=_MOST_BIAS)
        decides = plan(self._body(question), self.template, profile=forced).decision
        first = (odds_alone or not question.calls) and decides is not None and decides.at_once
        sampling = replace(self.sampling, max_tokens=1) if first else self.sampling
        given = await self._answer(question, forced, sampling)
        if given.call_log_odds is None and first:  # the engine cannot tell them, so that nothing was forced
            given = await self._answer(question, profile, self.sampling)
        return Trial(bool(question.calls), given.right, given.call_log_odds, given)

    async def _answer(self, question: Question, profile: Profile | None, sampling: Sampling) -> Answer:
        prepared = plan(self._body(question), self.template, profile=profile)
        return await answer(question, prepared, self.engine, sampling)

    def _body(self, question: Question) -> dict[str, Any]:
        body = question.body("auto")
        names = {tool["function"]["name"] for tool in body["tools"]}
        return {**body, "tools": [*body["tools"], *(t for t in self.tools if t["function"]["name"] not in names)]}


def halves() -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """The questions that offer tools, in two halves: every kind in both, and early in each."""
    kinds = [questions(kind) for kind in KINDS if kind != "schema"]
    return _mixed(kind[0::2] for kind in kinds), _mixed(kind[1::2] for kind in kinds)


def _mixed(kinds: Iterable[Sequence[Question]]) -> tuple[Question, ...]:
    split = list(kinds)
    with_calls = iter([q for group in zip_longest(*split) for q in group if q is not None and q.calls])
    without = [q for kind in split for q in kind if not q.calls]
    mixed = chain.from_iterable((*islice(with_calls, _CALLS_EACH), question) for question in without)
    return (*mixed, *with_calls)


def score(trials: Sequence[Trial], bias: float) -> float:
    """The share of right answers, where questions with a call and without one count the same."""
    groups = ([t.is_right(bias) for t in trials if t.calls == calls] for calls in (True, False))
    return fmean(fmean(group) for group in groups if group)


def best_bias(trials: Sequence[Trial]) -> float:
    """The bias by which the largest shares of questions with a call, and of those without, are decided rightly.

    A question counts for one side in part where it is near the other, within what its kind spreads towards that: what
    parts most of some forty questions to the letter follows a few odd ones of them, and is not what parts the next
    forty. With fewer, it lies in the middle. 0 where questions with a call have no better odds than others.
    """
    groups = ([t.log_odds for t in trials if t.calls == calls and t.log_odds is not None] for calls in (True, False))
    called, others = groups
    if not called or not others or median(called) <= median(others):
        return 0.0
    if min(len(called), len(others)) < _SPREAD:
        return _bounded(-(median(called) + median(others)) / 2)
    against = [-odds for odds in others]
    width, width_against = _spread_down(called), _spread_down(against)
    low, high = min(*called, *others), max(*called, *others)
    shares = {
        bias: _share(called, bias, width) + _share(against, -bias, width_against)
        for bias in (-low - (high - low) * step / _STEPS for step in range(_STEPS + 1))
    }
    best = max(shares.values())
    return _bounded(median(bias for bias, share in shares.items() if isclose(share, best, abs_tol=1e-6)))


def _spread_down(odds: Sequence[float]) -> float:
    """From the middle down to the lowest sixth, where a standard deviation is for what spreads normally; 1 for none."""
    return median(odds) - quantiles(odds, n=6)[0] or 1.0


def _share(odds: Sequence[float], bias: float, spread: float) -> float:
    """The share that is above zero with the bias."""
    return fmean((1 + tanh((each + bias) / (2 * _NEAR * spread))) / 2 for each in odds)


def best_parallel_bias(answers: Sequence[tuple[Question, Answer]]) -> float:
    """The most bias towards another call that leaves nineteen in twenty questions of one call with one.

    0 where no question of several calls comes to another one by it, or too little is known.
    """
    known = [(len(q.calls), a.another_call_log_odds) for q, a in answers if a.another_call_log_odds is not None]
    one = sorted(odds for calls, odds in known if calls == 1)
    several = [odds for calls, odds in known if calls > 1]
    if not one or not several or max(several) <= (limit := one[ceil(_SPARED * len(one)) - 1]):
        return 0.0
    return _bounded(-limit)


def is_worth_it(several: Sequence[tuple[bool, bool]]) -> bool:
    """Whether a bias towards another call makes more of the questions of several calls right than it disturbs of one.

    Each is whether the answer was right without the bias, and with it; both kinds of questions count the same.
    """
    return fmean(after - before for before, after in several) > 1 - _SPARED


def _bounded(bias: float) -> float:
    return max(-_MOST_BIAS, min(_MOST_BIAS, floor(100 * bias) / 100))
