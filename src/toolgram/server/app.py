"""The server as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgram.api.openapi.document import OF_BODIES, document
from toolgram.server.context import Desk, json_response
from toolgram.server.keeping import forgetting
from toolgram.server.limits import Admission
from toolgram.server.mcp import servers_of
from toolgram.server.memory import give_back
from toolgram.server.metrics import Metrics
from toolgram.server.middleware import Front
from toolgram.server.models import Models, Served
from toolgram.server.playground import page, pages
from toolgram.server.recording.capture import Folder, Observer
from toolgram.server.routes import ollama
from toolgram.server.routes.chat import chat_completions, explain
from toolgram.server.routes.completions import completions
from toolgram.server.routes.mcp import mcp_call, mcp_servers
from toolgram.server.routes.messages import count_tokens, messages
from toolgram.server.routes.responses import input_tokens, responses
from toolgram.server.routes.stored import forget, input_items, response
from toolgram.server.routes.tokenize import detokenize, tokenize
from toolgram.server.routes.tools import import_tools
from toolgram.server.settings import Settings
from toolgram.server.store import Store
from toolgram.server.tracing import exporting

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer  # of an extra

_THREADS = 128

Handler = Callable[[Desk, Request], Awaitable[ASGIApp]]

_POST: dict[str, Handler] = {
    "/v1/chat/completions": chat_completions,
    "/v1/completions": completions,
    "/v1/responses": responses,
    "/v1/responses/input_tokens": input_tokens,
    "/v1/messages": messages,
    "/v1/messages/count_tokens": count_tokens,
    "/v1/explain": explain,
    "/v1/tools/import": import_tools,
    "/v1/mcp/call": mcp_call,
    "/api/chat": ollama.chat,
    "/api/generate": ollama.generate,
    "/api/show": ollama.show,
    "/tokenize": tokenize,
    "/detokenize": detokenize,
}


async def _models(desk: Desk, request: Request) -> ASGIApp:
    anthropic = "anthropic-version" in request.headers
    listed = [_model(served, anthropic=anthropic) for served in desk.models.all]
    if anthropic:
        ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"], "has_more": False}
        return json_response(request, {"data": listed, **ends})
    return json_response(request, {"object": "list", "data": listed})


async def _one_model(desk: Desk, request: Request) -> ASGIApp:
    served = desk.models.find(request.path_params["name"])
    if "anthropic-version" in request.headers:
        return json_response(request, _model(served, anthropic=True))
    template = served.template
    chat_template = {"template": template.source, "bos_token": template.bos_token, "eos_token": template.eos_token}
    return json_response(request, {**_model(served, anthropic=False), "chat_template": chat_template})


def _model(served: Served, *, anthropic: bool) -> dict[str, object]:
    if anthropic:
        day = "1970-01-01T00:00:00Z"  # what Anthropic gives for a model with an unknown release date
        named = {"type": "model", "id": served.name, "display_name": served.name, "created_at": day}
        return {**named, "lifecycle": "active", "max_input_tokens": served.context_length}
    return {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "toolgram",
        "aliases": list(served.aliases),
        "max_model_len": served.context_length,  # as vLLM says it
        "context_length": served.context_length,  # as OpenRouter does, which clients look at (Chatbox)
    }


async def _health(desk: Desk, request: Request) -> ASGIApp:
    well = await asyncio.gather(*(served.well() for served in desk.models.all))
    models = [
        {
            "id": served.name,
            "status": "ok" if one else "unavailable",
            "enforced": not served.engine.capabilities.unenforced,
        }
        for served, one in zip(desk.models.all, well, strict=True)
    ]
    answer = {"status": "ok" if all(well) else "unavailable", "models": models}
    return json_response(request, answer, status=200 if all(well) else 503)


async def _metrics(desk: Desk, _request: Request) -> ASGIApp:
    return Response(desk.metrics.text(), media_type="text/plain; version=0.0.4")


async def _openapi(_desk: Desk, request: Request) -> ASGIApp:
    return json_response(request, document())


async def _page(_desk: Desk, request: Request) -> ASGIApp:
    return page(request)


_GET: dict[str, Handler] = {
    "/v1/models": _models,
    "/v1/models/{name:path}": _one_model,
    "/v1/responses/{id}": response,
    "/v1/responses/{id}/input_items": input_items,
    "/v1/mcp/servers": mcp_servers,
    "/api/tags": ollama.tags,
    "/api/ps": ollama.running,
    "/api/version": ollama.version,
    "/health": _health,
    "/metrics": _metrics,
    "/openapi.json": _openapi,
    **dict.fromkeys(pages(), _page),
}


_DELETE: dict[str, Handler] = {"/v1/responses/{id}": forget}


_METHODS = {"POST": _POST, "GET": _GET, "DELETE": _DELETE}


class _Endpoint:
    """A path as an ASGI application; a class, since Starlette would treat a function differently."""

    def __init__(self, path: str, desk: Desk) -> None:
        self._handlers = {method: handlers[path] for method, handlers in _METHODS.items() if path in handlers}
        self._desk = desk

    @property
    def methods(self) -> list[str]:
        """Those that it has."""
        return list(self._handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = self._handlers.get(scope["method"]) or self._handlers["GET"]  # of a HEAD
        answer = await handler(self._desk, Request(scope, receive))
        await answer(scope, receive, send)


def create_app(
    models: Sequence[Served],
    settings: Settings = Settings(),  # noqa: B008 - frozen
    observer: Observer | None = None,
    tracer: Tracer | None = None,
) -> ASGIApp:
    """The application that serves these models, the first as the default; it closes their engines at shutdown.

    `observer` is told a recording of each request; without one what fails is written where the settings say. `tracer`
    makes their spans; without one these go where the settings say. MCP servers are started when they are first asked,
    and ended at shutdown. Raises InvalidTool for a wrong configuration, and MissingPackage.
    """
    if observer is None and settings.record is not None:
        observer = Folder(settings.record, settings.redact)
    end_spans: Callable[[], None] | None = None
    if tracer is None and settings.otel:
        tracer, end_spans = exporting()
    metrics = Metrics()
    in_turn = all(served.engine.capabilities.turns for served in models)
    beyond = settings.parallel if in_turn else 0
    admission = Admission(settings.parallel, settings.queue, settings.timeout, metrics, beyond)
    servers = servers_of(settings.mcp)
    store = Store(settings.max_store if settings.workers == 1 else 0)
    desk = Desk(Models(tuple(models), settings.any_model_name), settings, admission, metrics, servers, store=store)

    @asynccontextmanager
    async def lifespan(_app: Router) -> AsyncGenerator[None]:
        # Threads mostly wait for their turn.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "toolgram"))
        beside = [asyncio.create_task(each) for each in (give_back(lambda: admission.idle), forgetting(store))]
        yield
        for task in beside:
            task.cancel()
        await front.ended()
        for server in servers.values():
            await server.stop()
        for served in models:
            await served.engine.aclose()
        if end_spans is not None:
            await asyncio.to_thread(end_spans)  # sends what it still has

    paths = tuple(dict.fromkeys(path for handlers in _METHODS.values() for path in handlers))
    endpoints = [(path, _Endpoint(path, desk)) for path in paths]
    routes = [Route(path, endpoint, methods=endpoint.methods) for path, endpoint in endpoints]
    router = Router(routes, lifespan=lifespan, redirect_slashes=False)
    front = Front(router, settings, metrics, admission, frozenset(paths), observer, tracer)
    return _with_origins(front, settings.origins)


def _with_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Lets pages of these origins call; "*" is any page."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=list(_METHODS),
        allow_headers=["*"],
        expose_headers=["x-request-id", "request-id", *OF_BODIES, "retry-after"],
    )
