"""A recording once more, offline: the same server, before an engine that says what was recorded."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from starlette.types import Message

from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.remote.http import Unavailable
from toolgram.errors import EngineError, GrammarError, GrammarRefused, OutOfTime, PromptTooLong, ToolgramError
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.recording.values import End, Failure, Model, Recording
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

_ERRORS = {each.__name__: each for each in (EngineError, Unavailable, GrammarRefused, GrammarError, OutOfTime)}
_CONTEXT = 1 << 30  # tokens
_PLACE = re.compile(r"(?:/[^\s/:]*)+: ")
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"\d+")


class RecordedEngine:
    """Says what an engine said, call by call, and fails as it failed. Choices must be made one after the other."""

    def __init__(self, recording: Recording) -> None:
        self._calls = iter([call for choice in recording.calls for call in choice])
        self._failure = recording.failure
        self._model = recording.model
        self.capabilities = replace(recording.model.capabilities, choice=False) if recording.model else Capabilities()

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The next recorded call."""
        del prompt, constraint, sampling
        call = next(self._calls, None)
        for chunk in call.chunks() if call is not None else ():
            await asyncio.sleep(0)
            yield chunk
        if call is None or call.finish is None:
            raise _error(self._failure)

    @property
    def context(self) -> int:
        """More than any prompt has."""
        return _CONTEXT

    def count_tokens(self, prompt: Prompt) -> int:
        """Some number. Raises PromptTooLong if the prompt was too long."""
        del prompt
        if self._failure is not None and self._failure.ready and self._failure.error == PromptTooLong.__name__:
            raise _error(self._failure)
        return 1

    def compile(self, constraint: SupportsGrammar) -> None:
        """Refuses the grammar if it was refused."""
        del constraint
        if self._failure is not None and self._failure.ready:
            raise _error(self._failure)

    @property
    def is_one_of_several(self) -> bool:
        """There is nothing to load."""
        return False

    async def sees(self) -> bool:
        """Whether the model was shown images."""
        return self._model is not None and self._model.sees

    async def aclose(self) -> None:
        """There is nothing to free."""


def _error(failure: Failure | None) -> ToolgramError:
    if failure is None:
        return EngineError("nothing more was recorded")
    if failure.error == PromptTooLong.__name__:
        made = PromptTooLong(failure.tokens, failure.limit)
        made.args = (failure.message,)
        return made
    return _ERRORS.get(failure.error, EngineError)(failure.message)


def replayed(recording: Recording) -> Recording:
    """The recording that comes of it now. Raises EngineError if the server does not answer at all."""
    return asyncio.run(_replayed(recording))


async def _replayed(recording: Recording) -> Recording:
    found: list[Recording] = []
    given = recording.settings
    settings = Settings(
        style=given.style,
        max_tokens=given.max_tokens,
        request_templates=given.request_templates,
        any_model_name=given.any_model_name,
        allow_unenforced=given.allow_unenforced,
        parallel=1,  # choices come one after the other, in their order
    )
    served = [_served(recording.model, RecordedEngine(recording))]
    app = create_app(served, settings, lambda made, _: found.append(made))
    body = json.dumps(recording.body).encode()
    sent: list[Message] = []
    received = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        if (message := next(received, None)) is not None:
            return message
        await asyncio.Event().wait()  # the client stays
        raise AssertionError("nothing sets it")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": recording.path,
        "raw_path": recording.path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": headers,
    }
    await app(scope, receive, send)
    if not found:
        raise EngineError("the request was not read to its end")
    return replace(found[0], time=recording.time)


def _served(model: Model | None, engine: RecordedEngine) -> Served:
    if model is None:  # it was refused before its model was looked for
        return Served(
            "recorded", ChatTemplate("{% for message in messages %}{{ message.content }}{% endfor %}"), engine
        )
    template = ChatTemplate(
        model.source,
        model.bos_token,
        model.eos_token,
        model.response_template,
        model.control_tokens,
        model.tool_use,
        model.called,
    )
    return Served(model.name, template, engine, model.aliases, defaults=model.defaults)


def alike(one: End, other: End) -> bool:
    """Whether two requests ended in the same way: for the same reason, wherever in the body, with like answers."""
    return _signature(one) == _signature(other)


def _signature(end: End) -> tuple[Any, ...]:
    reason = _NUMBER.sub("N", _VALUE.sub("V", _PLACE.sub("", end.message)))
    return end.kind, end.code, reason, tuple(_shape(answer) for answer in end.answers)


def _shape(answer: dict[str, Any]) -> tuple[bool, ...]:
    calls: Sequence[Any] = answer.get("tool_calls") or ()
    return bool(answer.get("content")), bool(answer.get("reasoning_content")), bool(calls)
