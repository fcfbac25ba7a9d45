"""OpenAI's `/v1/responses` and `/v1/responses/input_tokens`; calls of MCP servers are run here."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.errors import api_error
from toolgram.api.responses.input import Earlier, new_items
from toolgram.api.responses.request import CheckedBody, ResponsesRequest, SentBody, sent_body
from toolgram.api.responses.response import Json, ResponseWriter
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.keeping import Draft, Found, drafted, found, keep
from toolgram.server.mcp import request_of, turns
from toolgram.server.request_log import record_of
from toolgram.server.sse import all_named
from toolgram.server.store import Store
from toolgram.work import in_thread

_ENDS = ("response.completed", "response.incomplete")


@dataclass(frozen=True, slots=True)
class _Read:
    """A body that was read: the request that it makes, unless MCP servers are to list their tools before."""

    body: CheckedBody
    request: ResponsesRequest | None
    draft: Draft | None


async def responses(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation, and keep the response for later ones."""
    id_ = f"resp_{uuid.uuid4().hex}"
    read, draft = await _request(desk, request, id_)
    job = await desk.job(request, read.generation)
    echo = {**read.echo, **_sampled(job), "store": draft is not None}
    writer = ResponseWriter(
        *(id_, int(time.time()), job.served.name, echo, read.places, read.mcp),
        encrypts=read.encrypts,
        summarizes=read.summarizes,
    )
    events = _events(turns(desk, request, job, read), writer)
    if draft is not None:
        events = _kept(events, desk.store, draft)
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
    read, _ = await _request(desk, request)
    count = await desk.prompt_tokens(request, read.generation)
    return json_response(request, {"object": "response.input_tokens", "input_tokens": count})


async def _request(desk: Desk, request: Request, id_: str | None = None) -> tuple[ResponsesRequest, Draft | None]:
    """The request that a body makes, with what it names of earlier responses and the tools that its MCP servers list.

    And what is to be kept of it with the response of this id.
    """
    urls, record = {name: server.url for name, server in desk.mcp.items()}, record_of(request.scope)

    def read_with(sent: SentBody, before: Found) -> _Read:
        body = sent.checked(urls, before.earlier)
        draft = None if id_ is None else drafted(desk.store, record.client, sent, before, id_)
        return _Read(body, None if body.asked else body.request(), draft)

    def begun(given: Any) -> tuple[SentBody, _Read | None]:
        sent = sent_body(given)
        return sent, None if sent.goes_on else read_with(sent, Found(Earlier(), None))

    def gone_on(sent: SentBody) -> _Read:
        before = found(desk.store, record.client, sent, desk.settings)
        if record.capture is not None:
            record.capture.read(_whole_body(sent, before))
        return read_with(sent, before)

    sent, read = await desk.body(request, begun)
    if read is None:  # what is short names what is long, which few hold at a time
        read = await in_thread(gone_on, sent)
    return await request_of(desk, request, read.body) if read.request is None else read.request, read.draft


def _whole_body(sent: SentBody, before: Found) -> dict[str, Any]:
    """A body that names nothing, to be asked again elsewhere."""
    items = [*before.earlier.conversation, *new_items(sent.body, sent.given, before.earlier)]
    return {**sent.given, "previous_response_id": None, "input": items}


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


async def _kept(made: AsyncGenerator[list[Json], None], store: Store, draft: Draft) -> AsyncGenerator[list[Json], None]:
    """The events, of which the last one says whether its response is kept: a client may go on from it at once."""
    async with aclosing(made):
        async for events in made:
            if events[-1]["type"] in _ENDS and not await keep(store, draft, events[-1]["response"]):
                events[-1]["response"]["store"] = False
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
