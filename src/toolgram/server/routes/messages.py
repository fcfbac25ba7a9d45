"""Anthropic's `/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.errors import ApiError, anthropic_error, api_error
from toolgram.api.messages.request import prefilled, read_count_request, read_messages_request
from toolgram.api.messages.response import MessageWriter, anthropic_message
from toolgram.errors import ToolgramError
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.sse import named


async def messages(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation."""
    generation = await desk.body(request, read_messages_request)
    job = await desk.job(request, generation)
    id_ = f"msg_{uuid.uuid4().hex}"
    if generation.stream:
        return desk.streamed(request, _events(desk, request, job, id_), _failure)
    (reply,) = await desk.whole(request, desk.replies(request, job))
    return json_response(request, anthropic_message(id_, job.served.name, reply, prefilled(generation)))


async def count_tokens(desk: Desk, request: Request) -> ASGIApp:
    """The number of tokens in the prompt of a conversation."""
    job = await desk.job(request, await desk.body(request, read_count_request), runs=False)
    if job.prompt_tokens is None:
        raise ApiError(400, "not_supported", f"the engine of {job.served.name} does not count tokens", "/model")
    return json_response(request, {"input_tokens": job.prompt_tokens})


def _failure(error: ToolgramError) -> bytes:
    return named(anthropic_error(api_error(error)))


async def _events(desk: Desk, request: Request, job: Job, id_: str) -> AsyncGenerator[bytes, None]:
    writer = MessageWriter(id_, job.served.name, job.prompt_tokens or 0)
    async with aclosing(desk.items(request, job)) as items:
        async for _, item in items:
            if events := b"".join(map(named, writer.feed(item))):
                yield events
