"""Asking a model the questions, one after the other."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

from toolgram.bench.compare import fault, right_tools
from toolgram.bench.questions import Question
from toolgram.chat import generate
from toolgram.engines.base import Engine, Sampling
from toolgram.errors import EngineError
from toolgram.planning.plan import Plan, plan
from toolgram.planning.profile import Profile
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate


@dataclass(frozen=True)
class Answer:
    """What came of a question: `fault` says what is wrong with it, "" that it is right.

    `tools` and `number`: whether the right tools were called, and as many as it takes. `call_log_odds` are those of a
    call, where they are known and finite, and `another_call_log_odds` those of another one behind the first.
    """

    id: str
    kind: str
    ask: str
    fault: str
    tools: bool
    number: bool
    text: str
    finish_reason: str
    prompt_tokens: int
    tokens: int
    seconds: float
    call_log_odds: float | None = None
    another_call_log_odds: float | None = None

    @property
    def right(self) -> bool:
        """Whether there is no fault."""
        return not self.fault


async def ask(
    questions: Iterable[Question],
    template: ChatTemplate,
    engine: Engine,
    sampling: Sampling,
    *,
    style: str | ToolStyle | None = None,
    tool_choice: str = "auto",
    profile: Profile | None = None,
) -> AsyncGenerator[Answer, None]:
    """The answer to each question, as `answer` has it; `plan` raises what it always does."""
    for question in questions:
        prepared = plan(question.body(tool_choice), template, style, profile=profile)
        yield await answer(question, prepared, engine, sampling)


async def answer(question: Question, prepared: Plan, engine: Engine, sampling: Sampling) -> Answer:
    """The answer to a question. An engine that fails on it has it wrong."""
    began = time.perf_counter()
    try:
        reply = await generate(prepared, engine, sampling)
    except EngineError as error:
        wrong = f"an error: {error}"
        seconds = time.perf_counter() - began
        return Answer(question.id, question.kind, question.ask, wrong, False, False, "", "error", 0, 0, seconds)  # noqa: FBT003 - neither is right
    return Answer(
        id=question.id,
        kind=question.kind,
        ask=question.ask,
        fault=fault(question, reply.message),
        tools=right_tools(question, reply.message),
        number=len(reply.message.tool_calls) == len(question.calls),
        text=reply.text,
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.usage.prompt_tokens,
        tokens=reply.usage.completion_tokens,
        seconds=time.perf_counter() - began,
        call_log_odds=_finite(reply.call_log_odds),
        another_call_log_odds=_finite(reply.another_call_log_odds),
    )


def _finite(odds: float | None) -> float | None:
    return odds if odds is not None and math.isfinite(odds) else None
