"""What is known of a request while it is served: for the log, the metrics and the answer's headers."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from toolgram.api.json_text import json_bytes
from toolgram.chat import Reply
from toolgram.planning.plan import Plan
from toolgram.server.recording.capture import Capture
from toolgram.server.recording.values import Recording
from toolgram.server.settings import Settings
from toolgram.server.store import Client

_KEY = "toolgram.record"
_LONGEST_MESSAGE = 1000  # characters of an error's in the log


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
    client: Client = field(default_factory=Client)

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

    @contextmanager
    def counting(self, prompt_tokens: int) -> Generator[Counter[int]]:
        """Counts the tokens of choices by their numbers: those are recorded that are left when a client, the time or a
        failure ends the answer."""
        tokens = Counter[int]()
        try:
            yield tokens
        finally:
            if left := tokens.total():
                self.prompt_tokens = max(self.prompt_tokens, prompt_tokens)
                self.completion_tokens += left


def put(scope: Scope, record: Record) -> None:
    """Keep the record with its request."""
    scope[_KEY] = record


def record_of(scope: Scope) -> Record:
    """The record of a request."""
    return scope[_KEY]


class Line:
    """A line of the log: as JSON, which is its text, or for people."""

    def __init__(self, record: Record, method: str, path: str, status: int, seconds: float) -> None:
        self._record = record
        self._said: dict[str, Any] = {
            "time": time.time(),
            "process": os.getpid(),
            "request": record.id,
            "method": method,
            "path": path,
            "status": status,
            "seconds": round(seconds, 6),
            "model": record.model,
            "style": record.style,
            "prompt_tokens": record.prompt_tokens,
            "completion_tokens": record.completion_tokens,
            "finish": record.finish,
            "error": record.error,
            "message": record.message[:_LONGEST_MESSAGE] or None,
            **record.contents,
        }

    def __str__(self) -> str:
        return json_bytes({key: value for key, value in self._said.items() if value is not None}).decode()

    def for_people(self) -> str:
        """The line as it reads on a terminal; what was said is in it only where it is to be logged."""
        said, record = self._said, self._record
        clock = time.strftime("%H:%M:%S", time.localtime(said["time"]))
        parts = [f"{clock} {said['status']} {said['method']} {said['path']} {said['seconds']:.2f} s"]
        if record.model is not None:
            parts.append(f"{record.model}, style {record.style}" if record.style else record.model)
        if record.completion_tokens:
            parts.append(f"{record.prompt_tokens} + {record.completion_tokens} tokens")
        if record.finish is not None:
            parts.append(record.finish)
        if record.message:
            parts.append(f"{record.error}: {said['message']}")
        if record.contents:
            parts.append(json_bytes(record.contents).decode())
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in "; ".join(parts))
