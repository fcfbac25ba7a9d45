"""OpenAI's `/v1/responses` and `/v1/responses/input_tokens`, without state; calls of MCP servers are run here."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.errors import api_error
from toolgram.api.responses.request import CheckedBody, ResponsesRequest, checked_body
from toolgram.api.responses.response import Json, ResponseWriter
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.mcp import request_of, turns
from toolgram.server.sse import all_named


async def responses(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation."""
    read = await _request(desk, request)
    job = await desk.job(request, read.generation)
    id_ = f"resp_{uuid.uuid4().hex}"
    echo = {**read.echo, **_sampled(job)}
    writer = ResponseWriter(
        *(id_, int(time.time()), job.served.name, echo, read.places, read.mcp),
        encrypts=read.encrypts,
        summarizes=read.summarizes,
    )
    events = _events(turns(desk, request, job, read), writer)
    if read.generation.stream:
        return desk.streamed(
            request,
            _streamed(events),
            lambda error: all_named(writer.failed(api_error(error))),
            lambda: all_named(writer.alive()),
        )
    return json_response(request, await desk.whole(request, _whole(events)))


async def input_tokens(desk: Desk, request: Request) -> ASGIApp:
    """The number of tokens in the prompt of a conversation."""
    read = await _request(desk, request)
    count = await desk.prompt_tokens(request, read.generation)
    return json_response(request, {"object": "response.input_tokens", "input_tokens": count})


async def _request(desk: Desk, request: Request) -> ResponsesRequest:
    """The request that a body makes, with the tools that its MCP servers list."""
    urls = {name: server.url for name, server in desk.mcp.items()}
    body, read = await desk.body(request, lambda given: _read(given, urls))
    return await request_of(desk, request, body) if read is None else read


def _read(given: Any, urls: Mapping[str, str]) -> tuple[CheckedBody, ResponsesRequest | None]:
    """A body, and the request that it makes, unless MCP servers are to list their tools before."""
    body = checked_body(given, urls)
    return body, None if body.asked else body.request()


def _sampled(job: Job) -> dict[str, float]:
    """How the tokens were chosen, by the model's own defaults where the body did not say."""
    names = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
    return {name: getattr(job.sampling, name) for name in names}


async def _events(made: AsyncGenerator[Any, None], writer: ResponseWriter) -> AsyncGenerator[list[Json], None]:
    """The events of each thing that happens, where it makes some."""
    async with aclosing(made):
        async for item in made:
            if events := list(writer.feed(item)):
                yield events


async def _streamed(made: AsyncGenerator[list[Json], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(made):
        async for events in made:
            yield all_named(events)


async def _whole(made: AsyncGenerator[list[Json], None]) -> Any:
    """The response in the last event, so that whole and streamed answers cannot differ."""
    last: Json = {}
    async with aclosing(made):
        async for events in made:
            last = events[-1]
    return last["response"]
