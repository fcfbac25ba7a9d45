"""The answer of OpenAI's `/v1/completions` as chunks, as vLLM and many others stream it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from toolgram.engines.base import Chunk, FinishReason, Logprob, Sampling, TokenLogprobs, Usage
from toolgram.engines.remote.http import Http, Json, Unavailable, text_of, understood

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",  # as Together has it
    "eos_token": "stop",  # as Text Generation Inference
    "stop_sequence": "stop",
    "content_filter": "stop",
    "length": "length",
    "abort": "cancelled",
}
_BYTES_OF_TOKEN = 4


def options(sampling: Sampling) -> Json:
    """What every server of this kind understands of the sampling, and that the answer is to be streamed."""
    given: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    if sampling.seed is not None:
        given["seed"] = sampling.seed
    # What OpenAI does not know is sent only where it is asked for: some servers refuse all that they do not know.
    if sampling.top_k:
        given["top_k"] = sampling.top_k
    if sampling.min_p:
        given["min_p"] = sampling.min_p
    if sampling.repetition_penalty != 1:
        given["repetition_penalty"] = sampling.repetition_penalty
    for name in ("presence_penalty", "frequency_penalty"):
        if penalty := getattr(sampling, name):
            given[name] = penalty
    if sampling.logit_bias:
        given["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    if sampling.logprobs is not None:
        given["logprobs"] = sampling.logprobs
    return given


class Counted:
    """The usage of a completion as far as its server does not tell it.

    Where there are no ids of tokens a piece of text counts as one, since servers of this kind send a token in each, and
    four bytes of a prompt as another, which is about what tokenizers make of them.
    """

    def __init__(self, prompt: str | Sequence[int]) -> None:
        is_text = isinstance(prompt, str)
        count = -(-len(prompt.encode(errors="replace")) // _BYTES_OF_TOKEN) if is_text else len(prompt)
        self.usage = Usage(count, estimated=is_text)

    def take(self, chunk: Chunk) -> None:
        """A chunk that the server sent."""
        known = len(chunk.tokens) or len(chunk.logprobs)
        estimated = self.usage.estimated or (not known and bool(chunk.text))
        count = self.usage.completion_tokens + (known or bool(chunk.text))
        self.usage = replace(self.usage, completion_tokens=count, estimated=estimated)


async def completion(
    http: Http, body: Mapping[str, Any], counted: Counted, top: int | None = None, path: str = "/v1/completions"
) -> AsyncGenerator[Chunk, None]:
    """The chunks of one completion of the body's prompt, which are `counted`, with the `top` most likely tokens.

    Raises Unavailable where the server fails, or breaks off before the end.
    """
    finish: FinishReason | None = None
    stopped_by: str | None = None
    told: Usage | None = None
    said = 0
    try:
        async with aclosing(http.events(path, body)) as events:
            async for event in events:
                with understood(http.url):
                    told = _usage(event.get("usage")) or told
                    choices: list[Json] = list(event.get("choices") or ())
                    chunks = [_chunk(choice, top) for choice in choices]
                for choice, chunk in zip(choices, chunks, strict=True):
                    if chunk.text or chunk.tokens or chunk.logprobs:
                        said += 1
                        counted.take(chunk)
                        yield chunk
                    if reason := choice.get("finish_reason"):
                        if not isinstance(reason, str) or reason not in _FINISH:
                            raise Unavailable(f"{http.url} ended for a reason of its own: {reason}")
                        finish = _FINISH[reason]
                        # vLLM's and SGLang's: a stop string, or the id of a token
                        word = choice.get("stop_reason", choice.get("matched_stop"))
                        stopped_by = word if isinstance(word, str) else None
    except Unavailable:
        if finish is None:  # else all was said, but for what it cost
            raise
    if finish is None:
        raise Unavailable(f"{http.url} broke off after {said} pieces of text")
    yield Chunk("", finish=finish, usage=told or counted.usage, stopped_by=stopped_by)


def _chunk(choice: Json, top: int | None) -> Chunk:
    tokens = tuple(map(int, choice.get("token_ids") or ()))
    return Chunk(text_of(choice.get("text") or ""), tokens, logprobs=_likely(choice.get("logprobs"), tokens, top))


def _likely(told: Json | None, ids: tuple[int, ...], top: int | None) -> tuple[TokenLogprobs, ...]:
    """How likely the tokens of a choice were; the ids of those that were not chosen are not told."""
    if not told or top is None:
        return ()
    if "content" in told:  # as llama-server has it, in the form of chat completions
        return tuple(likely_of(each, top) for each in told["content"])
    pieces: list[str] = told["tokens"]
    count = len(pieces)
    tokens = ids if len(ids) == count else (-1,) * count
    others: list[dict[str, float] | None] = told.get("top_logprobs") or [None] * count
    return tuple(
        TokenLogprobs(
            Logprob(token, piece.encode(errors="replace"), logprob),
            tuple(
                Logprob(token if other == piece else -1, other.encode(errors="replace"), likely)
                for other, likely in sorted((best or {}).items(), key=lambda item: -item[1])[:top]
            ),
        )
        for token, piece, logprob, best in zip(tokens, pieces, told["token_logprobs"], others, strict=True)
    )


def likely_of(told: Json, top: int) -> TokenLogprobs:
    """How likely a token was, and those beside it, in the form of chat completions."""
    return TokenLogprobs(_logprob(told), tuple(map(_logprob, (told.get("top_logprobs") or ())[:top])))


def _logprob(told: Json) -> Logprob:
    known = told.get("bytes")
    piece = told["token"].encode(errors="replace") if known is None else bytes(known)
    return Logprob(int(told.get("id", -1)), piece, told["logprob"])


def _usage(usage: Json | None) -> Usage | None:
    if not usage:
        return None
    details: Json = usage.get("prompt_tokens_details") or {}
    return Usage(
        prompt_tokens=int(usage.get("prompt_tokens") or 0),
        cached_tokens=int(details.get("cached_tokens") or 0),
        completion_tokens=int(usage.get("completion_tokens") or 0),
    )
