"""SGLang, as its source says that it answers: no SGLang can be had where the tests run."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import toolgram
from engines.contract import CALLS, SEA
from engines.fake_sglang import FakeSglang
from engines.fake_vllm import serving
from situations import CHATML
from toolgram.chat import generate
from toolgram.engines.base import Chunk, Engine, Prompt, Sampling
from toolgram.engines.remote.enforcement import NotEnforced
from toolgram.engines.remote.sglang import Sglang
from toolgram.errors import EngineError, PromptTooLong


def _sglang(asked: list[Any], *, counts: bool) -> Starlette:
    """As SGLang 0.5 answers, by its protocol.py, serving_completions.py and tokenizer_manager.py."""

    async def models(_: Request) -> Response:
        return JSONResponse({"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 100}]})

    async def tokenize(request: Request) -> Response:
        body = await request.json()
        ids = [[1] * body.get("add_special_tokens", True) + [*text.encode()] for text in body["prompt"]]
        return JSONResponse({"tokens": ids, "count": [*map(len, ids)], "max_model_len": -1})

    async def answer(request: Request) -> Response:
        body = await request.json()
        asked.append(body)
        prompt, most = body["prompt"], body.get("max_tokens", 16)
        count = len(prompt) + isinstance(prompt, str)
        if not isinstance(most, int):
            return JSONResponse({"object": "error", "message": "Input should be a valid integer", "code": 400}, 400)
        if count >= 100:
            said = f"The input ({count} tokens) is longer than the model's context length (100 tokens)."
            return JSONResponse({"object": "error", "message": said, "code": 400}, 400)
        if count + most >= 100:
            return JSONResponse({"object": "error", "message": "exceeds the model's maximum context length"}, 400)
        marks = ("", "") if body.get("skip_special_tokens", True) else ("[CALL]", "[/CALL]")
        pieces = [{"text": marks[0]}, {"text": "f{}"}, {"text": marks[1]}]
        ended = {"text": "", "finish_reason": "stop", "matched_stop": (body.get("stop") or [2])[0]}
        events = [f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in (*pieces, ended)]
        return StreamingResponse(iter(events))

    counting = [Route("/v1/tokenize", tokenize, methods=["POST"])] if counts else []
    return Starlette(
        routes=[Route("/v1/models", models), Route("/v1/completions", answer, methods=["POST"]), *counting]
    )


def test_what_is_sent_to_sglang() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], **CALLS}, CHATML, "long")
    fake = FakeSglang()
    with serving(fake.app) as url:
        reply = asyncio.run(generate(plan, Sglang(url, "org/model", dialect="ebnf"), Sampling(max_tokens=300, seed=3)))
        (body,) = fake.asked
        special = fake.tokenizer.added_tokens_encoder
        assert f"Token({special['<tool_call>']})" in body["ebnf"]
        assert (body["skip_special_tokens"], reply.message.tool_calls[0].name) == (False, "get_weather")
        fake.unread = True
        with pytest.raises(NotEnforced, match="does not keep to grammars: start SGLang without --reasoning-parser"):
            asyncio.run(generate(plan, Sglang(url, "org/model", dialect="ebnf")))
        asyncio.run(generate(plan, Sglang(url, "org/model", dialect=None)))
    assert [("ebnf" in body) for body in fake.asked] == [True, False]


async def chunks_of(engine: Engine, sampling: Sampling) -> list[Chunk]:
    async with aclosing(engine.generate(SEA, None, sampling)) as chunks:
        return [chunk async for chunk in chunks]


async def _written(engine: Engine, prompt: Prompt, sampling: Sampling) -> str:
    async with aclosing(engine.generate(prompt, None, sampling)) as chunks:
        return "".join([chunk.text async for chunk in chunks])


def test_sglang_leaves_the_marks_of_calls_in_the_text() -> None:
    for counts in (True, False):
        with serving(_sglang([], counts=counts)) as url:
            for stop, by in (((), None), (("END",), "END")):
                chunks = asyncio.run(chunks_of(Sglang(url, "m"), Sampling(max_tokens=5, stop=stop)))
                assert "".join(chunk.text for chunk in chunks) == "[CALL]f{}[/CALL]"
                assert (chunks[-1].finish, chunks[-1].stopped_by) == ("stop", by)


def test_sglang_may_write_to_the_end_of_its_context() -> None:
    """It takes no null for a number, and refuses what would fill the context; older ones do not count."""
    prompt, asked = "".join(text for text, _ in SEA), list[Any]()
    with serving(_sglang(asked, counts=True)) as url:
        for most in (None, 1000, 7):
            asyncio.run(chunks_of(Sglang(url, "m"), Sampling(max_tokens=most)))
        assert [body["max_tokens"] for body in asked] == [99 - len(prompt)] * 2 + [7]
        assert asked[0]["prompt"] == [*prompt.encode()]
        with pytest.raises(PromptTooLong, match="120 tokens > 100 maximum"):
            asyncio.run(_written(Sglang(url, "m"), (("x" * 120, True),), Sampling()))
    with serving(_sglang(asked, counts=False)) as url:
        with pytest.raises(EngineError, match="give max_tokens"):
            asyncio.run(chunks_of(Sglang(url, "m"), Sampling()))
        asyncio.run(chunks_of(Sglang(url, "m"), Sampling(max_tokens=7)))
        assert asked[-1]["prompt"] == prompt
        with pytest.raises(PromptTooLong):
            asyncio.run(_written(Sglang(url, "m"), (("x" * 120, True),), Sampling(max_tokens=7)))
