"""`/v1/completions`: raw text after raw prompts."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.chat.response import Head
from toolgram.api.completions import (
    CompletionRequest,
    Likely,
    choice,
    read_completion_request,
    text_completion,
    together,
)
from toolgram.api.errors import ApiError
from toolgram.api.generation import grammar_at_fault
from toolgram.conversation.answers import Form
from toolgram.engines.base import Chunk, Prompt, Sampling, Usage
from toolgram.errors import EngineError, PromptTooLong
from toolgram.grammar.constraint import Constraint
from toolgram.planning.raw_text import constraint_of
from toolgram.server.context import Desk, json_response, merged
from toolgram.server.models import Served
from toolgram.server.request_log import Record, record_of
from toolgram.server.routes.chat import failure
from toolgram.server.routes.tokenize import text_of
from toolgram.server.sse import DONE, data, while_connected
from toolgram.server.tracing import generated
from toolgram.work import in_thread, look


@dataclass(frozen=True, slots=True)
class _Run:
    """One choice: a prompt, and how it is continued."""

    text: str
    sampling: Sampling


async def completions(desk: Desk, request: Request) -> ASGIApp:
    """Continue texts. The prompt may contain special tokens, since the caller wrote all of it."""
    read = await desk.body(request, read_completion_request)
    served = desk.models.find(read.model)
    record_of(request.scope).model = served.name
    desk.tell_ignored(request, read.ignored)
    sampling = desk.limited(served.defaults.filling(read.sampling, read.unsaid))
    constraint = None if read.form is None else await _constraint(desk, request, served, read.form)
    texts = await while_connected(request.receive, in_thread(_texts, served, read))
    runs = [_Run(text, _seeded(sampling, i)) for text in texts for i in range(read.n)]
    head = Head(f"cmpl-{uuid.uuid4().hex}", int(time.time()), served.name)
    at = "" if read.form is None else read.form.pointer
    streams = [generated(_chunks(served, run, constraint, at), served, run.sampling, "text_completion") for run in runs]
    said = merged(streams, desk.admission)
    if read.stream:
        return desk.streamed(request, _events(said, runs, read, head, record_of(request.scope)), failure)
    return json_response(request, await desk.whole(request, _answer(said, runs, read, head, record_of(request.scope))))


def _texts(served: Served, read: CompletionRequest) -> list[str]:
    """The prompts as text. Raises PromptTooLong for one that leaves no room."""
    texts: list[str] = []
    for at, prompt in enumerate(read.prompts):
        look()
        if not isinstance(prompt, str) and served.context is not None and len(prompt) >= served.context:
            raise PromptTooLong(len(prompt), served.context)
        text = prompt if isinstance(prompt, str) else text_of(served, prompt, f"/prompt/{at}")
        served.count(((text, True),))
        texts.append(text)
    return texts


def _seeded(sampling: Sampling, at: int) -> Sampling:
    return sampling if sampling.seed is None else replace(sampling, seed=sampling.seed + at)


async def _constraint(desk: Desk, request: Request, served: Served, form: Form) -> Constraint:
    """What the texts must keep to, which the engine knows then; what it does not enforce is told in a header."""
    if not served.engine.capabilities.dialects:
        raise ApiError(400, "invalid_value", "this model's engine cannot constrain its output", form.pointer)
    async with desk.admission.planning():
        constraint = await while_connected(request.receive, in_thread(_ready, served, form))
    desk.tell_relaxed(request, constraint.grammar.relaxations)
    return constraint


def _ready(served: Served, form: Form) -> Constraint:
    try:
        constraint = constraint_of(form)
    except RecursionError as error:
        raise ApiError(400, "invalid_value", "is nested too deeply", form.pointer) from error
    with grammar_at_fault(form.pointer):
        served.compile(constraint)
    return constraint


def _chunks(served: Served, run: _Run, constraint: Constraint | None, at: str) -> AsyncGenerator[Chunk, None]:
    if not run.text:
        raise ApiError(400, "invalid_value", "must not be empty", "/prompt")
    return _generated(served, ((run.text, True),), constraint, run.sampling, at)


async def _generated(
    served: Served, prompt: Prompt, constraint: Constraint | None, sampling: Sampling, at: str
) -> AsyncGenerator[Chunk, None]:
    with grammar_at_fault(at):
        async with aclosing(served.engine.generate(prompt, constraint, sampling)) as chunks:
            async for chunk in chunks:
                yield chunk


def _finish(chunk: Chunk, record: Record) -> str | None:
    if chunk.finish == "cancelled":
        raise EngineError("the engine stopped before the answer was complete")
    record.spoke()
    record.finish = chunk.finish or record.finish
    return chunk.finish


class _Costs:
    """The usage of the choices so far, which is recorded too."""

    def __init__(self, n: int, record: Record) -> None:
        self._n, self._record = n, record
        self._usages: dict[int, Usage] = {}
        self.usage = Usage()

    def add(self, index: int, chunk: Chunk) -> None:
        """The last chunk of a choice, with its usage."""
        if chunk.usage is not None:
            self._usages[index] = chunk.usage
            self.usage = together(self._usages, self._n)
            self._record.prompt_tokens = self.usage.prompt_tokens
            self._record.completion_tokens = self.usage.completion_tokens


async def _answer(
    said: AsyncGenerator[tuple[int, Chunk], None],
    runs: list[_Run],
    read: CompletionRequest,
    head: Head,
    record: Record,
) -> dict[str, object]:
    texts = [[run.text] if read.echo else [] for run in runs]
    finishes: list[str | None] = [None] * len(runs)
    costs, likely = _Costs(read.n, record), [Likely() for _ in runs]
    async with aclosing(said) as chunks:
        async for index, chunk in chunks:
            likely[index].add(chunk.logprobs)
            texts[index].append(chunk.text)
            finishes[index] = _finish(chunk, record)
            costs.add(index, chunk)
    choices = [choice(i, "".join(texts[i]), finishes[i], likely[i].take()) for i in range(len(runs))]
    return text_completion(head, choices, costs.usage)


async def _events(
    said: AsyncGenerator[tuple[int, Chunk], None],
    runs: list[_Run],
    read: CompletionRequest,
    head: Head,
    record: Record,
) -> AsyncGenerator[bytes, None]:
    costs, likely = _Costs(read.n, record), [Likely() for _ in runs]
    async with aclosing(said) as chunks:
        if read.echo:
            yield b"".join(data(text_completion(head, [choice(i, run.text, None)], None)) for i, run in enumerate(runs))
        async for index, chunk in chunks:
            finish = _finish(chunk, record)
            costs.add(index, chunk)
            likely[index].add(chunk.logprobs)
            if chunk.text or finish:
                told = choice(index, chunk.text, finish, likely[index].take())
                yield data(text_completion(head, [told], None))
    if read.include_usage:
        yield data(text_completion(head, [], costs.usage))
    yield DONE
