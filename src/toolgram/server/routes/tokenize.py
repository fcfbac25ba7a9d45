"""`/tokenize` and `/detokenize`, as in vLLM and llama-server."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.api.chat.request import ChatRequest
from toolgram.api.errors import ApiError
from toolgram.api.tokens import read_detokenize_request, read_tokenize_request
from toolgram.engines.base import Prompt
from toolgram.errors import EngineError, InvalidRequest
from toolgram.server.context import Desk, json_response
from toolgram.server.models import Served, Tokenizes
from toolgram.work import in_thread


async def tokenize(desk: Desk, request: Request) -> ASGIApp:
    """The tokens of `messages` as they would be prompted, or of a raw `prompt` (llama-server: `content`)."""
    read = await desk.body(request, read_tokenize_request)
    prompt: Prompt
    if isinstance(read, ChatRequest):
        job = await desk.job(request, read.generation, runs=False)
        served, prompt = job.served, job.plan.prompt_parts
    else:
        served, prompt = desk.models.find(read.model), ((read.text, True),)
    ids = await in_thread(_tokenizer(served).tokenize, prompt)
    return json_response(request, {"tokens": ids, "count": len(ids), "max_model_len": served.context})


async def detokenize(desk: Desk, request: Request) -> ASGIApp:
    """The text of `tokens`."""
    body = await desk.body(request, read_detokenize_request)
    served = desk.models.find(body.model)
    text = await in_thread(text_of, served, body.tokens, "/tokens") if body.tokens else ""
    return json_response(request, {"prompt": text, "content": text})


def text_of(served: Served, ids: Sequence[int], pointer: str) -> str:
    """The text of tokens. Raises InvalidRequest for ids that do not exist."""
    try:
        return _tokenizer(served).detokenize(ids)
    except EngineError as error:
        raise InvalidRequest(pointer, str(error)) from error


def _tokenizer(served: Served) -> Tokenizes:
    if not isinstance(served.engine, Tokenizes):
        raise ApiError(400, "not_supported", f"the engine of {served.name} does not report token ids", "/model")
    return served.engine
