"""What was written of a turn, in one generation or several, and the prompt that goes on after it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from toolgram.engines.base import Chunk, Prompt, Sampling
from toolgram.planning.plan import Plan
from toolgram.wire.format import WireFormat


@dataclass(slots=True)
class Written:
    """The text of a turn so far, and its tokens; the engine begins anew where something closes a part of it."""

    plan: Plan
    _text: list[str] = field(default_factory=list[str])
    _tokens: int = 0
    _before: tuple[int, int] = (0, 0)
    """The tokens and characters before the last generation."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._text)

    def take(self, chunk: Chunk) -> None:
        """A chunk that was written."""
        self._text.append(chunk.text)
        self._tokens += len(chunk.tokens)

    def prompt(self) -> Prompt:
        """The prompt of a generation that goes on after it."""
        text = self.text
        self._before = self._tokens, len(text)
        pieces = _marks(self.plan.format).split(text)
        # The model's own words stay words, whatever they spell; the marks of the format are tokens.
        parts = ((piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece)
        return (*self.plan.prompt_parts, *parts)

    def of_turn(self, chunk: Chunk) -> Chunk:
        """A chunk of the last generation, with its trace and usage counted from where the turn begins."""
        tokens, characters = self._before
        if not characters:
            return chunk
        trace = tuple(
            replace(point, position=point.position + tokens, offset=point.offset + characters) for point in chunk.trace
        )
        usage = chunk.usage and replace(chunk.usage, completion_tokens=chunk.usage.completion_tokens + tokens)
        return replace(chunk, trace=trace, usage=usage)

    def left(self, sampling: Sampling) -> Sampling:
        """The sampling of what follows: with the tokens that may still be written, and the choice at the first made."""
        if not self._text:
            return sampling
        most = None if sampling.max_tokens is None else max(1, sampling.max_tokens - self._tokens)
        return replace(sampling, max_tokens=most, choice=None)


@lru_cache(maxsize=64)
def _marks(format_: WireFormat) -> re.Pattern[str]:
    longest_first = sorted(format_.marks, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
