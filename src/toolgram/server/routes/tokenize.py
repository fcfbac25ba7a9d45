"""`/tokenize` and `/detokenize`, as vLLM and llama-server have them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.chat.request import read_chat_request
from toolgram.api.completions import read_ids
from toolgram.api.errors import ApiError
from toolgram.api.fields import listed, mapping, string
from toolgram.engines.base import Prompt
from toolgram.errors import EngineError, InvalidRequest
from toolgram.server.context import Desk, json_response
from toolgram.server.models import Served, Tokenizes


async def tokenize(desk: Desk, request: Request) -> ASGIApp:
    """The tokens of `messages` as they would be prompted, or of a raw `prompt` (llama-server: `content`)."""
    body = mapping(await desk.body(request), "")
    served = desk.models.find(string(body, "model"))
    prompt: Prompt
    if body.get("messages") is not None:
        prompt = (await desk.job(request, read_chat_request(body).generation)).plan.prompt_parts
    elif (text := string(body, "prompt") if "prompt" in body else string(body, "content")) is not None:
        prompt = ((text, True),)
    else:
        raise InvalidRequest("/prompt", "give messages, prompt or content")
    ids = await asyncio.to_thread(_tokenizer(served).tokenize, prompt)
    return json_response(request, {"tokens": ids, "count": len(ids), "max_model_len": served.context})


async def detokenize(desk: Desk, request: Request) -> ASGIApp:
    """The text of `tokens`."""
    body = mapping(await desk.body(request), "")
    served = desk.models.find(string(body, "model"))
    tokens = listed(body.get("tokens"), "/tokens")
    text = text_of(served, read_ids(tokens, "/tokens"), "/tokens") if tokens else ""
    return json_response(request, {"prompt": text, "content": text})


def text_of(served: Served, ids: Sequence[int], pointer: str) -> str:
    """The text of tokens. Raises InvalidRequest for ids that there are not."""
    try:
        return _tokenizer(served).detokenize(ids)
    except EngineError as error:
        raise InvalidRequest(pointer, str(error)) from error


def _tokenizer(served: Served) -> Tokenizes:
    if not isinstance(served.engine, Tokenizes):
        raise ApiError(400, "not_supported", f"the engine of {served.name} does not tell its tokens", "/model")
    return served.engine
