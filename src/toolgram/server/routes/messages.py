"""Anthropic's `/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.errors import anthropic_error, api_error
from toolgram.api.messages.request import read_count_request, read_messages_request
from toolgram.api.messages.response import Json, MessageWriter, message_of
from toolgram.errors import ToolgramError
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.sse import all_named, named


async def messages(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation."""
    generation = await desk.body(request, read_messages_request)
    job = await desk.job(request, generation)
    writer = MessageWriter(
        f"msg_{uuid.uuid4().hex}",
        job.served.name,
        job.prompt_tokens or 0,
        job.sampling.max_tokens,
        enforced=not job.served.engine.capabilities.unenforced,
    )
    events = _events(desk, request, job, writer)
    if generation.stream:
        return desk.streamed(request, _streamed(events), _failure, lambda: all_named(writer.alive()))
    return json_response(request, await desk.whole(request, _whole(events)))


async def count_tokens(desk: Desk, request: Request) -> ASGIApp:
    """The number of tokens in the prompt of a conversation."""
    count = await desk.prompt_tokens(request, await desk.body(request, read_count_request))
    return json_response(request, {"input_tokens": count})


def _failure(error: ToolgramError) -> bytes:
    return named(anthropic_error(api_error(error)))


async def _events(desk: Desk, request: Request, job: Job, writer: MessageWriter) -> AsyncGenerator[list[Json], None]:
    """The events of each thing that happens, where it makes some."""
    async with aclosing(desk.items(request, job)) as items:
        async for _, item in items:
            if events := list(writer.feed(item)):
                yield events


async def _streamed(made: AsyncGenerator[list[Json], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(made):
        async for events in made:
            yield all_named(events)


async def _whole(made: AsyncGenerator[list[Json], None]) -> Json:
    async with aclosing(made):
        return message_of([event async for events in made for event in events])
