"""llama.cpp's own server, over HTTP: `/completion`, `/tokenize` (its `tools/server/README.md` describes both)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from sys import getsizeof
from typing import Any, cast
from urllib.parse import quote

from toolgram.caching import weighed
from toolgram.conversation.media import Media, media_in
from toolgram.engines.base import (
    BrokenOff,
    Capabilities,
    Chunk,
    FinishReason,
    Prompt,
    Sampling,
    SupportsGrammar,
    TokenLogprobs,
    Usage,
)
from toolgram.engines.forgery import broken
from toolgram.engines.remote.completions import likely_of
from toolgram.engines.remote.http import Http, Json, Unavailable, text_of, understood
from toolgram.engines.remote.tokenizer import ServerTokens
from toolgram.errors import EngineError, GrammarError
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.dialects.gbnf import read_gbnf
from toolgram.work import in_thread

_FINISH: dict[str, FinishReason] = {"eos": "stop", "word": "stop", "limit": "length"}
_WORD_TRIGGER = 1  # COMMON_GRAMMAR_TRIGGER_TYPE_WORD
_PENALIZED = 32_768  # the last tokens, of which penalties are taken; the server reserves memory for so many
_OLD_MARK = "<__media__>"  # of servers that tell none
_MOST = 2**31 - 1  # what is larger becomes another number there
_RANDOM_SEED = 2**32 - 1  # LLAMA_DEFAULT_SEED


class LlamaServer:
    """A llama-server at `url`, such as http://127.0.0.1:9931.

    One that runs several models (`llama-server` without a model, a router) is asked for the `model` of that name.
    `alive` is the address of what starts the server when it is asked for anything, and tells its health without that.
    A constraint with a trigger (`constraint.lazy()`) is enforced from the trigger on. `timeout` is how many seconds the
    server may be silent, a wait for a free slot included.

    The server counts tokens of the prompt for every penalty, and its logprobs are the model's own: before grammar,
    penalties, biases and temperature.
    """

    capabilities = Capabilities(dialects=("gbnf",), special_tokens=True, lazy=True, token_ids=True)

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        alive: str | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        # An idle connection keeps one of the server's few threads for seconds, in which others wait.
        self._http = Http(url, api_key=api_key, timeout=timeout, idle=0)
        self._tokens = ServerTokens(self._encode)
        self._alive = self._http if alive is None else Http(alive, api_key=api_key, idle=0)
        self._timeout = timeout
        self._named: Json = {} if model is None else {"model": model}

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer, a token each; closing the generator disconnects, which stops the server's work.

        Of a character that is spread over tokens the server tells only the last one.

        Raises EngineError where the server fails or refuses, and for a grammar that it would not understand.
        """
        given, count = await self._given(prompt)
        known = await self._tokens.known(sampling.ends)
        ends = frozenset(known.values())
        body = {**self._named, "prompt": given, **_options(sampling), **await self._constrained(constraint, known)}
        said = 0
        held: Chunk | None = None
        try:
            async with aclosing(self._http.events("/completion", body)) as events:
                async for event in events:
                    if event.get("stop"):
                        with understood(self._http.url):
                            last = _last(event, Usage(count, completion_tokens=said + len(_tokens(event))))
                        if held is not None:
                            yield replace(held, text="") if event.get("stop_type") == "eos" else held
                        yield last
                        return
                    if held is not None:
                        ended = bool(ends.intersection(held.tokens))  # the server does not take it for an end
                        yield replace(held, text="") if ended else held
                        if ended:
                            yield Chunk("", finish="stop", usage=Usage(count, completion_tokens=said))
                            return
                    with understood(self._http.url):
                        said = int(event.get("tokens_predicted", said + len(_tokens(event))))
                        likely = _likely(event, sampling.logprobs)
                        chunk = Chunk(text_of(event.get("content", "")), _tokens(event), logprobs=likely)
                    # A special token may be the end of the turn, which is no text: what comes next tells.
                    held = chunk if self._tokens.any_special(chunk.tokens) else None
                    if held is None:
                        yield chunk
        except BrokenOff:
            yield Chunk("", finish="cancelled", usage=Usage(count, completion_tokens=said))
            return
        raise Unavailable(f"{self._http.url} broke off after {said} tokens")

    async def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has."""
        return len(await self._tokens.ids(prompt))

    @property
    def is_one_of_several(self) -> bool:
        """Whether the server would load the model only to be asked about it."""
        return bool(self._named) or self._alive is not self._http

    async def sees(self) -> bool:
        """Whether the model is shown images. Raises EngineError where the server fails."""
        told = (await self._props()).get("modalities")
        return isinstance(told, dict) and cast("Json", told).get("vision") is True

    async def check(self) -> None:
        """Raises EngineError unless the server is well."""
        await self._alive.check("/health")

    async def aclose(self) -> None:
        """Close the connections; the server stays."""
        await self._http.aclose()
        await self._alive.aclose()

    async def _props(self) -> Json:
        model = self._named.get("model")
        path = "/props" if model is None else f"/props?model={quote(model, safe='')}"
        return await self._http.look(path, timeout=self._timeout) or {}

    async def _given(self, prompt: Prompt) -> tuple[list[int] | Json, int]:
        """A prompt as the server takes it, ids, or text where images are shown; and about how many tokens it has.

        The server looks up the texts of special tokens in such a text, so that those that are forged are broken.
        """
        media = media_in(prompt)
        if not media:
            ids = await self._tokens.ids(prompt)
            return ids, len(ids)
        if isinstance(prompt[-1][0], Media):
            raise EngineError("a prompt must go on behind an image: llama-server would end")
        # The mark of a server that was started again is another one, so that no text can have it but by chance.
        mark = str((await self._props()).get("media_marker") or _OLD_MARK)
        marked = tuple((mark, True) if isinstance(text, Media) else (text, trusted) for text, trusted in prompt)
        told, count = await self._tokens.as_text(broken(marked, re.compile(re.escape(mark))))
        text = "".join(text for text, _ in told)
        for begin in await self._added():
            text = text.removeprefix(begin)
        return {"prompt_string": text, "multimodal_data": [each.data for each in media]}, count

    async def _added(self) -> list[str]:
        """What the server puts before a prompt that is text."""
        body = {**self._named, "content": "", "add_special": True, "parse_special": True, "with_pieces": True}
        with understood(self._http.url):
            return [str(token["piece"]) for token in (await self._http.post("/tokenize", body))["tokens"]]

    async def _encode(self, text: str) -> list[tuple[int, str]]:
        body = {**self._named, "content": text, "add_special": False, "parse_special": True, "with_pieces": True}
        match await self._http.post("/tokenize", body):
            case {"tokens": [*tokens]} if all(isinstance(token, dict) for token in tokens):
                # A piece that is no UTF-8 comes as a list of bytes: it is no marker.
                with understood(self._http.url):
                    return [(int(token["id"]), str(token["piece"])) for token in tokens]
            case _:
                reason = f"{self._http.url}: /tokenize does not answer as llama-server's does: it is of another kind"
                raise EngineError(reason)

    async def _constrained(self, constraint: SupportsGrammar | None, ends: Mapping[str, int]) -> Json:
        preserved = list(self._tokens.seen)
        if constraint is None:
            return {"preserved_tokens": preserved}
        lazy: Json = {}
        if isinstance(constraint, Constraint):
            tokens = await self._tokens.known(constraint.markers)
            # Ends beside other tokens alone: a server of 2025 reads no ids of any (llama.cpp#17816).
            constraint = await in_thread(constraint.bind, {**tokens, **ends}, ends if tokens else ())
            preserved = list(self._tokens.seen)  # the text of others is not shown
            if constraint.trigger is not None:
                triggers = [{"type": _WORD_TRIGGER, "value": constraint.trigger}]
                preserved.append(constraint.trigger)  # the server refuses a trigger of one token that is not shown
                lazy = {"grammar_lazy": True, "grammar_triggers": triggers}
        gbnf = await in_thread(_written, constraint)
        return {"grammar": gbnf, "preserved_tokens": preserved, **lazy}


def _options(sampling: Sampling) -> dict[str, Any]:
    return {
        "stream": True,
        "return_tokens": True,
        "cache_prompt": True,
        "n_predict": -1 if sampling.max_tokens is None else min(sampling.max_tokens, _MOST),
        "samplers": ["penalties", "temperature", "top_k", "top_p", "min_p"],
        "temperature": sampling.temperature,
        "top_k": min(sampling.top_k, _MOST),
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "seed": _RANDOM_SEED if sampling.seed is None else sampling.seed % _RANDOM_SEED,
        "stop": list(sampling.stop),
        "repeat_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repeat_last_n": _PENALIZED,
        "logit_bias": [[token, bias] for token, bias in sampling.logit_bias.items()],
        "n_probs": 0 if sampling.logprobs is None else max(1, sampling.logprobs),  # 0 is none at all
    }


def _likely(event: Json, top: int | None) -> tuple[TokenLogprobs, ...]:
    """What an event tells of how likely its tokens were."""
    if top is None:
        return ()
    told: list[Json] = event.get("completion_probabilities", [])
    return tuple(likely_of(each, top) for each in told)


def _tokens(event: Json) -> tuple[int, ...]:
    return tuple(map(int, event.get("tokens", ())))


def _last(event: Json, counted: Usage) -> Chunk:
    """The last chunk, with the usage that was `counted` here as far as the server does not tell it."""
    timings = event.get("timings", {})
    said = int(event.get("tokens_predicted", counted.completion_tokens))
    usage = Usage(
        prompt_tokens=int(event.get("tokens_evaluated", counted.prompt_tokens)),
        cached_tokens=int(timings.get("cache_n", 0)),
        completion_tokens=said,
        forward_passes=said,
        prefill_seconds=timings.get("prompt_ms", 0) / 1000,
        decode_seconds=timings.get("predicted_ms", 0) / 1000,
    )
    finish = _FINISH.get(event.get("stop_type", ""), "cancelled")
    return Chunk(
        text_of(event.get("content", "")), finish=finish, usage=usage, stopped_by=event.get("stopping_word") or None
    )


def _written(constraint: SupportsGrammar) -> str:
    return _checked(constraint.grammar.to("gbnf"))


@weighed(getsizeof)
def _checked(grammar: str) -> str:
    """The grammar, if it is well formed: there are some that the server hangs on, or takes for none at all."""
    try:
        read_gbnf(grammar)
    except GrammarError as error:
        raise EngineError(f"the grammar is no GBNF: {error}") from error
    return grammar
