"""The loop that writes: evaluate, mask, choose, append."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolgram.engines.base import Chunk, FinishReason, Sampling, Usage
from toolgram.engines.masks import Guide
from toolgram.engines.model import Cancel, Cancelled, Model
from toolgram.engines.sampling import choose
from toolgram.engines.text import Detokenizer, StopScanner
from toolgram.errors import EngineError


@dataclass(slots=True)
class _Run:
    """One generation under way."""

    model: Model
    prompt: Sequence[int]
    guide: Guide | None
    sampling: Sampling
    cancel: Cancel
    ends: frozenset[int]
    left: int
    finish: FinishReason = "stop"
    cached: int = 0
    completion: int = 0
    forced: int = 0
    passes: int = 0
    prefill_seconds: float = 0.0

    def steps(self) -> Iterator[tuple[list[int], int]]:
        """The tokens of each forward pass, and how many of them were forced; at last `finish` is set."""
        random = np.random.default_rng(self.sampling.seed)
        began = time.perf_counter()
        self.cached = self.model.resume(self.prompt)
        pending = list(self.prompt[self.cached :])
        fresh = forced = self._forced()
        while True:
            if fresh:
                self.completion += len(fresh)
                self.forced += len(forced)
                yield fresh, len(forced)
            if self.guide is not None and self.guide.done:
                return
            if not self.left:
                self.finish = "length"
                return
            logits = self.model.evaluate(pending + fresh, self.cancel)
            self.passes += 1
            self.prefill_seconds = self.prefill_seconds or time.perf_counter() - began
            if self.guide is not None:
                logits = np.where(self.guide.allowed(), logits, np.float32(-np.inf))
            token = choose(logits, self.sampling, random)
            if token in self.ends and (self.guide is None or self.guide.accepting):
                return
            if self.guide is not None:
                self.guide.consume((token,))
            self.left -= 1
            forced = self._forced()
            pending, fresh = [], [token, *forced]

    def _forced(self) -> list[int]:
        """Tokens that the grammar forces: they are appended without a look at the logits."""
        if self.guide is None:
            return []
        tokens = self.guide.forced()[: self.left]
        self.guide.consume(tokens)
        self.left -= len(tokens)
        return tokens


def write(
    model: Model, prompt: Sequence[int], guide: Guide | None, sampling: Sampling, cancel: Cancel
) -> Iterator[Chunk]:
    """What the model writes after the prompt, a chunk for each forward pass, and one that says why it ended.

    Tokens that the grammar forces are appended with the token before them, in the same pass. Raises EngineError for a
    prompt that is empty, or that leaves no room in the context.
    """
    room = model.context - len(prompt)
    if not prompt:
        raise EngineError("the prompt is empty")
    if room < 1:
        raise EngineError(f"the prompt is {len(prompt)} tokens long, and the context holds only {model.context}")
    ends = model.vocabulary.ends_with(sampling.ends)
    run = _Run(model, prompt, guide, sampling, cancel, ends, left=min(room, sampling.max_tokens or room))
    detokenizer, scanner = Detokenizer(), StopScanner(sampling.stop)
    began = time.perf_counter()
    try:
        for tokens, forced in run.steps():
            piece = b"".join(model.vocabulary.pieces[token] for token in tokens)
            yield Chunk(scanner.feed(detokenizer.feed(piece)), tuple(tokens), forced)
            if scanner.stopped:
                run.finish = "stop"
                break
    except Cancelled:
        run.finish = "cancelled"
    usage = Usage(
        prompt_tokens=len(prompt),
        cached_tokens=run.cached,
        completion_tokens=run.completion,
        forced_tokens=run.forced,
        forward_passes=run.passes,
        prefill_seconds=run.prefill_seconds,
        decode_seconds=time.perf_counter() - began - run.prefill_seconds,
    )
    yield Chunk(scanner.finish(), finish=run.finish, usage=usage)
