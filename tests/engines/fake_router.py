"""Servers that run several models, each in front of a real llama-server of one: a llama-server that was started without
a model, as 0.7.0 of it answers, and llama-swap, by its source of August 2026."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PROPS = {
    "role": "router",
    "max_instances": 4,
    "models_autoload": True,
    "model_alias": "llama-server",
    "model_path": "none",
    "default_generation_settings": {"params": None, "n_ctx": 0},
    "build_info": "b11669",
}


class FakeRouter:
    """The models by name, each with its aliases; `url` is the server that runs them all.

    `loading`: how long it takes until one is there; None: it fails. `meanwhile` is the status that the list has of it
    until then. Without `autoload` none is loaded but `loaded`.
    """

    def __init__(self, url: str, models: Mapping[str, tuple[str, ...]], *, autoload: bool = True) -> None:
        self.url = url
        self.models = models
        self.autoload = autoload
        self.loading: float | None = 0.0
        self.meanwhile = "loading"
        self.status = dict.fromkeys(models, "unloaded")
        self._until = dict[str, float]()
        self.asked: list[str] = []
        routes = [
            Route("/v1/models", self._models),
            Route("/props", self._props),
            Route("/health", self._health),
            Route("/{path:path}", self._passed_on, methods=["POST"]),
        ]
        self.app = Starlette(routes=routes)

    async def _models(self, request: Request) -> Response:
        return JSONResponse(
            {
                "object": "list",
                "data": [
                    {
                        "id": name,
                        "aliases": list(aliases),
                        "object": "model",
                        "owned_by": "llamacpp",
                        "status": {"value": self.status[name], **({"failed": True} if self.loading is None else {})},
                    }
                    for name, aliases in self.models.items()
                ],
            }
        )

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _props(self, request: Request) -> Response:
        if "model" not in request.query_params:
            return JSONResponse({**PROPS, "models_autoload": self.autoload})
        if (refused := await self._refusal(request.query_params["model"])) is not None:
            return refused
        return await _passed_on(f"{self.url}/props", "GET", b"")

    async def _passed_on(self, request: Request) -> Response:
        body = await request.json()
        if (refused := await self._refusal(body.get("model"))) is not None:
            return refused
        self.asked.append(body["model"])
        return await _passed_on(f"{self.url}{request.url.path}", "POST", await request.body())

    async def _refusal(self, named: Any) -> Response | None:
        """What it says where there is no such model, or that is not there; None once it is."""
        if named is None:
            return _error(400, "model name is missing from the request")
        name = next((name for name, aliases in self.models.items() if named in (name, *aliases)), None)
        if name is None:
            return _error(400, f"model '{named}' not found")
        if self.status[name] == "loaded" and name not in self._until:
            return None
        if not self.autoload:
            return _error(400, "model is not loaded")
        if self.loading is None:
            return _error(500, f"model name={name} failed to load")
        until = self._until.setdefault(name, asyncio.get_running_loop().time() + self.loading)
        while (left := until - asyncio.get_running_loop().time()) > 0:
            self.status[name] = self.meanwhile
            await asyncio.sleep(left)
        self.status[name] = "loaded"
        return None


class FakeSwap:
    """The models by name, the first of which runs; `loading`: how long it takes until another one does."""

    def __init__(self, url: str, *models: str) -> None:
        self.url = url
        self.models = models
        self.running = models[0] if models else ""
        self.loading = 0.0
        self.starts: list[str] = []
        every = ["GET", "POST"]
        routes = [
            Route("/v1/models", self._models),
            Route("/health", self._health),
            Route("/upstream/{path:path}", self._upstream, methods=every),
        ]
        self.app = Starlette(routes=routes)

    async def _models(self, request: Request) -> Response:
        state = {True: "loaded", False: "unloaded"}
        cards = [{"id": name, "status": {"value": state[name == self.running]}} for name in self.models]
        return JSONResponse({"data": [{**card, "object": "model", "owned_by": "llama-swap"} for card in cards]})

    async def _health(self, request: Request) -> Response:
        return Response("OK", media_type="text/plain")

    async def _upstream(self, request: Request) -> Response:
        path = request.path_params["path"]
        name = next((name for name in self.models if path.startswith(f"{name}/")), None)
        if name is None:
            return Response("model not found", 404)
        if name != self.running:
            if name not in self.starts:
                self.starts.append(name)
                asyncio.get_running_loop().call_later(self.loading, self._started, name)
            while self.running != name:
                await asyncio.sleep(0.01)
        return await _passed_on(f"{self.url}/{path.removeprefix(f'{name}/')}", request.method, await request.body())

    def _started(self, name: str) -> None:
        self.starts.remove(name)
        self.running = name


async def _passed_on(url: str, method: str, body: bytes) -> Response:
    client = httpx2.AsyncClient(timeout=240)
    headers = {"content-type": "application/json"}
    answer = await client.send(client.build_request(method, url, content=body, headers=headers), stream=True)

    async def blocks() -> AsyncIterator[bytes]:
        try:
            async for block in answer.aiter_bytes():
                yield block
        finally:
            await answer.aclose()
            await client.aclose()

    return StreamingResponse(blocks(), answer.status_code, media_type=answer.headers.get("content-type"))


def _error(code: int, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message, "type": "invalid_request_error"}}, code)
