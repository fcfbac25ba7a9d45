"""A server with OpenAI's `/v1/completions` and nothing else: it enforces nothing, and says what a script has for it."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engines.fake_vllm import serving


@contextmanager
def completing(script: Mapping[str, str], other: str, names: str = "someone") -> Generator[str]:
    """Its address; to a prompt that holds a key of the script it answers with what stands there, else with `other`."""

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": names}]})

    async def completions(request: Request) -> Response:
        body = await request.json()
        said = next((text for key, text in script.items() if key in body["prompt"]), other)
        return StreamingResponse(_events(body, said), media_type="text/event-stream")

    routes = [Route("/v1/models", models), Route("/v1/completions", completions, methods=["POST"])]
    with serving(Starlette(routes=routes)) as url:
        yield url


def _events(body: dict[str, Any], said: str) -> Generator[bytes]:
    """A word is a token."""
    ends = [at for stop in body.get("stop", ()) if (at := said.find(stop)) >= 0]
    words = [word + " " for word in said[: min(ends, default=len(said))].split(" ")]
    words[-1] = words[-1].removesuffix(" ")
    kept = words[: body.get("max_tokens") or 16]
    for word in kept:
        yield _event([{"index": 0, "text": word, "finish_reason": None}])
    yield _event([{"index": 0, "text": "", "finish_reason": "stop" if len(kept) == len(words) else "length"}])
    usage = {"prompt_tokens": body["prompt"].count(" ") * 3 + 1, "completion_tokens": len(kept)}
    yield _event([], usage)
    yield b"data: [DONE]\n\n"


def _event(choices: list[Any], usage: Any = None) -> bytes:
    return b"data: " + json.dumps({"object": "text_completion", "choices": choices, "usage": usage}).encode() + b"\n\n"
