"""The fields that say how tokens are chosen, of the APIs in OpenAI's manner, to a Sampling."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from toolgram.api.fields import Body, boolean, integer, kind, mapping, number, strings
from toolgram.engines.base import LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY, Sampling
from toolgram.errors import InvalidRequest

T = TypeVar("T", int, float)

MAX_SEED = 2**63 - 1
MAX_STOPS = 16
MAX_TOP_LOGPROBS = 20
BIAS_KEY = "[0-9]{1,9}"
"""The keys of `logit_bias`."""
_BIAS_KEY = re.compile(BIAS_KEY)

SAMPLING_FIELDS = (
    *("max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias"),
)
"""What `sampling_of` reads."""


def sampling_of(
    body: Body, *, max_tokens: str = "max_tokens", stop: str = "stop", logprobs: int | None = None
) -> Sampling:
    """The sampling of a body; `max_tokens` and `stop` are what the API calls these fields.

    What is absent is as OpenAI has it: temperature and top_p 1. `logprobs` is how many likely tokens are to be told
    beside each. Raises InvalidRequest for a wrong type, and a value out of range.
    """
    seed = integer(body, "seed", -MAX_SEED - 1, MAX_SEED)
    values: dict[str, Any] = {
        "max_tokens": integer(body, max_tokens, 1),
        "temperature": _or(number(body, "temperature", 0, 2), 1.0),
        "top_p": _top_p(body),
        "top_k": max(0, _or(integer(body, "top_k", -1), 0)),  # -1 is off in vLLM
        "min_p": _or(number(body, "min_p", 0, 1), 0.0),
        "seed": None if seed is None else seed % (MAX_SEED + 1),
        "stop": strings(body, stop, MAX_STOPS),
    }
    further: dict[str, Any] = {
        "presence_penalty": number(body, "presence_penalty", -2, 2) or None,
        "frequency_penalty": number(body, "frequency_penalty", -2, 2) or None,
        "repetition_penalty": _repetition(body),
        "logit_bias": _logit_bias(body) or None,
        "logprobs": logprobs,
    }
    return Sampling(**values, **{key: value for key, value in further.items() if value is not None})


def asked_logprobs(body: Body) -> int | None:
    """How many likely tokens are to be told beside each token that is written; None: logprobs are not asked for."""
    most = integer(body, "top_logprobs", 0, MAX_TOP_LOGPROBS)
    if boolean(body, "logprobs"):
        return most or 0
    if most:
        raise InvalidRequest("/top_logprobs", "needs logprobs to be true")
    return None


def _top_p(body: Body) -> float:
    value = _or(number(body, "top_p", 0, 1), 1.0)
    return value or 1e-9  # 0 is the likeliest token alone


def _repetition(body: Body) -> float | None:
    value = number(body, "repetition_penalty", LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY)
    return None if value == 1 else value


def _logit_bias(body: Body) -> dict[int, float]:
    value = body.get("logit_bias")
    biases: Body = {} if value is None else mapping(value, "/logit_bias")
    for token, bias in biases.items():
        if not _BIAS_KEY.fullmatch(token):
            raise InvalidRequest(f"/logit_bias/{token}", "the keys are ids of tokens")
        if bias is None:
            raise InvalidRequest(f"/logit_bias/{token}", f"must be a number, not {kind(bias)}")
        number(biases, token, -100, 100, "/logit_bias")
    return {int(token): float(bias) for token, bias in biases.items()}


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
