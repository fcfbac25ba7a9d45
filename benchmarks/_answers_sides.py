"""Who answers: the application that `toolgram serve` runs, and llama.cpp's own server object, each in its own process.

Both are as they are shipped, with a context of 4096 tokens. llama.cpp's chat layer drops the tools where the model's
template knows none, as that of SmolLM2: it is given one that announces them.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from _answers_compare import Call
from toolgram.cli.serve import Loading, load
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings

CONTEXT = 4096
SIDES = ("toolgram", "llama.cpp")

Body = Mapping[str, Any]
Ask = Callable[[Body], "Answer"]
"""Sends a chat-completions body, and waits for the answer."""


@dataclass(frozen=True)
class Answer:
    """What came: the calls, the text of the model as far as the side tells it, why it ended, and what it cost."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    finish: str = ""
    tokens: int = 0
    seconds: float = 0.0
    error: str = ""


@contextmanager
def answering(side: str, model: Path, templates: Mapping[str, str]) -> Generator[Ask]:
    """A side with a model; `templates` are what llama.cpp has for each tool choice, where it is not the model's own."""
    begun = (toolgram, model) if side == "toolgram" else (llama_cpp, model, templates)
    with ProcessPoolExecutor(1, get_context("spawn"), _begin, begun) as pool:
        yield lambda body: pool.submit(_ask, body).result()


_THERE: list[Ask] = []  # of the other process, which has no other way to keep its server between two requests


def _begin(make: Callable[..., Ask], *given: Any) -> None:
    _THERE.append(make(*given))


def _ask(body: Body) -> Answer:
    return _THERE[0](body)


def toolgram(model: Path) -> Ask:
    """What `toolgram serve --model FILE` is."""
    settings = Settings()
    served = load(Loading((str(model),), context=CONTEXT, parallel=settings.parallel))
    said = _overheard(served[0])
    return asgi(create_app(served, settings), said)


def asgi(app: ASGIApp, said: list[str]) -> Ask:
    """Asks an application in this process; `said` is filled with what the model writes."""
    runner = asyncio.Runner()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=None)

    def ask(body: Body) -> Answer:
        said.clear()
        began = time.perf_counter()
        answer = runner.run(client.post("/v1/chat/completions", json=body))
        return read(answer.json(), time.perf_counter() - began, "".join(said))

    return ask


def _overheard(served: Served) -> list[str]:
    """Where the text of the model comes, as it is written: an answer tells only what was read in it."""
    said: list[str] = []
    engine: Any = served.engine
    generate = engine.generate

    async def told(*given: Any) -> Any:
        async for chunk in generate(*given):
            said.append(chunk.text)
            yield chunk

    engine.generate = told
    return said


def llama_cpp(model: Path, templates: Mapping[str, str]) -> Ask:
    """llama.cpp's server object: one for each template."""
    servers = {template: _server(model, template) for template in {*templates.values()} or {""}}

    def ask(body: Body) -> Answer:
        heard: list[Any] = []
        server = servers[templates.get(body["tool_choice"], "")]
        began = time.perf_counter()
        try:
            server.handle_chat_completions(dict(body), lambda event: heard.append(event) or False)
        except RuntimeError as error:
            heard = [{"error": {"message": str(error)}}]
        return read(heard[0], time.perf_counter() - began)

    return ask


def _server(model: Path, template: str) -> Any:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    import xllamacpp  # it reads the environment

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_parallel, params.n_ctx = 1, CONTEXT
    params.ui, params.verbosity, params.port = False, -1, 0
    params.use_jinja, params.chat_template = True, template
    return xllamacpp.Server(params)


def read(body: Any, seconds: float, text: str = "") -> Answer:
    """An answer in OpenAI's shape."""
    if "error" in body:
        return Answer(text=text, seconds=seconds, error=body["error"]["message"])
    (choice,) = body["choices"]
    message = choice["message"]
    calls = tuple(_call(call["function"]) for call in message.get("tool_calls") or ())
    written = text or "\n".join(filter(None, (message.get("content"), *map(str, calls))))
    return Answer(calls, written, choice["finish_reason"], body["usage"]["completion_tokens"], seconds)


def _call(function: Mapping[str, Any]) -> Call:
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:  # it was cut off
        arguments = None
    return Call(function["name"], arguments if isinstance(arguments, dict) else None)
