"""`/v1/completions`: raw text after a raw prompt."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import Field

from toolgram.api.chat.body import StreamOptions, unused_options
from toolgram.api.chat.response import Head, usage_json
from toolgram.api.sampling import Limit, MostTokens, OpenAISampling, sampling_of, unsaid
from toolgram.conversation.answers import Form, form_of
from toolgram.conversation.fields import Filled, Number, Some, absent, by, further_of, json_of, of, validated
from toolgram.conversation.formats import Forms
from toolgram.engines.base import Logprob, Sampling, TokenLogprobs, Usage
from toolgram.errors import InvalidRequest

MAX_PROMPTS = 128
MAX_N = 128
MAX_LOGPROBS = 20

Json = dict[str, Any]

_Decoder = codecs.getincrementaldecoder("utf-8")
WITHOUT_EFFECT = frozenset(("user",))
Absent = Annotated[Any, absent("no engine here can do this: leave it out", empty=True)]
Ids = Some[Annotated[int, Number(0, whole=True)]]


def _prompt(value: Any) -> str | None:
    if isinstance(value, str):
        return "text"
    if not isinstance(value, list):
        return None
    given = cast("list[Any]", value)
    return "ids" if given and all(isinstance(item, int) for item in given) else "several"


OnePrompt = Annotated[
    Annotated[Filled, of("text")] | Annotated[Ids, of("ids")],
    by(lambda value: "text" if isinstance(value, str) else "ids", "must be a string or a list of token ids"),
]
Prompts = Annotated[
    Annotated[Filled, of("text")]
    | Annotated[Ids, of("ids")]
    | Annotated[Some[OnePrompt], Field(max_length=MAX_PROMPTS), of("several")],
    by(_prompt, "must be a string or a list"),
]


class CompletionBody(OpenAISampling, Forms):
    """A body of `/v1/completions`."""

    prompt: Prompts
    model: str | None = None
    max_tokens: MostTokens = None
    n: Annotated[int, Number(1, MAX_N, whole=True)] | None = None
    best_of: Limit | None = None
    echo: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    suffix: Absent = None
    logprobs: Annotated[int, Number(0, MAX_LOGPROBS, whole=True)] | None = None


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A body of `/v1/completions`; each prompt is a text, or the ids of its tokens."""

    prompts: tuple[str | tuple[int, ...], ...]
    sampling: Sampling
    unsaid: frozenset[str]
    form: Form | None
    model: str | None
    n: int
    echo: bool
    stream: bool
    include_usage: bool
    ignored: tuple[str, ...] = ()


def read_completion_request(body: Any) -> CompletionRequest:
    """The request that a body makes. Raises InvalidRequest with a pointer into the body."""
    checked = validated(CompletionBody, json_of(body))
    n = checked.n or 1
    if checked.best_of not in (None, n):
        raise InvalidRequest("/best_of", f"answers are not ranked here: leave it out, {checked.best_of} is not n")
    if checked.echo and checked.logprobs is not None:
        raise InvalidRequest("/logprobs", "those of the prompt, which echo asks for too, are not known: leave echo out")
    options = checked.stream_options
    return CompletionRequest(
        prompts=_prompts(checked.prompt),
        sampling=sampling_of(
            checked, max_tokens=checked.max_tokens, stop=checked.stop, seed=checked.seed, logprobs=checked.logprobs
        ),
        unsaid=unsaid(checked),
        form=form_of(checked),
        model=checked.model,
        n=n,
        echo=checked.echo or False,
        stream=checked.stream or False,
        include_usage=(options is not None and options.include_usage) or False,
        ignored=(
            *(name for name in checked.further if name not in WITHOUT_EFFECT),
            *further_of("structured_outputs", checked.structured_outputs),
            *further_of("response_format", checked.response_format),
            *unused_options(options, checked.stream),
        ),
    )


def _prompts(value: str | list[int] | list[str | list[int]]) -> tuple[str | tuple[int, ...], ...]:
    if isinstance(value, str):
        return (value,)
    if all(isinstance(item, int) for item in value):
        return (tuple(cast("list[int]", value)),)
    return tuple(item if isinstance(item, str) else tuple(item) for item in cast("list[str | list[int]]", value))


def together(usages: Mapping[int, Usage], n: int) -> Usage:
    """What the choices cost together, by their numbers; a prompt is counted once for its `n` choices."""
    ranges = (range(at, at + n) for at in range(0, max(usages, default=-1) + 1, n))
    prompts = [[usages[i] for i in range_ if i in usages] for range_ in ranges]
    return Usage(
        prompt_tokens=sum(max((one.prompt_tokens for one in told), default=0) for told in prompts),
        cached_tokens=sum(max((one.cached_tokens for one in told), default=0) for told in prompts),
        completion_tokens=sum(one.completion_tokens for one in usages.values()),
        estimated=any(one.estimated for one in usages.values()),
    )


@dataclass(slots=True)
class Likely:
    """How likely the tokens of a choice were, and where each begins in its text."""

    _offset: int = 0
    _decoder: codecs.IncrementalDecoder = field(default_factory=lambda: _Decoder("replace"))
    _tokens: list[TokenLogprobs] = field(default_factory=list[TokenLogprobs])

    def add(self, tokens: Sequence[TokenLogprobs]) -> None:
        """More tokens, which the next `take` tells."""
        self._tokens += tokens

    def take(self) -> Json | None:
        """What was added since the last time, in the shape of OpenAI's completions; None if that is nothing."""
        if not self._tokens:
            return None
        told, self._tokens = self._tokens, []
        offsets: list[int] = []
        for one in told:
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(one.chosen.piece))
        return {
            "tokens": [_text(one.chosen) for one in told],
            "token_logprobs": [one.chosen.logprob for one in told],
            "top_logprobs": [_tops(one.top) for one in told],
            "text_offset": offsets,
        }


def _tops(tokens: Sequence[Logprob]) -> dict[str, float]:
    """The likeliest tokens by their texts; of several with one text, as parts of characters have, the likeliest."""
    found: dict[str, float] = {}
    for token in tokens:
        found.setdefault(_text(token), token.logprob)
    return found


def _text(token: Logprob) -> str:
    return token.piece.decode(errors="replace")


def choice(index: int, text: str, finish: str | None, logprobs: Json | None = None) -> Json:
    """One choice of a completion, or of a chunk of it."""
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}


def text_completion(head: Head, choices: Sequence[Json], usage: Usage | None) -> Json:
    """A completion, or a chunk of one, which has no usage but at the end."""
    answer: Json = {
        "id": head.id,
        "object": "text_completion",
        "created": head.created,
        "model": head.model,
        "choices": list(choices),
    }
    return answer if usage is None else {**answer, "usage": usage_json([usage])}
