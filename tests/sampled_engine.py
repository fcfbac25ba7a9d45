"""An engine that says anything that the grammar allows: sentences drawn from it, a few characters at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from toolgram.engines.base import (
    Capabilities,
    Chunk,
    FinishReason,
    Logprob,
    Prompt,
    Sampling,
    SupportsGrammar,
    TokenLogprobs,
    Usage,
)
from toolgram.engines.remote.http import Unavailable
from toolgram.engines.stops import StopScanner
from toolgram.errors import EngineError

CONTEXT = 100_000
_MOST = 60


class Sampled:
    """Sentences of the grammar, or plain words; a token is a byte. One in `failing` answers breaks off (0: none)."""

    capabilities = Capabilities(dialects=("gbnf", "lark", "ebnf"))
    context = CONTEXT

    def __init__(self, failing: int = 0) -> None:
        self._failing = failing
        self._chance = random.Random(1)

    async def generate(
        self, prompt: Prompt, constraint: Any | SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The sentence."""
        chance = self._chance
        await asyncio.sleep(0)
        if constraint is None:
            text = " ".join(chance.choices(("Hello.", "Zoë", "{", "</think>", "…"), k=chance.randrange(5)))
        else:
            text = await asyncio.to_thread(constraint.grammar.sample, chance.randrange(1000))
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        breaks = chance.randrange(len(pieces) + 1) if self._failing and not chance.randrange(self._failing) else None
        most = min(sampling.max_tokens or _MOST, _MOST)
        scanner = StopScanner((*sampling.stop, *sampling.ends))
        finish: FinishReason = "length" if len(pieces) > most else "stop"
        for number, piece in enumerate(pieces[:most]):
            if number == breaks:
                raise chance.choice((EngineError, Unavailable))("it broke off, as asked")
            await asyncio.sleep(0)
            yield Chunk(scanner.feed(piece), (number,), logprobs=_likely(piece, sampling.logprobs))
            if scanner.stopped:
                finish = "stop"
                break
        usage = Usage(len(prompt), 1, len(pieces), 1, 1)
        yield Chunk(scanner.finish(), finish=finish, usage=usage)

    async def aclose(self) -> None:
        """Nothing to free."""

    def count_tokens(self, prompt: Prompt) -> int:
        """A token is a byte."""
        return len(self.tokenize(prompt))

    def tokenize(self, prompt: Prompt) -> list[int]:
        """A token is a byte."""
        return list("".join(text for text, _ in prompt).encode())

    def detokenize(self, ids: Sequence[int]) -> str:
        """Bytes as text."""
        if wrong := [token for token in ids if token > 255]:
            raise EngineError(f"there is no token {wrong[0]}")
        return bytes(ids).decode(errors="replace")


def _likely(piece: str, top: int | None) -> tuple[TokenLogprobs, ...]:
    if top is None:
        return ()
    one = Logprob(1, piece.encode(), -0.5)
    return (TokenLogprobs(one, (one,) * top),)
