"""One generation: what is to be evaluated next, and what follows from the logits."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolgram.engines.base import Choice, Chunk, FinishReason, Logprob, Sampling, TokenLogprobs, TracePoint, Usage
from toolgram.engines.llama_cpp.guide import Guide
from toolgram.engines.llama_cpp.numbers import has_thousands
from toolgram.engines.llama_cpp.prompt_lookup import Drafter
from toolgram.engines.llama_cpp.sampling import Logits, Sampler, biased, log_odds, logprobs_of, one_side, ruled_out
from toolgram.engines.llama_cpp.spelling import is_opening
from toolgram.engines.llama_cpp.vocabulary import Vocabulary
from toolgram.engines.stops import Detokenizer, StopScanner

_LOOK_BACK = 12  # tokens that a draft goes on from, or a number is looked for in
# Where a number or a quoted or tagged text was under way, and what is forced does not go on with it. That is all that
# may be asked about: each answer costs a row of logits, and at the end of a text a pass.
_IN_NUMBER, _NUMBER_GOES_ON = re.compile(rb"[0-9],?\Z"), re.compile(rb"[0-9.eE]")
_IN_TEXT, _TEXT_ENDS = re.compile(rb"[^\"'`)\]}>:,\n]\Z"), re.compile(rb"[\"'](?!\s*[:=])|[\n<]")


@dataclass(frozen=True, slots=True)
class _Watched:
    """A forced token whose place the model's logits are still wanted for: the point but for what they say."""

    at: int
    offset: int
    allowed: NDArray[np.bool_]


class Generation:
    """A text under way. `tokens` are the prompt and all that was written, whether it was evaluated yet or not.

    Tokens that the grammar forces are appended with the token before them, and evaluated in the same pass. `begin`
    comes first, then `advance` with the logits after the last of `tokens`, again and again until `finish` is set.
    What `draft` gives may be evaluated with `tokens`: its logits serve for `advance` as far as it was written then.

    A traced one may have a token `watched`: `look` wants the logits before it, as soon as they are there. If it is
    `over`, there is nothing else to evaluate.
    """

    def __init__(
        self, vocabulary: Vocabulary, prompt: Sequence[int], guide: Guide | None, sampling: Sampling, room: int
    ) -> None:
        self.tokens = list(prompt)
        self.finish: FinishReason | None = None
        self.cached: int | None = None  # of the prompt, once it is known
        self._prompt_tokens = len(prompt)
        self._prefix = vocabulary.prefix_after(prompt)  # until something is written
        self._vocabulary = vocabulary
        self._guide = guide
        self._sampling = sampling
        self._sampler = Sampler(sampling, prompt)
        self._ends = vocabulary.ends_with(sampling.ends)
        self._left = min(room, sampling.max_tokens or room)
        self._detokenizer, self._scanner = Detokenizer(), StopScanner(sampling.stop)
        self._characters = 0  # of the text, with what may still begin a stop string
        self._watched: _Watched | None = None
        self._looked: tuple[TracePoint, ...] = ()
        self.over = False
        self._forced = self._passes = 0
        self._began = self._read = 0.0
        self._log_odds: float | None = None
        self._later_log_odds: float | None = None
        self._after = sampling.later.after.encode() if sampling.later else b""
        self._last = b""  # of the bytes that were written, as many as the later choice comes after

    @property
    def writing(self) -> bool:
        """Whether the prompt was read."""
        return self._passes > 0

    @property
    def begun(self) -> bool:
        """Whether the work on it began."""
        return self._began > 0

    def begin(self) -> Chunk | None:
        """The work begins; what the grammar forces at once."""
        self._began = time.perf_counter()
        return self._write([], [])

    @property
    def watched(self) -> int | None:
        """The place of a token before which the logits are wanted, whatever was written there."""
        return None if self._watched is None else self._watched.at

    def found(self, known: int) -> None:
        """Tell how many of the tokens need not be read, since others had them."""
        if self.cached is None:  # else it is what this one read itself
            self.cached = min(known, self._prompt_tokens)
        if self._watched is not None and self._watched.at <= known:
            self._watch(None)

    def draft(self) -> list[int]:
        """What may well be written next, as the grammar allows it; only under a grammar: it rules out most errors."""
        if self._guide is None or not self.writing or self.over:
            return []
        draft = self._drafter.propose(self._written_last())
        return self._guide.allowed_beginning(draft[: self._left - 1])

    def learn(self, drafted: int, taken: int) -> None:
        """Tell how many tokens of the draft were evaluated, and how many of them were written then."""
        if drafted:
            self._drafter.learn(drafted, taken)

    def advance(self, logits: Logits, *, drafted: bool = False) -> Chunk | None:
        """Choose a token; the text that it adds, with what is forced after it. None if it ends the text.

        `drafted`: the logits were left from the pass before.
        """
        self._passes += not drafted
        self._read = self._read or time.perf_counter()
        logits = self._sampler.adjusted(logits)
        choice, odds = self._choice(), 0.0
        if choice is not None:
            odds = log_odds(self._allowed(logits), choice.tokens)
            self._note(choice, odds)
            logits = biased(logits, choice)
        alone, logits = logits, self._allowed(self._meant(logits))
        token = self._sampler.choose(logits if choice is None else self._decided(logits, choice, odds))
        if token in self._ends and (self._guide is None or self._guide.accepting):
            self.finish = "stop"
            return None
        trace, self._looked = self._looked, ()
        written = [token]
        if self._guide is not None:
            allowed = self._guide.allowed()
            written = self._guide.join(self._taken(token, logits, self._guide), self._left)
            if self._sampling.trace:
                trace += (self._point(len(self.tokens), written[0], self._characters, alone, allowed),)
        top = self._sampling.logprobs
        likely = [] if top is None else [logprobs_of(logits, written[0], top, self._vocabulary.pieces)]
        return self._write(written, likely, trace)

    def _taken(self, token: int, logits: Logits, guide: Guide) -> int:
        """The token that is written where the model chose this one."""
        while instead := guide.take(token):  # one of these may itself promise too much
            longer = np.full_like(logits, -np.inf)
            longer[instead] = logits[instead]
            token = self._sampler.choose(longer)
        return token

    def _choice(self) -> Choice | None:
        choice = self._sampling.choice
        if choice is not None and self._log_odds is None:
            return replace(choice, tokens=self._prefix.beside(choice.tokens)) if self._prefix else choice
        return self._sampling.later if self._after and self._last == self._after else None

    def _note(self, choice: Choice, odds: float) -> None:
        if choice is not self._sampling.later:
            self._log_odds = odds
        elif self._later_log_odds is None:
            self._later_log_odds = odds

    def _decided(self, logits: Logits, choice: Choice, odds: float) -> Logits:
        """With a bias it is the sides that are chosen between: many ways to begin a text are no less likely for that.

        Without one the token is the model's, as any other engine would choose it.
        """
        if not choice.bias:
            return logits
        return one_side(logits, choice.tokens, self._sampler.side(odds + choice.bias))

    def _meant(self, logits: Logits) -> Logits:
        """The logits with what the grammar takes as likely as what the model means by it and spells otherwise."""
        if self._guide is None:
            return logits
        last = self._vocabulary.pieces[self.tokens[-1]] if self.tokens else b""
        allowed = self._guide.allowed()
        logits = self._vocabulary.spelling.meant(logits, allowed, opened=is_opening(last))
        if last[-1:].isdigit():
            logits = self._vocabulary.numbers.meant(logits, allowed, self._is_thousands)
        return self._vocabulary.escapes.meant(logits, allowed, opened=last.endswith(b"\\"))

    def _is_thousands(self) -> bool:
        """Whether a comma behind the number that was written last goes on with it, as in the prompt."""
        return has_thousands(self._drafter.text, self._written_last())

    @cached_property
    def _drafter(self) -> Drafter:
        return Drafter(self.tokens[: self._prompt_tokens], self._vocabulary.pieces)

    def _written_last(self) -> bytes:
        written = self.tokens[max(self._prompt_tokens, len(self.tokens) - _LOOK_BACK) :]
        return b"".join(map(self._vocabulary.pieces.__getitem__, written))

    def _allowed(self, logits: Logits) -> Logits:
        return logits if self._guide is None else np.where(self._guide.allowed(), logits, np.float32(-np.inf))

    def look(self, logits: Logits) -> None:
        """What the model alone would have written where a token was forced."""
        if self._watched is None:
            return
        at, watched = self._watched.at, self._watched
        logits = self._sampler.adjusted(logits)
        point = self._point(at, self.tokens[at], watched.offset, logits, watched.allowed, forced=True)
        self._looked += (point,)
        self._watch(None)

    def _point(
        self, at: int, token: int, offset: int, logits: Logits, allowed: NDArray[np.bool_], *, forced: bool = False
    ) -> TracePoint:
        preferred, removed = ruled_out(logits, allowed)
        position = at - self._prompt_tokens
        return TracePoint(position, token, preferred, self._vocabulary.pieces[preferred], removed, offset, forced)

    def _watch(self, watched: _Watched | None) -> None:
        self._watched = watched
        if watched is None and self.over:
            self.finish = "stop"

    def _write(
        self, tokens: list[int], likely: list[TokenLogprobs], trace: tuple[TracePoint, ...] = ()
    ) -> Chunk | None:
        """Append tokens, of which the first is the model's choice, and what is forced after them."""
        self._left -= len(tokens)
        text = self._decoded(tokens)
        chosen, after = tokens[:1], self._force(after=tokens)
        text += self._decoded(after)
        tokens += after
        forced = tokens[len(chosen) :]
        if self._guide is not None and self._guide.done:
            self.over = self._watched is not None
            self.finish = None if self.over else "stop"
        elif self._left <= 0:
            self.finish = "length"
        if not tokens:
            return None
        self.tokens += tokens
        self._forced += len(forced)
        self._sampler.note(tokens)
        text = self._scanner.feed(text)
        if self._scanner.stopped:
            self.finish = "stop"
        if self._sampling.logprobs is not None:
            likely += map(self._certain, forced)
        return Chunk(text, tuple(tokens), len(forced), logprobs=tuple(likely), trace=trace)

    def _decoded(self, tokens: Sequence[int]) -> str:
        written = b"".join(map(self._vocabulary.pieces.__getitem__, tokens))
        if self._prefix and tokens:
            written, self._prefix = written.removeprefix(b" "), None
        self._last = (self._last + written)[-len(self._after) :] if self._after else b""
        text = self._detokenizer.feed(written)
        self._characters += len(text)
        return text

    def _force(self, after: Sequence[int]) -> list[int]:
        """Tokens that the grammar forces: they are appended without a look at the logits.

        Where they end a value that was under way `after` which they come, a traced generation wants these later.
        """
        if self._guide is None:
            return []
        tokens = self._guide.forced()[: self._left]
        if tokens and len(after) == 1 and self._sampling.trace and self._ends_a_value(after, tokens):
            allowed = self._guide.allowed()  # of a forced text only the token that is written
            allowed[self._vocabulary.beginning(tokens)] = True
            self._watch(_Watched(len(self.tokens) + len(after), self._characters, allowed))
        self._guide.consume(tokens)
        self._left -= len(tokens)
        return tokens

    def _ends_a_value(self, after: Sequence[int], forced: Sequence[int]) -> bool:
        before = b"".join(map(self._vocabulary.pieces.__getitem__, (*self.tokens[-1:], *after)))
        text = b"".join(map(self._vocabulary.pieces.__getitem__, forced[:2]))
        if _IN_NUMBER.search(before):
            return _NUMBER_GOES_ON.match(text) is None
        return bool(_IN_TEXT.search(before) and _TEXT_ENDS.match(text))

    def _certain(self, token: int) -> TokenLogprobs:
        alone = Logprob(token, self._vocabulary.pieces[token], 0.0)
        return TokenLogprobs(alone, (alone,) if self._sampling.logprobs else ())

    def last_chunk(self, finish: FinishReason) -> Chunk:
        """What was held back of the text, why it ended, and what it cost."""
        now = time.perf_counter()
        usage = Usage(
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self.cached or 0,
            completion_tokens=len(self.tokens) - self._prompt_tokens,
            forced_tokens=self._forced,
            forward_passes=self._passes,
            prefill_seconds=self._read - self._began if self._read else 0.0,
            decode_seconds=now - (self._read or now),
        )
        return Chunk(
            self._scanner.finish(),
            finish=finish,
            usage=usage,
            stopped_by=self._scanner.found,
            trace=self._looked,
            log_odds=self._log_odds,
            later_log_odds=self._later_log_odds,
        )
