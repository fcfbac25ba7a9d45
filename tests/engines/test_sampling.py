"""Choosing a token from logits, compared with probabilities worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from toolgram.engines.base import Sampling
from toolgram.engines.sampling import choose

PROBABILITIES = np.array([0.1, 0.4, 0.0, 0.3, 0.2])
with np.errstate(divide="ignore"):
    LOGITS = np.log(PROBABILITIES).astype(np.float32)


def frequencies(sampling: Sampling, draws: int = 20_000) -> list[float]:
    random = np.random.default_rng(7)
    chosen = [choose(LOGITS, sampling, random) for _ in range(draws)]
    return [float(count) / draws for count in np.bincount(chosen, minlength=len(LOGITS))]


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


def test_a_seed_repeats_the_choice() -> None:
    sampling = Sampling(temperature=1)
    first, second = ([choose(LOGITS, sampling, np.random.default_rng(seed)) for seed in range(50)] for _ in "ab")
    assert first == second
