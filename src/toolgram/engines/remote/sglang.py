"""SGLang, over HTTP: `/v1/completions` and `/v1/tokenize`, by its `srt/entrypoints/openai`."""

from __future__ import annotations

from dataclasses import replace

from toolgram.engines.base import Sampling
from toolgram.engines.remote.completions import options
from toolgram.engines.remote.http import CHECK_SECONDS, Json, Refused, Unavailable, understood
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.errors import EngineError, PromptTooLong


class Sglang(OpenAICompletions):
    """An SGLang server at `url`; as of OpenAICompletions nothing is enforced.

    Special tokens stay in its text, where they mark calls. Where the server counts tokens (`/v1/tokenize`)
    the prompt is sent as ids, so that no start token is put before the template's own, and `max_tokens` None goes on to
    the end of the context, as on other engines; one that is older has to be given a number.
    """

    async def _body(self, prompt: str, sampling: Sampling) -> Json:
        ids = await self._ids(prompt)
        if ids is not None and (context := await self._context()) is not None:
            room = context - len(ids) - 1  # SGLang refuses what would fill the context to its last token
            if room < 1:
                raise PromptTooLong(len(ids), context)
            sampling = replace(sampling, max_tokens=min(sampling.max_tokens or room, room))
        if sampling.max_tokens is None:
            raise EngineError(f"{self._http.url} does not tell how long an answer may be: give max_tokens")
        body: Json = {"model": self._model, "prompt": prompt if ids is None else ids, **options(sampling)}
        return {**body, "skip_special_tokens": False}

    async def _ids(self, prompt: str) -> list[int] | None:
        """The ids of a prompt; None where the server does not tell them."""
        asked = {"model": self._model, "prompt": prompt, "add_special_tokens": False}
        try:
            answer = await self._http.post("/v1/tokenize", asked)
        except (Unavailable, Refused):
            raise
        except EngineError:  # an older one has no such path
            return None
        with understood(self._http.url):
            return list(map(int, answer["tokens"]))

    async def _context(self) -> int | None:
        """How many tokens prompt and answer may have together; None where the server does not tell.

        It is asked each time, since it may have been started again with another model.
        """
        listed = await self._http.look("/v1/models", timeout=CHECK_SECONDS) or {}
        with understood(self._http.url):
            lengths = [card.get("max_model_len") for card in listed.get("data", ())]
        return next((length for length in lengths if isinstance(length, int)), None)
