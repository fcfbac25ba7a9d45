"""What is known of a request while it is served: for the log, the metrics and the answer's headers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from toolgram.chat import Reply
from toolgram.planning.plan import Plan
from toolgram.server.recording.capture import Capture
from toolgram.server.recording.values import Recording
from toolgram.server.settings import Settings

_KEY = "toolgram.record"


@dataclass(slots=True)
class Record:
    """A request; `contents` are kept only if they are to be logged, and a `capture` if it is to be recorded."""

    id: str
    began: float = field(default_factory=time.perf_counter)
    model: str | None = None
    style: str | None = None
    first: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    finish: str | None = None
    error: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    contents: dict[str, Any] = field(default_factory=dict[str, Any])
    message: str = ""
    capture: Capture | None = None

    def planned(self, model: str, plan: Plan) -> None:
        """The plan was made."""
        self.model, self.style = model, plan.style.name

    def failed(self, error: str, message: str) -> None:
        """Record that an error was told."""
        self.error, self.message = error, message

    def recorded(self, path: str, settings: Settings, status: int) -> Recording:
        """What was captured of the request, when it is over."""
        if self.capture is None:
            raise ValueError("nothing was captured")
        return self.capture.recording(path, settings, status, self.error or "", self.message)

    def spoke(self) -> None:
        """Record that the engine generated something."""
        if self.first is None:
            self.first = time.perf_counter() - self.began

    def replied(self, reply: Reply) -> None:
        """Record that a choice is complete."""
        self.spoke()
        self.prompt_tokens = max(self.prompt_tokens, reply.usage.prompt_tokens)
        self.completion_tokens += reply.usage.completion_tokens
        self.forced_tokens += reply.usage.forced_tokens
        self.finish = reply.finish_reason


def put(scope: Scope, record: Record) -> None:
    """Keep the record with its request."""
    scope[_KEY] = record


def record_of(scope: Scope) -> Record:
    """The record of a request."""
    return scope[_KEY]
