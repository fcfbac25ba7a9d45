"""The embedded engine: llama.cpp in this process, masks by llguidance."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from toolgram import work
from toolgram.engines.base import BrokenOff, Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.llama_cpp.generation import Generation
from toolgram.engines.llama_cpp.gguf_model import Cancel, Model
from toolgram.engines.llama_cpp.guide import Guides
from toolgram.engines.llama_cpp.outbox import Listener
from toolgram.engines.llama_cpp.scheduler import Request, Scheduler
from toolgram.errors import EngineError, PromptTooLong
from toolgram.work import in_thread

_MOST = 128  # requests at once
_KEPT = 32  # ended sequences that are remembered


class LlamaCpp:
    """Runs a GGUF file, many requests at once in one batch.

    `context` is in tokens, at most what the model was trained with: what a prompt and its answer may have together;
    None is that, or what a quarter of the memory holds that is free on this machine.
    `parallel` requests run at once, the others wait: clients have their turns in turn. `budget` is how many tokens all
    that is remembered may have, and as many again of what ended may be put aside (twice as many where they share
    memory, as far as a quarter of what is free holds them); None is a context for each that runs, where a sixteenth of
    the free memory holds so many, or else up to four, as far as a quarter does. With one for each, each request has a
    memory of its own, which is faster: where only some of more than 16 can have one, only so many run at once. What
    prompts have in common with each other, or with requests that ended, is evaluated once. What the grammar forces is
    appended without being sampled; while few requests run, values are drafted from the prompt, and a right draft gives
    several tokens in one pass. `threads` cores are used; None decodes with those that nobody else wants, half of all at
    most (single tokens with half of all, those of a small model with one), and reads prompts with all.

    The same prompt gets the same answer again where the answer does not depend on chance and no other request runs
    beside it; many at once move the last digits of the logits. A `deterministic` engine gives it always, on the same
    machine: it evaluates each request alone, drafts nothing, and reads again the last tokens of what prompts have in
    common, up to 64.

    Raises ModelError for a file that cannot be run or a context that does not fit into the memory, EngineError where
    llama.cpp cannot be loaded.
    """

    capabilities = Capabilities(dialects=("lark",), special_tokens=True, token_ids=True, choice=True, turns=True)

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None = None,
        parallel: int = 16,
        budget: int | None = None,
        threads: int | None = None,
        deterministic: bool = False,
    ) -> None:
        if min(1 if context is None else context, parallel, 1 if threads is None else threads) < 1:
            raise EngineError("context, parallel and threads must be at least 1")
        if parallel > _MOST:
            raise EngineError(f"parallel must be at most {_MOST}")
        self.path = Path(path)
        self._lock = threading.Lock()  # nothing is asked of the model once it is to be freed
        self._users = 0  # threads that ask the model for what needs no pass of it
        self._unused = threading.Condition(self._lock)
        self._closed = False
        self._running = set[Cancel]()
        self._process = os.getpid()
        # llama.cpp keeps a team of threads for each thread that calls it, and is not safe to call from two at once.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolgram-llama")
        try:
            self._model, self._guides = self._worker.submit(
                _load, self.path, context, threads, parallel, budget, deterministic
            ).result()
        except BaseException:
            self._worker.shutdown(wait=False)
            raise
        self._scheduler = Scheduler(self._model, self._worker, self._model.at_once, deterministic=deterministic)

    @property
    def context(self) -> int:
        """How many tokens prompt and answer may have together."""
        return self._model.context

    @property
    def architecture(self) -> str:
        """Of which architecture the model is, as llama.cpp names it."""
        return self._model.architecture

    @property
    def memory(self) -> str:
        """What is remembered at most, and the memory that it takes, in words."""
        model = self._model
        trained = "as trained" if model.context == model.trained else f"trained for {model.trained}"
        if model.asked is not None and model.asked > model.trained:
            trained = f"as trained, which is the most: {model.asked} were asked for"
        held = model.room * model.bytes_per_token + model.sequences * model.bytes_per_sequence
        kept = f"{held / 1e9:.1f} GB of memory for requests, up to {model.aside / 1e9:.1f} GB more for what ended"
        return f"context of {model.context} tokens ({trained}); {kept}"

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The text of each token that is a marker, and its id: for `constraint.bind`."""
        return self._model.vocabulary.special

    @property
    def tokens(self) -> Mapping[str, int]:
        """The text of each token, but for parts of characters, and its id: for `decision.bind`."""
        return self._model.vocabulary.by_text

    @property
    def most_characters(self) -> int:
        """How many characters a prompt may have at most: what has more is refused unread."""
        return self._model.context * self._model.vocabulary.longest

    def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has. Raises PromptTooLong for one that is far too long to be counted."""
        return len(self.tokenize(prompt))

    def tokenize(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt. Raises PromptTooLong for one that is far too long.

        Where the context is one token, in which nothing is evaluated, that is for any context of the model.
        """
        with self._used() as model:
            model.vocabulary.check_length(prompt, model.context if model.context > 1 else model.trained)
            return model.vocabulary.tokenize(prompt)

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included. Raises EngineError for an id that there is not."""
        with self._used() as model:
            pieces = model.vocabulary.pieces
        if wrong := [token for token in ids if not 0 <= token < len(pieces)]:
            raise EngineError(f"there is no token {wrong[0]}: the vocabulary has {len(pieces)}")
        return b"".join(pieces[token] for token in ids).decode(errors="replace")

    def compile(self, constraint: SupportsGrammar) -> None:
        """Make a grammar ready for `generate`. Raises GrammarError or GrammarRefused for one that cannot be used."""
        lark = constraint.grammar.to("lark")
        with self._used():
            self._guides.start(lark)

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer, one for each sampled token; closing the generator stops the work within a token.

        Raises GrammarRefused for a grammar that llguidance does not take, EngineError for a prompt that is empty or
        does not fit.
        """
        listener = Listener()
        generation = await in_thread(self._prepare, prompt, constraint, sampling)
        request = Request(generation, listener, work.client(), work.program())
        with self._lock:
            self._check_open()
            self._running.add(listener.cancel)
            self._scheduler.submit(request)
        try:
            while True:
                item = await listener.get()
                yield item
                if item.finish is not None:
                    return
        except BrokenOff:
            listener.cancel.set()
            while (item := await listener.get()).finish is None:
                pass
            yield replace(item, text="")
        finally:
            listener.cancel.set()
            with self._lock:
                self._running.discard(listener.cancel)

    def _prepare(self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling) -> Generation:
        """What needs no pass of the model, so that a great grammar does not hold up others."""
        lark = None if constraint is None else constraint.grammar.to("lark")
        ids = self.tokenize(prompt)
        with self._used() as model:
            room = model.context - len(ids)
            if not ids:
                raise EngineError("the prompt is empty")
            if room < 1:
                raise PromptTooLong(len(ids), model.context)
            prefix = model.vocabulary.prefix_after(ids)
            guide = None if lark is None else self._guides.start(lark, sampling.ends, prefix)
            return Generation(model.vocabulary, ids, guide, sampling, room)

    @contextmanager
    def _used(self) -> Generator[Model]:
        """The model, which is not freed meanwhile; others are not kept from it, nor the event loop."""
        with self._lock:
            self._check_open()
            self._users += 1
        try:
            yield self._model
        finally:
            with self._lock:
                self._users -= 1
                self._unused.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError("the engine is closed")
        if os.getpid() != self._process:
            raise EngineError("llama.cpp does not survive a fork: load the model in the process that uses it")

    def close(self) -> None:
        """Stop what runs, and free the memory; requests that wait end as cancelled."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for cancel in self._running:
                cancel.set()
            last = self._worker.submit(self._unload)
        last.result()
        self._worker.shutdown()

    def _unload(self) -> None:
        with self._lock:
            self._unused.wait_for(lambda: not self._users)
            del self._guides  # llguidance keeps a tree of the vocabulary, and a pointer into the model
            self._model.close()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _load(
    path: Path, context: int | None, threads: int | None, parallel: int, budget: int | None, deterministic: bool
) -> tuple[Model, Guides]:
    model = Model(path, context, threads, parallel=parallel, kept=_KEPT, budget=budget, alone=deterministic)
    return model, Guides(model.vocabulary)
