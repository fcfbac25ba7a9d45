"""OpenAI's `/v1/responses`, without state."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.errors import api_error
from toolgram.api.responses.request import read_responses_request
from toolgram.api.responses.response import ResponseWriter
from toolgram.errors import ToolgramError
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.sse import named


async def responses(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation."""
    read = await desk.body(request, read_responses_request)
    job = await desk.job(request, read.generation)
    id_ = f"resp_{uuid.uuid4().hex}"
    writer = ResponseWriter(id_, int(time.time()), job.served.name, {**read.echo, **_sampled(job)}, read.places)
    if read.generation.stream:
        return desk.streamed(request, _events(desk, request, job, writer), lambda error: _failure(writer, error))
    return json_response(request, await desk.whole(request, _answer(desk, request, job, writer)))


def _sampled(job: Job) -> dict[str, float]:
    """How the tokens were chosen, by the model's own defaults where the body did not say."""
    names = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
    return {name: getattr(job.sampling, name) for name in names}


def _failure(writer: ResponseWriter, error: ToolgramError) -> bytes:
    return b"".join(map(named, writer.failed(api_error(error))))


async def _events(desk: Desk, request: Request, job: Job, writer: ResponseWriter) -> AsyncGenerator[bytes, None]:
    async with aclosing(desk.items(request, job)) as items:
        async for _, item in items:
            if events := b"".join(map(named, writer.feed(item))):
                yield events


async def _answer(desk: Desk, request: Request, job: Job, writer: ResponseWriter) -> Any:
    """The response in the last event, so that whole and streamed answers cannot differ."""
    events: list[Any] = []
    async with aclosing(desk.items(request, job)) as items:
        async for _, item in items:
            events[:] = [*events, *writer.feed(item)][-1:]
    return events[0]["response"]
