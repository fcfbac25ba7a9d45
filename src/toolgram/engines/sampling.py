"""Choosing a token from logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import Sampling

Logits = NDArray[np.float32]


def choose(logits: Logits, sampling: Sampling, random: np.random.Generator) -> int:
    """The id of the next token.

    `logits` is one number per token of the vocabulary, -inf for what is not allowed; at least one must be finite.
    """
    if sampling.temperature == 0:
        return int(np.argmax(logits))
    ids = _likeliest(logits, sampling.top_k)
    scores = logits[ids].astype(np.float64)
    weights = np.exp((scores - scores[0]) / sampling.temperature)
    keep = weights >= sampling.min_p
    if sampling.top_p < 1:
        total = np.cumsum(weights)
        keep &= total - weights < sampling.top_p * total[-1]
    weights = np.cumsum(np.where(keep, weights, 0.0))
    return int(ids[np.searchsorted(weights, random.random() * weights[-1], side="right")])


def _likeliest(logits: Logits, top_k: int) -> NDArray[np.intp]:
    """The allowed tokens, or the `top_k` best of them, the likeliest first; ties go to the lower id."""
    ids = np.flatnonzero(logits > -np.inf)
    if 0 < top_k < len(ids):
        ids = ids[np.argpartition(-logits[ids], top_k - 1)[:top_k]]
        ids.sort()
    return ids[np.argsort(-logits[ids], kind="stable")]
