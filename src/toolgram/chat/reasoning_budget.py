"""A bound for the model's reasoning: where it is reached that is closed, and what must follow still follows.

The request may set one; and where a call or an answer in a schema must follow, `max_tokens` leaves room for it.

It needs no help of the engine: the generation is stopped, and goes on from a prompt in which the reasoning is closed,
under what is left of the grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from toolgram.engines.base import Chunk, Prompt, Sampling, Usage
from toolgram.errors import GrammarError
from toolgram.grammar.constraint import Constraint
from toolgram.planning.plan import Plan
from toolgram.wire.format import WireFormat
from toolgram.wire.reader import Reader
from toolgram.wire.reader.unconstrained import LenientReader


@dataclass(slots=True)
class ReasoningBudget:
    """Counts the tokens of the reasoning of a turn, which `reader` reads; a chunk that tells no tokens counts as one.

    `most` is how many there may be, None for any number.
    """

    plan: Plan
    reader: Reader | LenientReader
    most: int | None
    _text: list[str] = field(default_factory=list[str])
    _thought: int = 0
    _written: int = 0
    _before: int = 0
    _characters_before: int = 0
    _closed: bool = False

    def take(self, chunk: Chunk) -> None:
        """A chunk that was written, and that the reader has read."""
        self._text.append(chunk.text)
        self._written += len(chunk.tokens)
        if self.reader.reasoning_closers:
            self._thought += len(chunk.tokens) or 1

    def closer(self) -> str | None:
        """What closes the reasoning, once it is as long as it may be; None while it goes on, or is over."""
        closers = self.reader.reasoning_closers
        if self.most is None or self._thought < self.most or not closers:
            return None
        held = self.reader.held.reasoning or ""
        rests = (closer[len(held) :] if closer.startswith(held) else closer for closer in closers)
        return next((rest for rest in rests if self._may_follow(rest)), None)

    def _may_follow(self, rest: str) -> bool:
        try:
            self.plan.constraint_after_reasoning("".join(self._text) + rest)
        except GrammarError:
            return False
        return True

    def continued(self) -> tuple[Prompt, Constraint | None]:
        """The prompt that goes on after what was written, and what constrains the rest."""
        self._before, self._closed = self._written, True
        text = "".join(self._text)
        self._characters_before = len(text)
        pieces = _marks(self.plan.format).split(text)
        # The model's own words stay words, whatever they spell; the marks of the format are tokens.
        parts = ((piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece)
        return (*self.plan.prompt_parts, *parts), self.plan.constraint_after_reasoning(text)

    def of_turn(self, chunk: Chunk) -> Chunk:
        """A chunk of the last generation with its trace and usage counted from where the turn begins."""
        if chunk.usage is not None:
            chunk = replace(chunk, usage=self.total(chunk.usage))
        if not self._closed or not chunk.trace:
            return chunk
        before = self._characters_before
        points = (replace(at, position=at.position + self._before, offset=at.offset + before) for at in chunk.trace)
        return replace(chunk, trace=tuple(points))

    def total(self, usage: Usage) -> Usage:
        """What the last generation cost, with the tokens that were written before it, and those of the reasoning."""
        written = usage.completion_tokens + self._before
        return replace(usage, completion_tokens=written, reasoning_tokens=self._thought, reasoning_closed=self._closed)

    def left(self, sampling: Sampling) -> Sampling:
        """The sampling with the tokens that may still be written."""
        if sampling.max_tokens is None:
            return sampling
        return replace(sampling, max_tokens=max(1, sampling.max_tokens - self._written))


def most_reasoning(plan: Plan, sampling: Sampling) -> int | None:
    """How many tokens of reasoning there may be, as the request says and `max_tokens` leaves; None for any number.

    What must follow keeps twice the tokens of the shortest way to write it, at two characters a token: so many as it
    has characters.
    """
    asked, follows = plan.request.reasoning_max_tokens, plan.after_reasoning
    if sampling.max_tokens is None or follows is None:
        return asked
    left = max(0, sampling.max_tokens - follows)
    return left if asked is None else min(asked, left)


@lru_cache(maxsize=64)
def _marks(format_: WireFormat) -> re.Pattern[str]:
    longest_first = sorted(format_.marks, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
