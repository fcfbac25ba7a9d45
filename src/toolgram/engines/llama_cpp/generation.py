"""One generation: what is to be evaluated next, and what follows from the logits."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from toolgram.engines.base import Chunk, FinishReason, Logprob, Sampling, TokenLogprobs, TracePoint, Usage
from toolgram.engines.llama_cpp.guide import Guide
from toolgram.engines.llama_cpp.prompt_lookup import Drafter
from toolgram.engines.llama_cpp.sampling import Logits, Sampler, logprobs_of, ruled_out
from toolgram.engines.llama_cpp.vocabulary import Vocabulary
from toolgram.engines.stops import Detokenizer, StopScanner

_LOOK_BACK = 12  # tokens that a draft goes on from


class Generation:
    """A text under way. `tokens` are the prompt and all that was written, whether it was evaluated yet or not.

    Tokens that the grammar forces are appended with the token before them, and evaluated in the same pass. `begin`
    comes first, then `advance` with the logits after the last of `tokens`, again and again until `finish` is set.
    What `draft` gives may be evaluated with `tokens`: its logits serve for `advance` as far as it was written then.
    """

    def __init__(
        self, vocabulary: Vocabulary, prompt: Sequence[int], guide: Guide | None, sampling: Sampling, room: int
    ) -> None:
        self.tokens = list(prompt)
        self.finish: FinishReason | None = None
        self.cached = 0
        self._prompt_tokens = len(prompt)
        self._vocabulary = vocabulary
        self._guide = guide
        self._sampling = sampling
        self._sampler = Sampler(sampling, prompt)
        self._ends = vocabulary.ends_with(sampling.ends)
        self._left = min(room, sampling.max_tokens or room)
        self._drafter: Drafter | None = None
        self._detokenizer, self._scanner = Detokenizer(), StopScanner(sampling.stop)
        self._forced = self._passes = 0
        self._began = self._read = 0.0

    @property
    def writing(self) -> bool:
        """Whether the prompt was read."""
        return self._passes > 0

    def begin(self) -> Chunk | None:
        """The work begins; what the grammar forces at once."""
        self._began = time.perf_counter()
        return self._write([], [])

    def found(self, known: int) -> None:
        """Tell how many of the tokens need not be read, since others had them."""
        if not self.writing:
            self.cached = min(known, self._prompt_tokens)

    def draft(self) -> list[int]:
        """What may well be written next, as the grammar allows it; only under a grammar: it rules out most errors."""
        if self._guide is None or not self.writing:
            return []
        if self._drafter is None:
            self._drafter = Drafter(self.tokens[: self._prompt_tokens], self._vocabulary.pieces)
        last = self.tokens[max(self._prompt_tokens, len(self.tokens) - _LOOK_BACK) :]
        draft = self._drafter.propose(b"".join(map(self._vocabulary.pieces.__getitem__, last)))
        return self._guide.allowed_beginning(draft[: self._left - 1])

    def learn(self, drafted: int, taken: int) -> None:
        """Tell how many tokens of the draft were evaluated, and how many of them were written then."""
        if self._drafter is not None and drafted:
            self._drafter.learn(drafted, taken)

    def advance(self, logits: Logits, *, drafted: bool = False) -> Chunk | None:
        """Choose a token; the text that it adds, with what is forced after it. None if it ends the text.

        `drafted`: the logits were left from the pass before.
        """
        self._passes += not drafted
        self._read = self._read or time.perf_counter()
        logits = self._sampler.adjusted(logits)
        alone = logits
        if self._guide is not None:
            logits = np.where(self._guide.allowed(), logits, np.float32(-np.inf))
        token = self._sampler.choose(logits)
        if token in self._ends and (self._guide is None or self._guide.accepting):
            self.finish = "stop"
            return None
        trace = self._traced(token, alone) if self._sampling.trace else ()
        if self._guide is not None:
            self._guide.consume((token,))
        self._left -= 1
        top = self._sampling.logprobs
        likely = [] if top is None else [logprobs_of(logits, token, top, self._vocabulary.pieces)]
        return self._write([token], likely, trace)

    def _traced(self, token: int, logits: Logits) -> tuple[TracePoint, ...]:
        """What the model alone would have written where this token is to follow."""
        if self._guide is None:
            return ()
        preferred, removed = ruled_out(logits, self._guide.allowed())
        position = len(self.tokens) - self._prompt_tokens
        return (TracePoint(position, token, preferred, self._vocabulary.pieces[preferred], removed),)

    def _write(
        self, tokens: list[int], likely: list[TokenLogprobs], trace: tuple[TracePoint, ...] = ()
    ) -> Chunk | None:
        """Append tokens and what is forced after them."""
        forced = self._force()
        tokens += forced
        if self._guide is not None and self._guide.done:
            self.finish = "stop"
        elif self._left <= 0:
            self.finish = "length"
        if not tokens:
            return None
        self.tokens += tokens
        self._forced += len(forced)
        self._sampler.note(tokens)
        text = self._scanner.feed(self._detokenizer.feed(b"".join(map(self._vocabulary.pieces.__getitem__, tokens))))
        if self._scanner.stopped:
            self.finish = "stop"
        if self._sampling.logprobs is not None:
            likely += map(self._certain, forced)
        return Chunk(text, tuple(tokens), len(forced), logprobs=tuple(likely), trace=trace)

    def _force(self) -> list[int]:
        """Tokens that the grammar forces: they are appended without a look at the logits."""
        if self._guide is None:
            return []
        tokens = self._guide.forced()[: self._left]
        self._guide.consume(tokens)
        self._left -= len(tokens)
        return tokens

    def _certain(self, token: int) -> TokenLogprobs:
        alone = Logprob(token, self._vocabulary.pieces[token], 0.0)
        return TokenLogprobs(alone, (alone,) if self._sampling.logprobs else ())

    def last_chunk(self, finish: FinishReason) -> Chunk:
        """What was held back of the text, why it ended, and what it cost."""
        now = time.perf_counter()
        usage = Usage(
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self.cached,
            completion_tokens=len(self.tokens) - self._prompt_tokens,
            forced_tokens=self._forced,
            forward_passes=self._passes,
            prefill_seconds=self._read - self._began if self._read else 0.0,
            decode_seconds=now - (self._read or now),
        )
        return Chunk(self._scanner.finish(), finish=finish, usage=usage, stopped_by=self._scanner.found)
