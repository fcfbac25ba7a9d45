"""What was written of a turn, in one generation or several, and the prompt that goes on after it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from toolgram.engines.base import Chunk, Prompt, Sampling, Usage
from toolgram.planning.plan import Plan
from toolgram.wire.format import WireFormat


@dataclass(slots=True)
class Written:
    """The text of a turn so far, and its tokens; the engine begins anew where something closes a part of it."""

    plan: Plan
    _text: list[str] = field(default_factory=list[str])
    _tokens: int = 0
    _forced: int = 0
    _before: tuple[int, int, int] = (0, 0, 0)
    """The tokens, the forced ones of them, and the characters before the last generation."""
    _broken: Chunk = field(default_factory=lambda: Chunk(""))
    """What those before it tell of themselves together."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._text)

    def take(self, chunk: Chunk) -> None:
        """A chunk that was written."""
        self._text.append(chunk.text)
        self._tokens += len(chunk.tokens)
        self._forced += chunk.forced

    def broke_off(self, last: Chunk | None) -> None:
        """A generation was broken off: the chunk that its engine gave at last, if it takes that."""
        if last is None:
            return
        before = self._broken
        self._broken = replace(
            _odds_of(before, last), usage=last.usage if before.usage is None else _one_turn(before.usage, last.usage)
        )

    def ended(self) -> tuple[Chunk, Usage]:
        """The last chunk of a turn that ends where its generation was broken off, and what the turn cost."""
        usage = self._broken.usage or Usage(completion_tokens=self._tokens, forced_tokens=self._forced)
        return replace(self._broken, text="", finish="stop"), usage

    def prompt(self) -> Prompt:
        """The prompt of a generation that goes on after it."""
        text = self.text
        self._before = self._tokens, self._forced, len(text)
        pieces = _marks(self.plan.format).split(text)
        # The model's own words stay words, whatever they spell; the marks of the format are tokens.
        parts = ((piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece)
        return (*self.plan.prompt_parts, *parts)

    def of_turn(self, chunk: Chunk) -> Chunk:
        """A chunk of the last generation, with what it tells counted from where the turn begins."""
        tokens, forced, characters = self._before
        if not characters:
            return chunk
        trace = tuple(
            replace(point, position=point.position + tokens, offset=point.offset + characters) for point in chunk.trace
        )
        chunk = replace(chunk, trace=trace)
        if chunk.usage is None:
            return chunk
        # Where no engine tells the prompt's own tokens, they are what was not written before.
        told = self._broken.usage or Usage(max(chunk.usage.prompt_tokens - tokens, 0))
        usage = replace(
            _one_turn(told, chunk.usage),
            completion_tokens=tokens + chunk.usage.completion_tokens,
            forced_tokens=forced + chunk.usage.forced_tokens,
        )
        return replace(_odds_of(self._broken, chunk), usage=usage)

    def left(self, sampling: Sampling) -> Sampling:
        """The sampling of what follows: with the tokens that may still be written, and the choice at the first made."""
        if not self._text:
            return sampling
        most = None if sampling.max_tokens is None else max(1, sampling.max_tokens - self._tokens)
        return replace(sampling, max_tokens=most, choice=None)


def _one_turn(first: Usage, then: Usage | None) -> Usage:
    """What two generations cost, of which one goes on after the other: its prompt is the turn's, and what it wrote."""
    whole = first + (then or Usage())
    return replace(whole, prompt_tokens=first.prompt_tokens, cached_tokens=first.cached_tokens)


def _odds_of(first: Chunk, then: Chunk) -> Chunk:
    """The last chunk of two generations, with the odds of whichever told them first."""
    return replace(
        then,
        log_odds=then.log_odds if first.log_odds is None else first.log_odds,
        later_log_odds=then.later_log_odds if first.later_log_odds is None else first.later_log_odds,
    )


@lru_cache(maxsize=64)
def _marks(format_: WireFormat) -> re.Pattern[str]:
    longest_first = sorted(format_.marks, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
