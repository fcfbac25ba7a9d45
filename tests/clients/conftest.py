"""One server for the tests of all clients: the embedded model, and engines that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator

import pytest

from live_server import listening
from situations import CHATML
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.remote.http import Unavailable
from toolgram.errors import EngineError
from toolgram.models.catalog import default_model
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

KEY = "sk-right"


class Failing:
    """Says so many words, then fails; or says nothing for an hour."""

    capabilities = Capabilities(dialects=("gbnf",))

    def __init__(self, words: int, error: Callable[[str], Exception] | None) -> None:
        self._words = words
        self._error = error

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The words."""
        for _ in range(self._words):
            yield Chunk("word ", (1,))
        if self._error is not None:
            raise self._error("it is broken, as asked")
        await asyncio.sleep(3600)

    async def aclose(self) -> None:
        """Nothing to free."""


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A server of `smollm2` (also `gpt-4o-mini`), `broken`, `away` and `cut`, whose key is KEY."""
    path = default_model()
    models = [
        Served("smollm2", ChatTemplate.from_gguf(path), LlamaCpp(path, context=2048, threads=1), ("gpt-4o-mini",)),
        Served("broken", CHATML, Failing(0, EngineError)),
        Served("away", CHATML, Failing(0, Unavailable)),
        Served("cut", CHATML, Failing(3, EngineError)),
    ]
    with listening(create_app(models, Settings(api_keys=(KEY,)))) as at:
        yield at


@pytest.fixture(scope="session")
def narrow() -> Iterator[str]:
    """A server with one place, no queue, a second for a request and 4 KB for a body; its model never ends."""
    settings = Settings(api_keys=(KEY,), parallel=1, queue=0, timeout=1, max_body=4096)
    with listening(create_app([Served("slow", CHATML, Failing(1, None))], settings)) as at:
        yield at
