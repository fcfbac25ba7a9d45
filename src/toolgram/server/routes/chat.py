"""`/v1/chat/completions`, and `/v1/explain` of the same bodies."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.chat.request import read_chat_request, read_explain_request
from toolgram.api.chat.response import ChunkWriter, Head, completion, usage_chunk
from toolgram.api.errors import api_error, openai_error
from toolgram.api.explain import explanation
from toolgram.chat import Reply, relaxations_of
from toolgram.engines.base import Chunk, TokenLogprobs
from toolgram.errors import ToolgramError
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.sse import DONE, data
from toolgram.work import in_thread


async def chat_completions(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation."""
    read = await desk.body(request, read_chat_request)
    job = await desk.job(request, read.generation)
    head = Head(
        id=f"chatcmpl-{uuid.uuid4().hex}",
        created=int(time.time()),
        model=job.served.name,
        legacy=read.legacy,
        include_usage=read.include_usage,
        include_tokens=read.include_tokens,
        logprobs=job.sampling.logprobs is not None,
        as_functions=read.as_functions,
    )
    if read.include_tokens and not head.logprobs:
        job = replace(job, sampling=replace(job.sampling, logprobs=0))  # engines report single tokens only with them
    if read.generation.stream:
        return desk.streamed(request, _events(desk, request, job, head), failure)
    return json_response(request, await desk.whole(request, _answer(desk, request, job, head)))


def failure(error: ToolgramError) -> bytes:
    """The event for an error after something was generated."""
    return data(openai_error(api_error(error)))


async def _answer(desk: Desk, request: Request, job: Job, head: Head) -> dict[str, Any]:
    replies: dict[int, Reply] = {}
    likely: list[list[TokenLogprobs]] = [[] for _ in range(job.n)]
    async with aclosing(desk.items(request, job)) as items:
        async for index, item in items:
            match item:
                case Chunk():
                    likely[index] += item.logprobs
                case Reply():
                    replies[index] = item
                case _:
                    pass
    return completion(head, [replies[index] for index in range(job.n)], likely)


async def _events(desk: Desk, request: Request, job: Job, head: Head) -> AsyncGenerator[bytes, None]:
    writers = [ChunkWriter(head, index) for index in range(job.n)]
    # All choices begin in their order, whichever is the first to say something: OpenAI's SDK counts on it.
    begun = (chunk for writer in writers for chunk in writer.begin())
    async with aclosing(desk.items(request, job)) as items:
        async for index, item in items:
            if chunks := b"".join(map(data, (*begun, *writers[index].feed(item)))):
                yield chunks
    if head.include_usage:
        yield data(usage_chunk(head, [writer.usage for writer in writers if writer.usage is not None]))
    yield DONE


async def explain(desk: Desk, request: Request) -> ASGIApp:
    """What would be sent to the engine for a chat-completions body; `dialect` is that of the grammar."""
    read, dialect = await desk.body(request, read_explain_request)
    job = await desk.job(request, read.generation, runs=False)
    relaxations = relaxations_of(job.plan, job.served.engine)
    found = await in_thread(explanation, job.plan, relaxations, dialect, job.prompt_tokens)
    return json_response(request, {"model": job.served.name, **found, "ignored": list(read.generation.ignored)})
