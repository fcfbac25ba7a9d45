"""An engine that says what it is told to: for tests and examples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from toolgram.engines.base import Capabilities, Chunk, FinishReason, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.stops import StopScanner
from toolgram.errors import EngineError


@dataclass(frozen=True, slots=True)
class Call:
    """What the engine was given."""

    prompt: Prompt
    constraint: SupportsGrammar | None
    sampling: Sampling

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "".join(text for text, _ in self.prompt)


_ALL = Capabilities(dialects=("gbnf", "lark", "ebnf"), special_tokens=True, lazy=True)


class Replay:
    """Answers the n-th call with the n-th recorded answer, in the given pieces.

    One piece counts as one token, the same one where it comes again: `max_tokens` and stop strings are honoured. With
    `fail_after` each call raises EngineError after that many pieces. `calls` records what was asked. Raises EngineError
    when no answer is left.
    """

    def __init__(
        self,
        *answers: str | Sequence[str],
        fail_after: int | None = None,
        capabilities: Capabilities = _ALL,
    ) -> None:
        self._answers = [(answer,) if isinstance(answer, str) else tuple(answer) for answer in answers]
        self._fail_after = fail_after
        self.capabilities = capabilities
        self.calls: list[Call] = []
        self.closed = False

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The recorded answer, piece by piece."""
        if len(self.calls) == len(self._answers):
            raise EngineError(f"there are only {len(self._answers)} recorded answers")
        pieces = self._answers[len(self.calls)]
        self.calls.append(Call(prompt, constraint, sampling))
        scanner = StopScanner((*sampling.stop, *sampling.ends))  # recorded text shows tokens as text
        finish: FinishReason = "stop"
        said = 0
        ids: dict[str, int] = {}
        for piece in pieces:
            if said == sampling.max_tokens:
                finish = "length"
                break
            if said == self._fail_after:
                raise EngineError(f"failed after {said} pieces, as asked")
            await asyncio.sleep(0)  # lets others run, as an engine that works would
            said += 1
            yield Chunk(scanner.feed(piece), (ids.setdefault(piece, len(ids) + 1),))
            if scanner.stopped:
                break
        usage = Usage(completion_tokens=said, forward_passes=said)
        yield Chunk(scanner.finish(), finish=finish, usage=usage, stopped_by=scanner.found)

    async def aclose(self) -> None:
        """Nothing to free; `closed` remembers it."""
        self.closed = True
