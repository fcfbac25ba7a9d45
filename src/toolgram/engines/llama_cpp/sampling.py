"""Choosing a token from logits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import Choice, Logprob, Sampling, TokenLogprobs
from toolgram.errors import EngineError

Logits = NDArray[np.float32]
_AT_FIRST = 64  # of the likeliest tokens, when as many are looked for as make up a part of all
_GREEDY = 1e-6  # the temperature below which the likeliest token has all the weight
_HOTTEST = 1e30  # the temperature above which all tokens are as likely
_NO_NUMBER = "the model does not say in a number how likely the next token is"
_Numbers = tuple[NDArray[np.intp], Logits]


class Sampler:
    """Chooses the tokens of one generation, and remembers those that were written."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._counts = Counter[int]()
        self._seen = set(prompt) if sampling.repetition_penalty != 1 else set[int]()
        self._counts_matter = bool(sampling.frequency_penalty or sampling.presence_penalty)
        self._biases: _Numbers | None = None  # those of tokens that there are, once it is known how many there are

    def adjusted(self, logits: Logits) -> Logits:
        """The logits with biases and penalties, as a copy where there are any."""
        sampling = self._sampling
        if sampling.logit_bias:
            self._biases = self._biases or _numbers(sampling.logit_bias, len(logits))
            logits = _changed(logits, self._biases, lambda old, bias: old + bias)
        if sampling.repetition_penalty != 1:
            factors = dict.fromkeys(self._seen, sampling.repetition_penalty)
            logits = _changed(
                logits,
                _numbers(factors, len(logits)),
                lambda old, factor: np.where(old > 0, old / factor, old * factor),
            )
        if self._counts_matter:
            losses = {
                token: count * sampling.frequency_penalty + sampling.presence_penalty
                for token, count in self._counts.items()
            }
            logits = _changed(logits, _numbers(losses, len(logits)), lambda old, loss: old - loss)
        return logits

    def choose(self, logits: Logits) -> int:
        """The next token, of adjusted logits."""
        return choose(logits, self._sampling, self._random)

    def side(self, log_odds: float) -> bool:
        """Whether the side of a choice is taken that is likelier than the other one by these odds."""
        temperature = self._sampling.temperature
        if temperature < _GREEDY:
            return log_odds > 0
        return self._random.random() < 0.5 * (1 + float(np.tanh(log_odds / temperature / 2)))

    def note(self, tokens: Sequence[int]) -> None:
        """Tell which tokens were written."""
        if self._counts_matter:
            self._counts.update(tokens)
        if self._sampling.repetition_penalty != 1:
            self._seen.update(tokens)


def _marked(tokens: Sequence[int], size: int) -> NDArray[np.bool_]:
    marked = np.zeros(size, dtype=np.bool_)
    marked[[token for token in tokens if 0 <= token < size]] = True
    return marked


def _numbers(by: Mapping[int, float], size: int) -> _Numbers:
    """Tokens with a number each; what is none of the `size` tokens is left out."""
    known = {token: number for token, number in by.items() if 0 <= token < size}
    ids = np.fromiter(known, dtype=np.intp, count=len(known))
    return ids, np.fromiter(known.values(), dtype=np.float32, count=len(known))


def _changed(logits: Logits, by: _Numbers, change: Callable[[Logits, Logits], Logits]) -> Logits:
    """A copy in which the logits of some tokens are changed by a number each."""
    ids, numbers = by
    logits = logits.copy()
    logits[ids] = change(logits[ids], numbers)
    return logits


def logprobs_of(logits: Logits, token: int, top: int, pieces: Sequence[bytes]) -> TokenLogprobs:
    """How likely a token was, and the `top` likeliest ones, of adjusted logits."""
    best = float(logits.max())
    total = best + float(np.log(np.exp(logits - best, dtype=np.float64).sum()))

    def told(token: int) -> Logprob:
        return Logprob(token, pieces[token], float(logits[token]) - total)

    likeliest = _likeliest(logits, min(top, len(logits))) if top else ()
    return TokenLogprobs(told(token), tuple(told(int(other)) for other in likeliest if logits[other] > -np.inf))


def log_odds(logits: Logits, tokens: Sequence[int]) -> float:
    """The logarithm of how much likelier some tokens are than all others; infinite where only one side is allowed."""
    side = _marked(tokens, len(logits))
    best = float(logits.max())
    weights = np.exp(logits - best, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return float(np.log(weights[side].sum()) - np.log(weights[~side].sum()))


def biased(logits: Logits, choice: Choice) -> Logits:
    """The logits with the bias of a choice, as a copy where it has one."""
    if not choice.bias:
        return logits
    return _changed(logits, _numbers(dict.fromkeys(choice.tokens, choice.bias), len(logits)), np.add)


def one_side(logits: Logits, tokens: Sequence[int], side: bool) -> Logits:
    """The logits of some tokens alone, or of all others."""
    return np.where(_marked(tokens, len(logits)) == side, logits, np.float32(-np.inf))


def begin_with(first_bytes: NDArray[np.uint8], any_of: bytes) -> NDArray[np.bool_]:
    """Which tokens begin with one of these bytes, by the first of each."""
    return np.isin(first_bytes, np.frombuffer(any_of, np.uint8))


def shared(logits: Logits, unmeant: NDArray[np.bool_], meant: NDArray[np.bool_] | list[int]) -> Logits:
    """The logits, in which some tokens have what others had, each as much as it is likely itself."""
    more, likely = _total(logits[unmeant]), _total(logits[meant])
    if not np.isfinite(more) or not np.isfinite(likely):
        return logits
    logits = logits.copy()
    logits[meant] += np.logaddexp(more, likely) - likely
    logits[unmeant] = -np.inf
    return logits


def _total(logits: Logits) -> np.float32:
    best = logits.max(initial=-np.inf)
    return best + np.log(np.exp(logits - best).sum()) if np.isfinite(best) else np.float32(-np.inf)


def ruled_out(logits: Logits, allowed: NDArray[np.bool_]) -> tuple[int, float]:
    """The likeliest token of all, and the part of all probability that is not allowed, from 0 to 1."""
    best = int(logits.argmax())
    weights = np.exp(logits - logits[best])
    return best, max(0.0, 1.0 - float(np.dot(weights, allowed) / weights.sum()))


def choose(logits: Logits, sampling: Sampling, random: np.random.Generator) -> int:
    """The id of the next token.

    `logits` is one number per token of the vocabulary, -inf for what is not allowed. Raises EngineError where none is a
    finite number.
    """
    best = int(np.argmax(logits))
    if not np.isfinite(logits[best]):
        raise EngineError(_NO_NUMBER)
    if sampling.temperature < _GREEDY:
        return best
    weights = np.exp((logits - logits[best]) / np.float32(min(sampling.temperature, _HOTTEST)))
    ids = _ranked(weights, sampling) if sampling.top_k or sampling.top_p < 1 else None
    if ids is not None:
        weights = weights[ids]
    if sampling.min_p > 0:
        weights = np.where(weights >= sampling.min_p, weights, 0)
    sums = np.cumsum(weights, dtype=np.float64)
    drawn: float = random.random() * float(sums[-1])
    place = int(np.searchsorted(sums, drawn, side="right"))
    return place if ids is None else int(ids[place])


def _ranked(weights: Logits, sampling: Sampling) -> NDArray[np.intp]:
    """The tokens that are among the `top_k` best, and with those before them have less than `top_p`; the best first.

    To sort a whole vocabulary takes as long as a pass of a small model, and few of the best are nearly all of it.
    """
    count = min(sampling.top_k or _AT_FIRST, len(weights))
    while True:
        ids = _likeliest(weights, count)
        before = np.cumsum(weights[ids], dtype=np.float64) - weights[ids]
        among = weights[ids] if sampling.top_k else weights
        inside = before < sampling.top_p * among.sum(dtype=np.float64)
        if sampling.top_k or count == len(weights) or not inside[-1]:
            return ids[inside]
        count = min(count * _AT_FIRST, len(weights))


def _likeliest(logits: Logits, count: int) -> NDArray[np.intp]:
    """So many of the best tokens, the likeliest first; ties go to the lower id."""
    if count < len(logits):
        ids = np.argpartition(-logits, count - 1)[:count]
        ids.sort()
    else:
        ids = np.arange(len(logits))
    return ids[np.argsort(-logits[ids], kind="stable")]
