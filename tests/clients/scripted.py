"""An engine that carries out a task in a few turns, written as a model of some family writes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from toolgram.conversation.message import Message
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.errors import EngineError
from toolgram.grammar.constraint import Constraint
from toolgram.styles.base import ToolStyle
from toolgram.wire.writer import write_freely

ASIDE = "A small task."
"""What is said where no tools are offered: clients ask for titles, and the like."""


class Scripted:
    """Says the n-th of some turns to the n-th request that speaks of the task, and offers tools if any turn calls one.

    Raises EngineError for a turn that the grammar of the request does not admit, and where no turn is left.
    """

    capabilities = Capabilities(dialects=("gbnf", "lark", "ebnf"))

    def __init__(self, style: ToolStyle, task: str, turns: Sequence[Message]) -> None:
        self._task = task
        self._calls = any(turn.tool_calls for turn in turns)
        self._turns = [write_freely(style.format(with_tools=self._calls), turn) or "" for turn in turns]
        self.prompts: list[str] = []  # of the turns that were said
        self.refused: str | None = None

    @property
    def said(self) -> int:
        """How many turns were said."""
        return len(self.prompts)

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The turn, whole."""
        whole = "".join(text for text, _ in prompt)
        text = ASIDE
        if self._task in whole and (constraint is not None or not self._calls):
            if self.said == len(self._turns):
                raise EngineError("all turns are said")
            text = self._turns[self.said]
            self.prompts.append(whole)
            if isinstance(constraint, Constraint) and not constraint.grammar.accepts(text):
                self.refused = text
                raise EngineError(f"the grammar does not admit {text!r}")
        yield Chunk(text, finish="stop", usage=Usage(prompt_tokens=len(whole) // 4, completion_tokens=len(text) // 4))

    async def aclose(self) -> None:
        """There is nothing to close."""
