"""Ollama's API: `/api/chat` and `/api/generate`, and what it says of models (`/api/tags`, `show`, `ps`, `version`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.completions import CompletionRequest
from toolgram.api.errors import api_error, ollama_error
from toolgram.api.generation import Generation
from toolgram.api.ollama.models import VERSION, Facts, read_show_request, tagged
from toolgram.api.ollama.request import Load, read_chat_request, read_generate_request
from toolgram.api.ollama.response import AnswerWriter, Json, Kind, loaded, whole
from toolgram.errors import ToolgramError
from toolgram.server.context import Desk, Job, json_response
from toolgram.server.models import Served
from toolgram.server.request_log import record_of
from toolgram.server.routes.completions import Continued, Costs, continued, finish_of
from toolgram.server.sse import LINES, line
from toolgram.work import in_thread

Objects = AsyncGenerator[Json, None]


async def chat(desk: Desk, request: Request) -> ASGIApp:
    """Answer a conversation."""
    return await _answered(desk, request, "chat", await desk.body(request, read_chat_request))


async def generate(desk: Desk, request: Request) -> ASGIApp:
    """Answer a prompt, or go on with it."""
    return await _answered(desk, request, "generate", await desk.body(request, read_generate_request))


async def tags(desk: Desk, request: Request) -> ASGIApp:
    """The models, by each of their names."""
    names = [(served, name) for served in desk.models.all for name in (served.name, *served.aliases)]
    return json_response(request, {"models": [_facts(*each).listed for each in names]})


async def running(desk: Desk, request: Request) -> ASGIApp:
    """The models that are loaded: all."""
    return json_response(request, {"models": [_facts(served, served.name).running for served in desk.models.all]})


async def show(desk: Desk, request: Request) -> ASGIApp:
    """What is known of a model."""
    served = desk.models.find(await desk.body(request, read_show_request))
    facts, sees = _facts(served, served.name), await served.is_known_to_see()
    # A template that is seen for the first time takes a while.
    async with desk.admission.planning():
        return json_response(request, await in_thread(facts.shown, desk.settings.style, sees=sees))


async def version(_desk: Desk, request: Request) -> ASGIApp:
    """Of which version of Ollama the API is."""
    return json_response(request, {"version": VERSION})


def _facts(served: Served, name: str) -> Facts:
    return Facts(tagged(name), served.template, served.created, served.context_length, served.architecture)


async def _answered(desk: Desk, request: Request, kind: Kind, asked: Generation | CompletionRequest | Load) -> ASGIApp:
    began = record_of(request.scope).began
    match asked:
        case Load(model, ends):
            return json_response(request, loaded(kind, tagged(desk.models.find(model).name), ends=ends))
        case Generation():
            job = await desk.job(request, asked)
            writer = AnswerWriter(kind, tagged(job.served.name), began)
            objects = _objects(desk, request, job, writer)
        case CompletionRequest():
            texts = await continued(desk, request, asked)
            writer = AnswerWriter(kind, tagged(texts.served.name), began)
            objects = _raw(request, texts, writer)
    if asked.stream:
        return desk.streamed(request, _lines(objects), _failure, lambda: line(writer.alive()), LINES)
    return json_response(request, await desk.whole(request, _whole(kind, objects)))


def _failure(error: ToolgramError) -> bytes:
    return line(ollama_error(api_error(error)))


async def _objects(desk: Desk, request: Request, job: Job, writer: AnswerWriter) -> Objects:
    async with aclosing(desk.items(request, job)) as items:
        async for _, item in items:
            for each in writer.feed(item):
                yield each


async def _raw(request: Request, texts: Continued, writer: AnswerWriter) -> Objects:
    record = record_of(request.scope)
    costs = Costs(1, record)
    async with aclosing(texts.said) as chunks:
        async for index, chunk in chunks:
            finish = finish_of(chunk, record)
            costs.add(index, chunk)
            writer.hear(chunk)
            if chunk.text:
                yield writer.say(chunk.text)
            if finish is not None:
                yield writer.end(finish, chunk.usage or costs.usage, {})


async def _lines(made: Objects) -> AsyncGenerator[bytes, None]:
    async with aclosing(made):
        async for each in made:
            yield line(each)


async def _whole(kind: Kind, made: Objects) -> Json:
    async with aclosing(made):
        return whole(kind, [each async for each in made])
