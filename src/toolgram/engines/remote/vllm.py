"""vLLM, over HTTP: `/v1/completions` with `structured_outputs`, and `/tokenize` (its OpenAI-compatible server)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Literal

from toolgram.engines.base import BrokenOff, Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.completions import Counted, completion, options
from toolgram.engines.remote.enforcement import PROBE, NotEnforced, keeps_to_grammars
from toolgram.engines.remote.http import Http, Json, Refused, understood
from toolgram.engines.remote.replicas import Upstreams
from toolgram.engines.remote.tokenizer import ServerTokens
from toolgram.errors import EngineError, PromptTooLong
from toolgram.grammar.constraint import Constraint
from toolgram.work import in_thread


class Vllm:
    """One vLLM server, or several that hold the same model, at `urls`.

    `dialect` says how constraints are sent, and goes with the server's `--structured-outputs-config.backend`: "ebnf" or
    "structural_tag" with xgrammar, "lark" with guidance. (With the backend `auto` a server's first request decides for
    all of its life.) EBNF in which markers are tokens is sent as the one part of a structural tag. `model` is the name
    that the server serves; None is its only one. `timeout` is how many seconds a server may be silent, a wait in its
    queue included.

    Before the first grammar each server is asked to write a few characters under one: a vLLM that was started with
    `--reasoning-parser` enforces none on what it takes for reasoning, and one before 0.11 ignores them, without a word.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        model: str | None = None,
        dialect: Literal["ebnf", "lark", "structural_tag"] = "ebnf",
        api_key: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        urls = [urls] if isinstance(urls, str) else urls
        addresses = [url.rstrip("/").removesuffix("/v1") for url in urls]
        self._servers = [Http(url, api_key=api_key, timeout=timeout) for url in addresses]
        self._enforcing = set[Http]()
        self._upstreams = Upstreams(self._servers)
        self._tokens = ServerTokens(self._encode)
        self._model: Json = {} if model is None else {"model": model}
        self._dialect = dialect
        self._context: int | None = None  # as the server's tokenizer tells it
        self.capabilities = Capabilities(
            dialects=(dialect,), special_tokens=True, lazy=dialect != "lark", token_ids=True
        )

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer; closing the generator disconnects, which stops the server's work.

        A server that fails before the first token is replaced by another. Raises EngineError where none is left, one
        fails later, does not enforce grammars, or refuses the request.
        """
        ids = await self._tokens.ids(prompt)
        if self._context is not None and len(ids) >= self._context:
            raise PromptTooLong(len(ids), self._context)
        if self._context is not None:  # more than that is refused, and without a number vLLM writes 16 tokens
            room = self._context - len(ids)
            sampling = replace(sampling, max_tokens=min(sampling.max_tokens or room, room))
        ends = await self._tokens.known(sampling.ends)
        body = {
            **self._model,
            "prompt": ids,
            **options(sampling),
            "stop": list(sampling.stop),
            "stop_token_ids": list(ends.values()),
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "return_token_ids": True,
        }
        if constraint is not None:
            body["structured_outputs"] = await self._constrained(constraint, ends)
        text = "".join(text for text, _ in prompt)
        counted = Counted(ids)  # of one attempt: there is another one before the first token alone
        write = partial(self._written, body=body, counted=counted)
        try:
            async with aclosing(self._upstreams.run(text, write)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except BrokenOff:
            yield Chunk("", finish="cancelled", usage=counted.usage)

    async def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has."""
        return len(await self._tokens.ids(prompt))

    async def check(self) -> None:
        """Raises EngineError unless a server is well."""
        await self._upstreams.check()

    async def aclose(self) -> None:
        """Close the connections; the servers stay."""
        await self._upstreams.aclose()

    async def check_enforced(self) -> None:
        """Raises NotEnforced where a server does not enforce grammars, EngineError where it cannot be asked."""
        for server in self._servers:
            await self._check_enforced(server)

    async def _written(self, http: Http, body: Json, counted: Counted) -> AsyncGenerator[Chunk, None]:
        if "structured_outputs" in body:
            await self._check_enforced(http)
        async with aclosing(completion(http, body, counted)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _check_enforced(self, http: Http) -> None:
        if http in self._enforcing:
            return
        try:
            enforced = await keeps_to_grammars(
                http, {**self._model, "structured_outputs": await self._constrained(PROBE, {})}
            )
        except Refused:  # the request itself is told what is wrong
            return
        if not enforced:
            raise NotEnforced(
                f"{http.url} does not keep to grammars: start vLLM without --reasoning-parser; "
                "one before 0.11, and a proxy between, may leave them unread"
            )
        self._enforcing.add(http)

    async def _constrained(self, constraint: SupportsGrammar, ends: Mapping[str, int]) -> Json:
        if isinstance(constraint, Constraint):
            # With guidance, and before vllm-project/vllm#49227, a grammar can end with the tokenizer's end token alone.
            tokens = {**await self._tokens.known(constraint.markers), **ends}
            constraint = await in_thread(constraint.bind, tokens, ends)
            if constraint.trigger is not None and self._dialect == "lark":
                raise EngineError(
                    'guidance takes no trigger: send the whole constraint, or use dialect="structural_tag"'
                )
            # From 0.33 on vLLM bars special tokens in what XGrammar compiles, unless that is a structural tag.
            barred = self._dialect == "ebnf" and tokens
            if constraint.trigger is not None or self._dialect == "structural_tag" or barred:
                return {"structural_tag": json.dumps(await in_thread(constraint.structural_tag))}
        if self._dialect == "structural_tag":
            raise EngineError("a grammar of one's own has no structural tag: use another dialect")
        return {"grammar": await in_thread(constraint.grammar.to, self._dialect)}

    async def _encode(self, text: str) -> list[tuple[int, str]]:
        body = {**self._model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}

        async def tokenize(http: Http) -> AsyncGenerator[Json, None]:
            yield await http.post("/tokenize", body)

        async with aclosing(self._upstreams.run("", tokenize)) as answers:
            answer = await anext(answers)
        match answer:
            case {"tokens": [*ids], "token_strs": [*texts]} if len(ids) == len(texts):
                self._context = answer.get("max_model_len")
                with understood("vLLM"):
                    return [(int(token), str(text)) for token, text in zip(ids, texts, strict=True)]
            case _:
                raise EngineError("the server's /tokenize does not answer as vLLM's does: it is of another kind")
