"""A bound for the model's reasoning: where it is reached that is closed, and what must follow still follows.

The request may set one; and where a call or an answer in a schema must follow, `max_tokens` leaves room for it.

It needs no help of the engine: the generation is stopped, and goes on from a prompt in which the reasoning is closed,
under what is left of the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolgram.chat.written import Written
from toolgram.engines.base import Chunk, Sampling, Usage
from toolgram.errors import GrammarError
from toolgram.planning.plan import Plan
from toolgram.wire.reader import Reader
from toolgram.wire.reader.unconstrained import LenientReader


@dataclass(slots=True)
class ReasoningBudget:
    """Counts the tokens of the reasoning of a turn, which `reader` reads; a chunk that tells no tokens counts as one.

    `most` is how many there may be, None for any number; `closed` says that there were to be more.
    """

    plan: Plan
    reader: Reader | LenientReader
    most: int | None
    closed: bool = False
    _thought: int = 0

    def take(self, chunk: Chunk) -> None:
        """A chunk that was written, and that the reader has read."""
        if self.reader.reasoning_closers:
            self._thought += len(chunk.tokens) or 1

    def closer(self, written: Written) -> str | None:
        """What closes the reasoning once it is as long as it may be; None while it goes on, or is over."""
        closers = self.reader.reasoning_closers
        if self.most is None or self._thought < self.most or not closers:
            return None
        held = self.reader.held.reasoning or ""
        rests = (closer[len(held) :] if closer.startswith(held) else closer for closer in closers)
        closer = next((rest for rest in rests if self._may_follow(written.text + rest)), None)
        self.closed = self.closed or closer is not None
        return closer

    def _may_follow(self, text: str) -> bool:
        try:
            self.plan.constraint_after_reasoning(text)
        except GrammarError:
            return False
        return True

    def noted(self, usage: Usage) -> Usage:
        """What the turn cost, with the tokens of the reasoning."""
        return replace(usage, reasoning_tokens=self._thought, reasoning_closed=self.closed)


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
