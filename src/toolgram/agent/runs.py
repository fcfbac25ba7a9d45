"""What an agent is given and what it tells: limits, the events of a run, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolgram.conversation.message import ToolCall
from toolgram.engines.base import Usage
from toolgram.errors import ToolgramError

if TYPE_CHECKING:
    from toolgram.agent.illustrated import Illustrated

A = TypeVar("A")
JsonMessage = Mapping[str, Any]
"""A message of the conversation, in the shape of the chat-completions API."""


class NoAnswer(ToolgramError):
    """A run that ended without an answer of the form that was asked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a run may go.

    `steps` are turns of the model; the last one may only answer. It is also what comes next when `seconds` have
    passed, when all steps before have written `tokens`, and after so many `repeats` of the same calls, one after the
    other. `step_tokens` bounds each step, `answer_tokens` the last; a tool has `call_seconds`, and of a result's text
    the model is shown `result_characters`.
    """

    steps: int = 10
    tokens: int | None = None
    seconds: float | None = None
    repeats: int = 3
    step_tokens: int = 1024
    answer_tokens: int = 1024
    call_seconds: float = 60.0
    result_characters: int = 20_000

    def __post_init__(self) -> None:
        for name in ("steps", "repeats", "step_tokens", "answer_tokens", "call_seconds", "result_characters"):
            if not getattr(self, name) > 0:
                raise NoAnswer(f"the limit {name} must be above 0, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Step:
    """A turn of the model begins, the `number`-th of the run; in the `last` one it may only answer."""

    number: int
    last: bool


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """More of what the model says: of its answer, as JSON where a type was asked for, or beside a call."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call, complete. It runs unless an approval is asked for it."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call that waits for a yes or a no."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call has come that still runs: `done` of `total`, where that is known, and a word on it."""

    call: ToolCall
    done: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call, as the model is shown it; an error is a result too. `seconds` by the clock.

    Where there are images it is `illustrated`, for a model that sees.
    """

    call: ToolCall
    text: str
    is_error: bool
    seconds: float
    illustrated: Illustrated | None = None

    def told(self, *, sees: bool) -> Result:
        """The result as a model that sees is shown it, or as any other."""
        return (
            replace(self, text=self.illustrated.seen) if sees and self.illustrated else replace(self, illustrated=None)
        )

    @property
    def content(self) -> Any:
        """The content of the message that tells the model."""
        return self.text if self.illustrated is None else self.illustrated.parts


@dataclass(frozen=True, slots=True)
class StepUsage:
    """What the step cost that just ended."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Run(Generic[A]):
    """How a run ended: with an `answer`, or `waiting` for approvals. A text that is `cut` was not at its end.

    `messages` is the conversation, made of JSON alone: save it, give it to `Agent.run` again to go on. `texts` are the
    raw texts of the model's turns, with which `engines.Replay` repeats the run.
    """

    answer: A | None
    messages: Sequence[JsonMessage]
    waiting: Sequence[ToolCall]
    steps: int
    usage: Usage
    texts: Sequence[str]
    cut: bool = False


AgentEvent = Step | Reasoning | Text | Call | ApprovalAsked | CallProgress | Result | StepUsage
