"""Choosing a token from logits, compared with probabilities worked out by hand."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np
import pytest

from toolgram.engines.base import Choice, Sampling
from toolgram.engines.llama_cpp.sampling import Sampler, biased, choose, log_odds, logprobs_of, one_side, ruled_out
from toolgram.errors import EngineError

PROBABILITIES = np.array([0.1, 0.4, 0.0, 0.3, 0.2])
with np.errstate(divide="ignore"):
    LOGITS = np.log(PROBABILITIES).astype(np.float32)


def frequencies(sampling: Sampling, draws: int = 20_000) -> list[float]:
    random = np.random.default_rng(7)
    chosen = [choose(LOGITS, sampling, random) for _ in range(draws)]
    return [float(count) / draws for count in np.bincount(chosen, minlength=len(LOGITS))]


def test_what_a_grammar_rules_out() -> None:
    assert ruled_out(LOGITS, np.array([True, False, True, True, False])) == (1, pytest.approx(0.6, abs=1e-6))
    assert ruled_out(LOGITS, np.ones(5, np.bool_)) == (1, 0)


def test_the_odds_of_a_choice_and_its_bias() -> None:
    assert log_odds(LOGITS, (1, 3)) == pytest.approx(log(0.7 / 0.3), abs=1e-6)
    assert log_odds(LOGITS, (2, 99)) == -inf
    assert log_odds(LOGITS, (0, 1, 3, 4)) == inf
    moved = biased(LOGITS, Choice((1, 3, 99), log(3 / 7)))
    assert log_odds(moved, (1, 3)) == pytest.approx(0, abs=1e-6)
    assert biased(LOGITS, Choice((1,))) is LOGITS


def test_the_likelier_side_of_a_choice_may_not_have_the_likeliest_token() -> None:
    sampler = Sampler(Sampling(temperature=0), ())
    odds = log_odds(LOGITS, (1,))  # 0.4 against 0.1, 0.3 and 0.2
    assert not sampler.side(odds)
    assert sampler.choose(one_side(LOGITS, (1,), sampler.side(odds))) == 3
    assert sampler.side(odds + 0.5)  # 0.66 × e^0.5 = 1.1
    assert sampler.choose(one_side(LOGITS, (1,), sampler.side(odds + 0.5))) == 1


@pytest.mark.parametrize(("temperature", "share"), [(1, 0.4), (0.5, 16 / 52), (2, 2 / (2 + 6**0.5))])
def test_sides_come_as_often_as_they_should(temperature: float, share: float) -> None:
    sampler = Sampler(Sampling(temperature=temperature, seed=7), ())
    odds = log_odds(LOGITS, (1,))
    assert sum(sampler.side(odds) for _ in range(20_000)) / 20_000 == pytest.approx(share, abs=0.015)
    assert not sampler.side(-inf)
    assert sampler.side(inf)


def test_temperature_0_takes_the_likeliest() -> None:
    assert frequencies(Sampling(temperature=0), 10)[1] == 1


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(temperature=1), [0.1, 0.4, 0, 0.3, 0.2]),
        (Sampling(temperature=0.5), [1 / 30, 16 / 30, 0, 9 / 30, 4 / 30]),
        (Sampling(temperature=1, top_k=2), [0, 4 / 7, 0, 3 / 7, 0]),
        (Sampling(temperature=1, top_k=50), [0.1, 0.4, 0, 0.3, 0.2]),
        (Sampling(temperature=1, top_p=0.65), [0, 4 / 7, 0, 3 / 7, 0]),
        (Sampling(temperature=1, top_p=0.75), [0, 4 / 9, 0, 3 / 9, 2 / 9]),
        (Sampling(temperature=1, min_p=0.6), [0, 4 / 7, 0, 3 / 7, 0]),
        (Sampling(temperature=1e-6), [0, 1, 0, 0, 0]),
    ],
)
def test_tokens_come_as_often_as_they_should(sampling: Sampling, expected: list[float]) -> None:
    assert frequencies(sampling) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("top_p", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_the_best_of_a_large_vocabulary_are_those_of_all_that_is_sorted(top_p: float, spread: float) -> None:
    random = np.random.default_rng(3)
    logits = (random.standard_normal(20_000) * spread).astype(np.float32)
    logits[::3] = -inf
    order = np.argsort(-logits, kind="stable")
    weights = np.exp(logits[order].astype(np.float64))
    before = np.cumsum(weights) - weights
    expected = set(order[before < top_p * weights.sum()].tolist())
    sampling = Sampling(temperature=1, top_p=top_p)
    chosen = {choose(logits, sampling, random) for _ in range(2_000)}
    assert chosen <= expected
    assert {choose(logits, sampling, _Always(at)) for at in (0.0, 0.999999)} <= expected
    assert choose(logits, sampling, _Always(0.0)) == order[0]


class _Always(np.random.Generator):
    """One that always draws the same number."""

    def __init__(self, number: float) -> None:
        super().__init__(np.random.PCG64())
        self._number = number

    def random(self, *_: Any, **__: Any) -> Any:
        return self._number


def test_a_seed_repeats_the_choice() -> None:
    sampling = Sampling(temperature=1)
    first, second = ([choose(LOGITS, sampling, np.random.default_rng(seed)) for seed in range(50)] for _ in "ab")
    assert first == second


def adjusted(sampling: Sampling, prompt: list[int], written: list[int], logits: list[float]) -> list[float]:
    sampler = Sampler(sampling, prompt)
    sampler.note(written)
    given = np.array(logits, dtype=np.float32)
    changed = sampler.adjusted(given)
    assert given.tolist() == logits  # the model's own memory
    return changed.tolist()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), [4, -2, 0, 1]),
        (Sampling(presence_penalty=0.5), [3.5, -2.5, 0, 1]),
        (Sampling(frequency_penalty=0.5), [3, -2.5, 0, 1]),
        (Sampling(frequency_penalty=-1, presence_penalty=0.5), [5.5, -1.5, 0, 1]),
        (Sampling(repetition_penalty=2), [2, -4, 0, 0.5]),
        (Sampling(logit_bias={2: 3, 1: -100, 99: 1}), [4, -102, 3, 1]),
        (Sampling(logit_bias={3: 1}, repetition_penalty=2, presence_penalty=1), [1, -5, 0, 1]),
    ],
)
def test_biases_and_penalties_change_the_logits(sampling: Sampling, expected: list[float]) -> None:
    assert adjusted(sampling, prompt=[3, 3], written=[0, 1, 0], logits=[4, -2, 0, 1]) == expected


def test_logprobs_are_of_what_is_allowed() -> None:
    told = logprobs_of(LOGITS + np.float32(7), 3, 9, [b"a", b"b", b"c", b"d", b"e"])
    assert (told.chosen.token, told.chosen.piece) == (3, b"d")
    assert np.exp(told.chosen.logprob) == pytest.approx(0.3)
    assert [each.piece for each in told.top] == [b"b", b"d", b"e", b"a"]
    assert [np.exp(each.logprob) for each in told.top] == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert len(logprobs_of(LOGITS, 1, 2, [b""] * 5).top) == 2
    assert logprobs_of(LOGITS, 1, 0, [b""] * 5).top == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"presence_penalty": float("nan")},
        {"presence_penalty": 1e300},
        {"frequency_penalty": -1e300},
        {"repetition_penalty": 0},
        {"repetition_penalty": 1e-300},
        {"repetition_penalty": float("inf")},
        {"repetition_penalty": float("nan")},
        {"logit_bias": {1: float("inf")}},
        {"logit_bias": {1: 1e300}},
        {"temperature": float("nan")},
        {"logprobs": -1},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match=next(iter(wrong))):
        Sampling(**wrong)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e300])
@pytest.mark.parametrize("others", [{}, {"top_p": 5e-324}, {"min_p": 5e-324}, {"top_k": 2**53}])
def test_the_smallest_and_the_largest_values_can_be_computed(temperature: float, others: dict[str, Any]) -> None:
    sampling = Sampling(temperature=temperature, **others)
    assert choose(LOGITS, sampling, np.random.default_rng(1)) in (0, 1, 3, 4)


@pytest.mark.parametrize("temperature", [0, 1])
def test_logits_that_are_no_numbers_are_an_error(temperature: float) -> None:
    with pytest.raises(EngineError, match="how likely"):
        choose(np.full(3, np.nan, dtype=np.float32), Sampling(temperature=temperature), np.random.default_rng(1))
