"""vLLM, over HTTP: `/v1/completions` with `structured_outputs`, and `/tokenize` (its OpenAI-compatible server).

Images go to `/inference/v1/generate`, which a server has that was started with --enable-scale-out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from toolgram.conversation.media import Media, lasting, media_in
from toolgram.engines.base import BrokenOff, Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.completions import Counted, completion, options
from toolgram.engines.remote.enforcement import PROBE, NotEnforced, keeps_to_grammars
from toolgram.engines.remote.http import Http, Json, Refused, Unavailable, understood
from toolgram.engines.remote.replicas import Upstreams
from toolgram.engines.remote.tokenizer import ServerTokens
from toolgram.engines.structured_outputs import VllmDialect, structured_outputs
from toolgram.errors import EngineError, InvalidRequest, PromptTooLong
from toolgram.grammar.constraint import Constraint
from toolgram.work import in_thread

_COMPLETIONS, _GENERATE = "/v1/completions", "/inference/v1/generate"
_MOST_BIAS = 100
_DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


class Vllm:
    """One vLLM server, or several that hold the same model, at `urls`.

    `dialect` says how constraints are sent, and goes with the server's `--structured-outputs-config.backend`: "ebnf" or
    "structural_tag" with xgrammar, "lark" with guidance. (With the backend `auto` a server's first request decides for
    all of its life.) EBNF in which markers are tokens is sent as the one part of a structural tag. `model` is the name
    that the server serves; None is its only one. `timeout` is how many seconds a server may be silent, a wait in its
    queue included.

    Before the first grammar each server is asked to write a few characters under one: a vLLM that was started with
    `--reasoning-parser` enforces none on what it takes for reasoning, and one before 0.11 ignores them, without a word.

    Images stand where the chat template writes what stands for one.
    """

    is_one_of_several = False  # it runs its one model from the start

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        model: str | None = None,
        dialect: VllmDialect = "ebnf",
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
        self._dialect: VllmDialect = dialect
        self._context: int | None = None  # as the server's tokenizer tells it
        self._sees = False  # as far as is known
        self.capabilities = Capabilities(
            dialects=(dialect,), special_tokens=True, lazy=dialect != "lark", token_ids=True
        )

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer; closing the generator disconnects, which stops the server's work.

        A server that fails before the first token is replaced by another. Raises EngineError where none is left, one
        fails later, does not enforce grammars, or refuses the request, and InvalidRequest for an image without a place.
        """
        media = media_in(prompt)
        ids = await self._tokens.ids(await self._with_placeholders(prompt) if media else prompt)
        if self._context is not None and len(ids) >= self._context:
            raise PromptTooLong(len(ids), self._context)
        # More than that is refused, and without a number vLLM writes 16 tokens; but not where it counts images itself.
        if self._context is not None and not media:
            room = self._context - len(ids)
            sampling = replace(sampling, max_tokens=min(sampling.max_tokens or room, room))
        ends = await self._tokens.known(sampling.ends)
        asked = {
            **options(sampling),
            "stop": list(sampling.stop),
            "stop_token_ids": list(ends.values()),
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }
        if constraint is not None:
            asked["structured_outputs"] = await self._constrained(constraint, ends)
        counted = Counted(ids)  # of one attempt: there is another one before the first token alone
        path, body = (_GENERATE, _seen(ids, media, asked)) if media else (_COMPLETIONS, _read(ids, asked))

        async def write(http: Http) -> AsyncGenerator[Chunk, None]:
            if constraint is not None:
                await self._check_enforced(http)
            told = completion(http, {**self._model, **body}, counted, sampling.logprobs, path)
            async with aclosing(told) as chunks:
                async for chunk in chunks:
                    yield chunk

        try:
            async with aclosing(self._upstreams.run(lasting(prompt), write)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except BrokenOff:
            yield Chunk("", finish="cancelled", usage=counted.usage)

    async def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has."""
        return len(await self._tokens.ids(prompt))

    async def sees(self) -> bool:
        """Whether the model is shown images: it takes some, and each server was started with --enable-scale-out.

        A server that was not may be started anew, and is asked again. Raises EngineError where none answers.
        """
        silent: list[Unavailable] = []
        for server in () if self._sees else self._servers:
            try:
                if not await self._takes_images(server):
                    return False
            except Unavailable as error:  # another one may do its work
                silent.append(error)
        if len(silent) == len(self._servers):
            raise silent[-1]
        self._sees = True
        return True

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

    async def _with_placeholders(self, prompt: Prompt) -> Prompt:
        """The prompt with what stands for an image in the place of each. Raises InvalidRequest where there is nothing
        that does so, or what any text could spell."""
        first = media_in(prompt)[0]  # the template writes all alike
        if not first.placeholder:
            raise InvalidRequest(first.pointer, "the chat template shows no image, so that vLLM has no place for it")
        if not self._tokens.any_special(await self._tokens.ids(((first.placeholder, True),))):
            reason = f"the chat template shows an image as {first.placeholder!r}, which is no token, but any text's"
            raise InvalidRequest(first.pointer, reason)
        return tuple((first.placeholder, True) if isinstance(text, Media) else (text, trust) for text, trust in prompt)

    async def _takes_images(self, http: Http) -> bool:
        """An image is tokenized in a message as a template shows it, and refused where the model takes none."""
        shown = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": _DOT}}]}
        try:
            await http.post("/tokenize", {**self._model, "messages": [shown]})
        except Unavailable:
            raise
        except EngineError:
            return False
        # All of it is wrong, so that nothing is written. Who finds no fault with a field does not know it: versions
        # before 0.32 leave images out without a word.
        wrong: Json = {"token_ids": [], "content_parts": 0, "output_mode": "", "sampling_params": {}}
        try:
            await http.post(_GENERATE, {**self._model, **wrong})
        except Unavailable as error:
            if error.status is None:
                raise
            return False
        except EngineError as error:
            return all(name in str(error) for name in ("content_parts", "output_mode"))
        return False

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
        markers = constraint.markers if isinstance(constraint, Constraint) else ()
        tokens = {**await self._tokens.known(markers), **ends}
        return await in_thread(structured_outputs, constraint, self._dialect, tokens, ends)

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


def _read(ids: list[int], asked: Json) -> Json:
    """What is asked of a completion of these tokens."""
    return {"prompt": ids, "return_token_ids": True, **asked}


def _seen(ids: list[int], media: Sequence[Media], asked: Json) -> Json:
    """What is asked of a completion of these tokens, as the endpoint takes it that takes images."""
    streamed = ("stream", "stream_options")
    sampling = {name: value for name, value in asked.items() if name not in streamed and value is not None}
    if bias := sampling.get("logit_bias"):  # as `/v1/completions` bounds it
        sampling["logit_bias"] = {token: max(-_MOST_BIAS, min(_MOST_BIAS, added)) for token, added in bias.items()}
    return {
        "token_ids": ids,
        "content_parts": [{"type": "image_url", "url": each.url} for each in media],
        "sampling_params": sampling,
        "output_mode": "text",
        **{name: asked[name] for name in streamed},
    }
