"""The server that comes with xllamacpp, in this process: what is documented of it holds for other versions too."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.llama_cpp.gguf_model import check_file
from toolgram.engines.llama_cpp.machine import cores
from toolgram.engines.llama_cpp.room import SMALL_CONTEXT, Room, room_of
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.errors import EngineError, ModelError
from toolgram.gguf_header import metadata

_SILENT = 86_400.0  # seconds: one that reads a long prompt says nothing, and where it ends so does this process


class LlamaObject:
    """Runs a GGUF file by llama.cpp's server, `parallel` requests at once, each in `context` tokens.

    Without a `context` that is what the model was trained for, as far as a quarter of the free memory holds it, and
    then no more requests run at once than that holds. The server listens on a port of this machine, and answers nobody
    but us. It samples every token: nothing is jumped over. Its penalties and logprobs are those of `LlamaServer`.
    With a projector, the file `mmproj`, the model is shown images. `context_length` is what prompt and answer may have
    together, in tokens, `architecture` llama.cpp's name for that of the model; `memory` says in words what the contexts
    take. Raises ModelError for a file that cannot be run, EngineError where xllamacpp cannot be loaded.
    """

    capabilities = LlamaServer.capabilities
    is_one_of_several = False

    def __init__(
        self,
        path: str | Path,
        *,
        mmproj: str | Path | None = None,
        context: int | None = None,
        parallel: int = 4,
        threads: int | None = None,
    ) -> None:
        if min(1 if context is None else context, parallel, 1 if threads is None else threads) < 1:
            raise EngineError("context, parallel and threads must be at least 1")
        self.path = Path(path)
        self._projector = None if mmproj is None else Path(mmproj)
        check_file(self.path)
        if self._projector is not None:
            _check_projector(self._projector)
        room = room_of(*filter(None, (self.path, self._projector)))
        if context is None:
            context, parallel = _fitting(room, parallel)
        self.context_length = context
        self.architecture = room.architecture
        held = parallel * (context * room.bytes_per_token + room.bytes_per_sequence)
        trained = "as trained" if context == room.trained else f"trained for {room.trained}"
        self.memory = f"context of {context} tokens ({trained}); {held / 1e9:.1f} GB of memory for {parallel} at once"
        key = secrets.token_urlsafe()
        self._server = _start(self.path, self._projector, context, parallel, threads, key, room.share)
        self._client = LlamaServer(self._server.listening_address, api_key=key, timeout=_SILENT)

    def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer, a token each; closing the generator stops the work.

        Raises EngineError for a grammar that is refused, or a prompt that does not fit.
        """
        if self._server is None:
            raise EngineError("the engine is closed")
        return self._client.generate(prompt, constraint, sampling)

    async def sees(self) -> bool:
        """Whether the model is shown images."""
        return self._projector is not None

    async def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has."""
        return await self._client.count_tokens(prompt)

    def close(self) -> None:
        """As `aclose`, for scripts."""
        asyncio.run(self.aclose())

    async def aclose(self) -> None:
        """Stop what runs, and free the memory."""
        await self._client.aclose()
        self._server = None  # the last reference: it stops

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _fitting(room: Room, parallel: int) -> tuple[int, int]:
    """How many tokens, and how many contexts of so many."""
    if room.share is None:
        return min(room.trained, SMALL_CONTEXT), parallel
    tokens = max(room.share - parallel * room.bytes_per_sequence, 0) // room.bytes_per_token
    context = min(room.trained, tokens or SMALL_CONTEXT)
    return context, max(min(tokens // context, parallel), 1)


def _check_projector(path: Path) -> None:
    """Raises ModelError for what is none, or one of sounds alone."""
    check_file(path)
    try:
        about = metadata(path)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be loaded: {error}") from error
    if about.get("clip.has_vision_encoder") is not True:
        raise ModelError(f"{path} is no projector for images: it comes beside the model, as mmproj-….gguf")


def _start(
    path: Path,
    projector: Path | None,
    context: int,
    parallel: int,
    threads: int | None,
    key: str,
    aside: int | None,
) -> Any:
    """The server, which may have so many bytes `aside` of what ended."""
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as `ffi` says
    try:
        xllamacpp: Any = import_module("xllamacpp")
    except ImportError as error:
        raise EngineError(f"xllamacpp cannot be loaded ({error}): pip install 'toolgram[embedded]'") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    if projector is not None:
        params.mmproj.path = str(projector)
    params.n_parallel = parallel
    params.n_ctx = context * parallel
    if aside is not None:
        params.cache_ram_mib = min(params.cache_ram_mib, aside >> 20)
    # Single tokens of a small model take no longer with one; what images are read with has no number of its own.
    params.cpuparams.n_threads = threads or (1 if projector is None else cores())
    params.cpuparams_batch.n_threads = threads or cores()
    params.api_keys = [key]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.verbosity = -1
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        beside = "" if projector is None else f" with {projector}, which may be of another model"
        raise ModelError(f"{path} cannot be loaded{beside}: {error}") from error
