"""SGLang, over HTTP: `/v1/completions` and `/v1/tokenize`, by its `srt/entrypoints/openai`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from toolgram.engines.base import Capabilities, Sampling, SupportsGrammar
from toolgram.engines.remote.completions import options
from toolgram.engines.remote.enforcement import PROBE, NotEnforced, keeps_to_grammars
from toolgram.engines.remote.http import CHECK_SECONDS, Json, Refused, Unavailable, understood
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.errors import EngineError, PromptTooLong
from toolgram.grammar.constraint import Constraint
from toolgram.work import in_thread


class Sglang(OpenAICompletions):
    """An SGLang server at `url`.

    `dialect` says how grammars are sent, and goes with its `--grammar-backend`: "ebnf" with xgrammar, "lark" with
    llguidance; without one nothing is enforced, as of OpenAICompletions. Before the first grammar the server is asked
    to write a few characters under one.
    Special tokens stay in its text, where they mark calls. Where the server counts tokens (`/v1/tokenize`)
    the prompt is sent as ids, so that no start token is put before the template's own, and `max_tokens` None goes on to
    the end of the context, as on other engines; one that is older has to be given a number.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        dialect: Literal["ebnf", "lark"] | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        super().__init__(url, model, api_key=api_key, timeout=timeout)
        self._dialect = dialect
        self._enforces = False
        if dialect:
            self.capabilities = Capabilities(dialects=(dialect,), special_tokens=True)

    async def check_enforced(self) -> None:
        """Raises NotEnforced where the server does not enforce grammars, EngineError where it cannot be asked."""
        if self._dialect is None or self._enforces:
            return
        probe = await in_thread(PROBE.grammar.to, self._dialect)
        try:
            self._enforces = await keeps_to_grammars(self._http, {"model": self._model, "ebnf": probe})
        except Refused as error:
            raise NotEnforced(f"{self._http.url} does not take the grammars that toolgram writes: {error}") from error
        if not self._enforces:
            raise NotEnforced(f"{self._http.url} does not keep to grammars: start SGLang without --reasoning-parser")

    async def _constrained(self, constraint: SupportsGrammar, ends: tuple[str, ...]) -> Json:
        """SGLang's field for a grammar of any kind is called `ebnf`.

        It lets a grammar end with the end tokens of the model's configuration alone, which of a finetuned model is
        often that of its base (sgl-project/sglang#31533).
        """
        if self._dialect is None:
            return {}
        await self.check_enforced()
        if isinstance(constraint, Constraint):
            known = await self._known((*constraint.markers, *ends))
            constraint = await in_thread(constraint.bind, known, ends)
        return {"ebnf": await in_thread(constraint.grammar.to, self._dialect)}

    async def _known(self, texts: Iterable[str]) -> dict[str, int]:
        """Those of these texts that are one token, with its id; asked each time, as is the length of the context."""
        texts = list(texts)
        found = await self._encoded(texts) if texts else None
        return {text: ids[0] for text, ids in zip(texts, found, strict=True) if len(ids) == 1} if found else {}

    async def _body(self, prompt: str, sampling: Sampling) -> Json:
        encoded = await self._encoded([prompt])
        ids = encoded[0] if encoded else None
        if ids is not None and (context := await self._context()) is not None:
            room = context - len(ids) - 1  # SGLang refuses what would fill the context to its last token
            if room < 1:
                raise PromptTooLong(len(ids), context)
            sampling = replace(sampling, max_tokens=min(sampling.max_tokens or room, room))
        if sampling.max_tokens is None:
            raise EngineError(f"{self._http.url} does not tell how long an answer may be: give max_tokens")
        body: Json = {"model": self._model, "prompt": prompt if ids is None else ids, **options(sampling)}
        return {**body, "skip_special_tokens": False}

    async def _encoded(self, texts: list[str]) -> list[list[int]] | None:
        """The ids of each text; None where the server does not tell them."""
        asked = {"model": self._model, "prompt": texts, "add_special_tokens": False}
        try:
            answer = await self._http.post("/v1/tokenize", asked)
        except (Unavailable, Refused):
            raise
        except EngineError:  # an older one has no such path
            return None
        with understood(self._http.url):
            return [list(map(int, ids)) for ids in answer["tokens"]]

    async def _context(self) -> int | None:
        """How many tokens prompt and answer may have together; None where the server does not tell.

        It is asked each time, since it may have been started again with another model.
        """
        listed = await self._http.look("/v1/models", timeout=CHECK_SECONDS) or {}
        with understood(self._http.url):
            lengths = [card.get("max_model_len") for card in listed.get("data", ())]
        return next((length for length in lengths if isinstance(length, int)), None)
