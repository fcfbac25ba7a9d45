"""Capturing a request while it is served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolgram.chat import Reply
from toolgram.conversation.fields import Json
from toolgram.engines.base import Chunk
from toolgram.errors import PromptTooLong, ToolgramError
from toolgram.planning.plan import Plan
from toolgram.server.recording.redact import redacted
from toolgram.server.recording.values import End, Failure, Kind, Model, Recording, Written
from toolgram.server.recording.values import Settings as Recorded

if TYPE_CHECKING:
    from toolgram.server.models import Served
    from toolgram.server.settings import Settings

Observer = Callable[[Recording, str], None]
"""Is told a recording of every request that is over, and its id."""
_LOG = logging.getLogger("toolgram.server")
PATHS = frozenset(("/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"))
"""What is recorded: conversations."""
_SECRET = ("authorization", "headers")  # of a tool of an MCP server
# Neither says anything of the request itself.
_NOT_KEPT = frozenset((401, 403, 404, 405, 408, 429, 499))


@dataclass(slots=True)
class Capture:
    """What is known so far; `has_body` from when the body was read."""

    body: Any = None
    has_body: bool = False
    served: Served | None = None
    calls: dict[int, list[list[Chunk]]] = field(default_factory=dict[int, list[list[Chunk]]])
    replies: dict[int, Reply] = field(default_factory=dict[int, Reply])
    failure: Failure | None = None
    seed: int | None = None
    plan: Plan | None = None
    sees: bool = False

    def read(self, body: Any) -> None:
        """The body was read. What it has to tell MCP servers is not kept: keys, which are not told here either."""
        self.body, self.has_body = _without_secrets(body), True

    def hearing(self, index: int) -> Callable[[int, Chunk], None]:
        """What is told each chunk of a choice, and the number of the call of the engine that it belongs to."""
        calls = self.calls.setdefault(index, [])

        def heard(call: int, chunk: Chunk) -> None:
            calls.extend([] for _ in range(call + 1 - len(calls)))
            calls[call].append(chunk)

        return heard

    def failed(self, error: ToolgramError, *, ready: bool = False) -> None:
        """The engine failed; `ready`: when it was made ready."""
        counts = (error.tokens, error.limit) if isinstance(error, PromptTooLong) else (None, None)
        self.failure = Failure(type(error).__name__, str(error), ready, *counts)

    def recording(self, path: str, settings: Settings, status: int, code: str, message: str) -> Recording:
        """All of it, when the request is over."""
        replies = [self.replies[index] for index in sorted(self.replies)]
        finish = replies[-1].finish_reason if replies else ""
        kind: Kind = "fine"
        if code:
            kind = "refused" if status < 500 and not self.calls else "error"
        elif any(reply.finish_reason == "length" for reply in replies):
            kind = "cut"
        elif any(not reply.valid for reply in replies):
            kind = "invalid"
        answers = tuple(_without_ids(reply.message.to_openai()) for reply in replies)
        return Recording(
            path=path,
            body=self.body,
            model=None if self.served is None else _model(self.served, sees=self.sees),
            settings=Recorded(
                settings.style,
                settings.max_tokens,
                settings.request_templates,
                settings.any_model_name,
                settings.allow_unenforced,
            ),
            end=End(kind, status, code, message, finish, answers),
            calls=tuple(tuple(map(Written.of, self.calls[index])) for index in sorted(self.calls)),
            failure=self.failure,
            seed=self.seed,
            style=self.plan.style.name if self.plan else None,
            format=repr(self.plan.format) if self.plan else "",
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )


@contextmanager
def capturing(capture: Capture | None, *, ready: bool = False) -> Generator[None]:
    """Notes what the engine raises inside."""
    try:
        yield
    except ToolgramError as error:
        if capture is not None:
            said = error.__cause__ if isinstance(error.__cause__, ToolgramError) else error
            capture.failed(said, ready=ready)
        raise


def _model(served: Served, *, sees: bool) -> Model:
    template = served.template
    return Model(
        served.name,
        served.aliases,
        template.source,
        template.bos_token,
        template.eos_token,
        template.response_template,
        template.control_tokens,
        served.defaults,
        served.engine.capabilities,
        template.tool_use,
        template.model,
        sees,
    )


def _without_secrets(body: Any) -> Any:
    match body:
        case {"tools": [*tools]}:
            return {**cast("Json", body), "tools": [_without_secret(tool) for tool in tools]}
        case _:
            return body


def _without_secret(tool: Any) -> Any:
    match tool:
        case {"type": "mcp", **fields}:
            return {"type": "mcp", **{name: value for name, value in fields.items() if name not in _SECRET}}
        case _:
            return tool


def _without_ids(message: dict[str, Any]) -> dict[str, Any]:
    """Ids are made anew each time."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    return {**message, "tool_calls": [{key: value for key, value in call.items() if key != "id"} for call in calls]}


@dataclass(frozen=True, slots=True)
class Folder:
    """Writes what failed into a folder, a file for each request; with `redact` without what was said."""

    path: Path
    redact: bool = False

    def __call__(self, recording: Recording, name: str) -> None:
        """Keep a recording, if it failed by its own doing."""
        if recording.end.kind == "fine" or recording.end.status in _NOT_KEPT:
            return
        kept = redacted(recording) if self.redact else recording
        file = self.path / f"{recording.end.kind}-{''.join(c for c in name if c.isalnum() or c in '-_')[:80]}.json"
        try:
            file.write_text(kept.to_json(), encoding="utf-8")
        except OSError as error:  # a full disk ends no request
            _LOG.warning("%s: the recording cannot be written: %s", file, error)
