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


@dataclass(frozen=True, slots=True)
class Continued:
    """Texts that are continued: the prompts of all choices, and what comes behind each, by its number."""

    served: Served
    prompts: list[str]
    said: AsyncGenerator[tuple[int, Chunk], None]


async def continued(desk: Desk, request: Request, read: CompletionRequest) -> Continued:
    """Begins to continue texts. Raises ApiError and InvalidRequest for what is asked for in vain."""
    served = desk.models.find(read.model)
    record_of(request.scope).model = served.name
    desk.tell_ignored(request, read.ignored)
    sampling = desk.limited(served.defaults.filling(read.sampling, read.unsaid))
    constraint = None if read.form is None else await _constraint(desk, request, served, read.form)
    texts = await while_connected(request.receive, in_thread(_texts, served, read))
    runs = [_Run(text, _seeded(sampling, i)) for text in texts for i in range(read.n)]
    at = "" if read.form is None else read.form.pointer
    streams = [generated(_chunks(served, run, constraint, at), served, run.sampling, "text_completion") for run in runs]
    return Continued(served, [run.text for run in runs], merged(streams, desk.admission))


async def completions(desk: Desk, request: Request) -> ASGIApp:
    """Continue texts. The prompt may contain special tokens, since the caller wrote all of it."""
    read = await desk.body(request, read_completion_request)
    texts = await continued(desk, request, read)
    head = Head(f"cmpl-{uuid.uuid4().hex}", int(time.time()), texts.served.name)
    record = record_of(request.scope)
    if read.stream:
        return desk.streamed(request, _events(texts, read, head, record), failure)
    return json_response(request, await desk.whole(request, _answer(texts, read, head, record)))


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


def finish_of(chunk: Chunk, record: Record) -> str | None:
    """Why a choice ended, if it did. Raises EngineError where it was ended by another hand."""
    if chunk.finish == "cancelled":
        raise EngineError("the engine stopped before the answer was complete")
    record.spoke()
    record.finish = chunk.finish or record.finish
    return chunk.finish


class Costs:
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


async def _answer(texts: Continued, read: CompletionRequest, head: Head, record: Record) -> dict[str, object]:
    written = [[prompt] if read.echo else [] for prompt in texts.prompts]
    finishes: list[str | None] = [None] * len(written)
    costs, likely = Costs(read.n, record), [Likely() for _ in written]
    async with aclosing(texts.said) as chunks:
        async for index, chunk in chunks:
            likely[index].add(chunk.logprobs)
            written[index].append(chunk.text)
            finishes[index] = finish_of(chunk, record)
            costs.add(index, chunk)
    choices = [choice(i, "".join(text), finishes[i], likely[i].take()) for i, text in enumerate(written)]
    return text_completion(head, choices, costs.usage)


async def _events(texts: Continued, read: CompletionRequest, head: Head, record: Record) -> AsyncGenerator[bytes, None]:
    costs, likely = Costs(read.n, record), [Likely() for _ in texts.prompts]
    async with aclosing(texts.said) as chunks:
        if read.echo:
            prompts = enumerate(texts.prompts)
            yield b"".join(data(text_completion(head, [choice(i, text, None)], None)) for i, text in prompts)
        async for index, chunk in chunks:
            finish = finish_of(chunk, record)
            costs.add(index, chunk)
            likely[index].add(chunk.logprobs)
            if chunk.text or finish:
                told = choice(index, chunk.text, finish, likely[index].take())
                yield data(text_completion(head, [told], None))
    if read.include_usage:
        yield data(text_completion(head, [], costs.usage))
    yield DONE
