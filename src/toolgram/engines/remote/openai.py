"""Any server with OpenAI's `/v1/completions`, which takes no grammar."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from toolgram.engines.base import BrokenOff, Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.completions import Counted, completion, options
from toolgram.engines.remote.http import Http, Json
from toolgram.engines.stops import StopScanner

_MOST_STOPS = 4  # of OpenAI's; the rest is found here


class OpenAICompletions:
    """A server at `url` (with or without `/v1`) that completes a prompt with a model.

    Nothing is enforced: constraints are ignored, and said to be. The prompt is sent as text, so that special tokens in
    it are tokens, whoever wrote them; `toolgram.generate` breaks what a model's template knows of them in text that is
    not trusted. The ends of a turn are looked for as text. Where `max_tokens` is None the server
    decides (OpenAI's: 16). `timeout` is how many seconds the server may be silent.
    """

    capabilities = Capabilities(unenforced=True)

    def __init__(self, url: str, model: str, *, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._http = Http(url.rstrip("/").removesuffix("/v1"), api_key=api_key, timeout=timeout)
        self._model = model

    async def generate(
        self,
        prompt: Prompt,
        constraint: SupportsGrammar | None,
        sampling: Sampling,
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer; closing the generator disconnects. Raises EngineError where the server fails."""
        stops = tuple(dict.fromkeys((*sampling.stop, *sampling.ends)))
        body = await self._body("".join(text for text, _ in prompt), sampling)
        if constraint is not None:
            body |= await self._constrained(constraint, sampling.ends)
        if stops:
            body["stop"] = list(stops[:_MOST_STOPS])
        scanner, counted = StopScanner(stops), Counted(body["prompt"])
        try:
            async with aclosing(completion(self._http, body, counted, sampling.logprobs)) as chunks:
                async for chunk in chunks:
                    if chunk.finish is not None:
                        yield replace(chunk, text=scanner.finish())
                        return
                    yield replace(chunk, text=scanner.feed(chunk.text))
                    if scanner.stopped:
                        break
        except BrokenOff:
            yield Chunk("", finish="cancelled", usage=counted.usage)
            return
        yield Chunk("", finish="stop", usage=counted.usage, stopped_by=scanner.found)

    async def _body(self, prompt: str, sampling: Sampling) -> Json:
        """What is asked of the server, but for stop strings."""
        return {"model": self._model, "prompt": prompt, **options(sampling)}

    async def _constrained(self, constraint: SupportsGrammar, ends: tuple[str, ...]) -> Json:  # noqa: ARG002 - as `capabilities` says
        """What is asked of it for a constraint: there is no way to send one."""
        return {}

    async def check(self) -> None:
        """Raises EngineError unless the server is well."""
        await self._http.check("/v1/models")

    async def aclose(self) -> None:
        """Close the connections; the server stays."""
        await self._http.aclose()
