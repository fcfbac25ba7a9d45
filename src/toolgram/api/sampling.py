"""The fields that say how tokens are chosen, of the APIs in OpenAI's manner, to a Sampling."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from toolgram.conversation.fields import MAX_INTEGER, Fields, Filled, Number, at_most, by, of
from toolgram.engines.base import LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY, Sampling, SamplingDefaults

T = TypeVar("T", int, float)

MAX_SEED = 2**63 - 1
MAX_STOPS = 64
"""OpenAI takes four; front ends for stories stop at the name of everybody in them."""
MAX_TEMPERATURE = 100
"""OpenAI takes two; no engine has a bound, and beside `min_p` higher ones make sense."""
MAX_BIASES = 1 << 14
MAX_TOP_LOGPROBS = 20

Stops = Annotated[list[Filled], Field(max_length=MAX_STOPS)]
Stop = Annotated[
    Annotated[Filled, of("one")] | Annotated[Stops, of("several")],
    by(lambda value: "one" if isinstance(value, str) else "several", "must be a string or a list"),
]
Limit = Annotated[int, Number(1, whole=True)]
_UNLIMITED = -1
MostTokens = Annotated[
    Limit | None,
    BeforeValidator(lambda value: None if value == _UNLIMITED else value),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_INTEGER}, {"const": _UNLIMITED}, {"type": "null"}]}
    ),
]
"""How many tokens an answer may have; -1 is no limit, as with llama.cpp."""
Penalty = Annotated[float, Number(-2, 2)]
_BIAS_KEY = "^[0-9]{1,9}$"


Biases = Annotated[
    dict[Annotated[str, Field(pattern=_BIAS_KEY)], Annotated[float, Number(-100, 100)]],
    at_most(MAX_BIASES),
    WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"pattern": _BIAS_KEY},
            "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
        }
    ),
]


class SamplingFields(Fields):
    """How tokens are chosen; what is absent is as the model's own configuration has it."""

    temperature: Annotated[float, Number(0, MAX_TEMPERATURE)] | None = None
    top_p: Annotated[float, Number(0, 1)] | None = None
    top_k: Annotated[int, Number(-1, whole=True)] | None = None
    min_p: Annotated[float, Number(0, 1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Number(LEAST_REPETITION_PENALTY, MOST_REPETITION_PENALTY)] | None = None
    logit_bias: Biases | None = None


class OpenAISampling(SamplingFields):
    """The fields that OpenAI's APIs have besides."""

    seed: Annotated[int, Number(-MAX_SEED - 1, MAX_SEED, whole=True)] | None = None
    stop: Stop | None = None


def unsaid(body: SamplingFields) -> frozenset[str]:
    """What a body does not say, so that the model's own defaults hold."""
    return frozenset(name for name in SamplingDefaults.names() if getattr(body, name) is None)


def sampling_of(
    body: SamplingFields,
    *,
    max_tokens: int | None,
    stop: str | list[str] | None = None,
    seed: int | None = None,
    logprobs: int | None = None,
) -> Sampling:
    """The sampling of a body, beside what each API calls by another name.

    `logprobs` is how many likely tokens are to be given beside each.
    """
    values: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": _or(body.temperature, 1.0),
        "top_p": _or(body.top_p, 1.0) or 1e-9,  # 0 is the likeliest token alone
        "top_k": max(0, _or(body.top_k, 0)),  # -1 is off in vLLM
        "min_p": _or(body.min_p, 0.0),
        "seed": None if seed is None else seed % (MAX_SEED + 1),
        "stop": () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop),
    }
    further: dict[str, Any] = {
        "presence_penalty": body.presence_penalty or None,
        "frequency_penalty": body.frequency_penalty or None,
        "repetition_penalty": None if body.repetition_penalty == 1 else body.repetition_penalty,
        "logit_bias": {int(token): float(bias) for token, bias in (body.logit_bias or {}).items()} or None,
        "logprobs": logprobs,
    }
    return Sampling(**values, **{key: value for key, value in further.items() if value is not None})


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
