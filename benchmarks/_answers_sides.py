"""Who answers: the application that `toolgram serve` runs, and llama.cpp's own server object, each in its own process.

Both are as they are shipped, with a context of 4096 tokens. llama.cpp's chat layer drops the tools where the model's
template knows none, as that of SmolLM2. It is given one that announces them, for each tool choice that under which it
does better: `required` is enforced from the start only where a template ends with what begins a call, as that of
functionary; but under such a one the texts of `auto` are errors, as nothing makes the model begin them as it should.
It decodes with one thread: more would wait for each other wherever somebody else works, so its seconds are no race.
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
LONG = 600  # seconds
SIDES = ("toolgram", "llama.cpp")

HERMES = Path(__file__).with_name("hermes.jinja").read_text(encoding="utf-8")

Body = Mapping[str, Any]
Ask = Callable[[Body], "Answer"]
"""Sends a chat-completions body, and waits for the answer."""


@dataclass(frozen=True)
class Answer:
    """What came: the calls, the text of the model as far as the side tells it, why it ended, and what it cost."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    tokens: int = 0
    seconds: float = 0.0
    error: str = ""


@contextmanager
def answering(side: str, model: Path, templates: Mapping[str, str], profile: str | None = None) -> Generator[Ask]:
    """A side with a model; `templates` are what llama.cpp has for each tool choice, where it is not the model's own.

    `profile` is what `toolgram serve --profile` is given; None is its default.
    """
    begun = (toolgram, model, profile) if side == "toolgram" else (llama_cpp, model, templates)
    with ProcessPoolExecutor(1, get_context("spawn"), _begin, begun) as pool:
        yield lambda body: pool.submit(_ask, body).result()


_THERE: list[Ask] = []  # of the other process, which has no other way to keep its server between two requests


def _begin(make: Callable[..., Ask], *given: Any) -> None:
    _THERE.append(make(*given))


def _ask(body: Body) -> Answer:
    return _THERE[0](body)


def toolgram(model: Path, profile: str | None = None) -> Ask:
    """What `toolgram serve --model FILE` is."""
    settings, profiles = Settings(), () if profile is None else (profile,)
    served = load(Loading((str(model),), context=CONTEXT, parallel=settings.parallel, profiles=profiles))
    said = overheard(served[0])
    return asgi(create_app(served, settings), said)


def asgi(app: ASGIApp, said: list[str]) -> Ask:
    """Asks an application in this process; `said` is filled with what the model writes."""
    runner = asyncio.Runner()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=LONG)

    def ask(body: Body) -> Answer:
        said.clear()
        began = time.perf_counter()
        answer = runner.run(client.post("/v1/chat/completions", json=body))
        return read(answer.json(), time.perf_counter() - began, "".join(said))

    return ask


def overheard(served: Served) -> list[str]:
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
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = 1, os.cpu_count() or 1
    params.ui, params.verbosity, params.port = False, -1, 0
    params.use_jinja, params.chat_template = True, template
    return xllamacpp.Server(params)


def read(body: Any, seconds: float, text: str = "") -> Answer:
    """An answer in OpenAI's shape."""
    if "error" in body:
        return Answer(text=text, seconds=seconds, error=body["error"]["message"])
    (choice,) = body["choices"]
    message = choice["message"]
    made = message.get("tool_calls") or []
    calls = tuple(_call(call["function"]) for call in made)
    parts = [message.get("content"), *(" ".join(call["function"].values()) for call in made)]
    written = text or "\n".join(filter(None, parts))
    usage = body["usage"]
    tokens = usage["prompt_tokens"], usage["completion_tokens"]
    return Answer(calls, written, choice["finish_reason"], *tokens, seconds)


def _call(function: Mapping[str, Any]) -> Call:
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:  # it was cut off
        arguments = None
    return Call(function["name"], arguments if isinstance(arguments, dict) else None)
