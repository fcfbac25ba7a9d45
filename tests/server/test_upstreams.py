"""A server before other servers, which refuse, fall silent, break off and die."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engines import fake_vllm
from engines.fake_vllm import FakeVllm
from engines.peers import SLOTS, llama_server
from live_server import serving
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.engines.remote.vllm import Vllm

CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 40}
LONG: dict[str, Any] = {"messages": [{"role": "user", "content": "word " * 5000}]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@contextmanager
def before_vllm(**made: Any) -> Iterator[tuple[FakeVllm, str]]:
    fake = FakeVllm(**made)
    with fake_vllm.serving(fake.app) as url, serving(Vllm(url, timeout=1)) as address:
        yield fake, address


def events(answer: httpx2.Response) -> list[Any]:
    return [json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: {")]


def said(answer: httpx2.Response) -> str:
    """What a stream said before its error, which is the last event."""
    *chunks, error = events(answer)
    assert error["error"]["code"] == "unavailable"
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


def test_a_prompt_that_is_too_long_for_vllm_is_told_with_its_counts() -> None:
    with before_vllm() as (fake, address):
        for body, path in ((LONG, CHAT), ({"prompt": "word " * 5000}, "/v1/completions")):
            for stream in (False, True):
                answer = httpx2.post(address + path, json={**body, "stream": stream}, timeout=30)
                error = answer.json()["error"]
                assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
                assert f"maximum context length is {fake_vllm.CONTEXT} tokens" in error["message"]
                assert error["param"] == ("messages" if path == CHAT else "prompt")
        assert not fake.asked


def test_the_tokens_of_a_prompt_are_counted_by_the_upstream() -> None:
    with before_vllm() as (fake, address):
        counted = httpx2.post(f"{address}/v1/messages/count_tokens", json={"messages": HI["messages"]}, timeout=30)
        answer = httpx2.post(f"{address}/v1/messages", json=HI, timeout=30)
        assert counted.json()["input_tokens"] == answer.json()["usage"]["input_tokens"] > 0
        assert len(fake.asked) == 1
    with saying() as address:
        refused = httpx2.post(f"{address}/v1/messages/count_tokens", json={"messages": HI["messages"]}, timeout=30)
        assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("fault", ["500", "busy", "silent"])
def test_an_upstream_that_fails_before_it_says_anything_is_a_503(fault: str) -> None:
    with before_vllm(fault=fault) as (fake, address):
        for stream in (False, True):
            answer = httpx2.post(address + CHAT, json={**HI, "stream": stream}, timeout=30)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        fake.fault = None
        assert httpx2.post(address + CHAT, json=HI, timeout=30).status_code == 200


def test_what_an_upstream_said_before_it_broke_off_is_kept() -> None:
    with before_vllm(fault="half") as (_, address):
        streamed = httpx2.post(address + CHAT, json={**HI, "stream": True}, timeout=30)
        assert said(streamed)
        assert httpx2.post(address + CHAT, json=HI, timeout=30).status_code == 503
        anthropic = httpx2.post(f"{address}/v1/messages", json={**HI, "stream": True}, timeout=30)
        assert [event["type"] for event in events(anthropic)][-1] == "error"
        responses = httpx2.post(f"{address}/v1/responses", json={"input": "Hi.", "stream": True}, timeout=30)
        (text,) = events(responses)[-1]["response"]["output"]
        assert text["type"] == "message"


def test_a_client_that_goes_ends_the_work_of_the_upstream() -> None:
    with before_vllm(pause=0.05) as (fake, address):
        with httpx2.stream("POST", address + CHAT, json={**HI, "stream": True}, timeout=30) as answer:
            next(answer.iter_lines())
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(address + CHAT, json=HI, timeout=0.5)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(_until, lambda: fake.aborted == 2 and fake.running == 0).result(10)


def _until(holds: Any) -> bool:
    while not holds():
        pass
    return True


def test_a_llama_server_that_dies_and_comes_back() -> None:
    endless = {**HI, "max_tokens": 1500, "regex": "[a-z ]{1500,}"}
    with llama_server() as (url, process), serving(LlamaServer(url)) as address, ThreadPoolExecutor(8) as pool:
        long = httpx2.post(address + CHAT, json=LONG, timeout=60)
        assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")
        assert "maximum context length is 2048 tokens" in long.json()["error"]["message"]
        begun = []
        with httpx2.stream("POST", address + CHAT, json={**endless, "stream": True}, timeout=60) as answer:
            lines = answer.iter_lines()
            begun += [next(lines) for _ in range(6)]
            # More than the server's slots: some wait there.
            waiting = [pool.submit(httpx2.post, address + CHAT, json=endless, timeout=60) for _ in range(SLOTS + 2)]
            begun += [next(lines) for _ in range(20)]
            process.kill()
            told = [line for line in [*begun, *lines] if line.startswith("data: {")]
        assert json.loads(told[-1][6:])["error"]["code"] == "unavailable"
        assert "".join(json.loads(line[6:])["choices"][0]["delta"].get("content") or "" for line in told[:-1])
        for answer in [request.result() for request in waiting] + [httpx2.post(address + CHAT, json=HI)]:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        with llama_server(urlsplit(url).port or 0) as (again, _):
            assert again == url
            assert httpx2.post(address + CHAT, json=HI, timeout=60).status_code == 200


async def _completions(request: Request) -> Response:
    if len((await request.json())["prompt"]) > 1000:
        message = "This model's maximum context length is 100 tokens, however you requested 5001 tokens"
        return JSONResponse({"error": {"message": message, "type": "invalid_request_error", "code": None}}, 400)
    chunk = {"choices": [{"text": '{"a": 1}', "finish_reason": "stop"}]}
    return StreamingResponse(iter([f"data: {json.dumps(chunk)}\n\n", "data: [DONE]\n\n"]))


def test_an_engine_that_enforces_nothing_is_told_of() -> None:
    plain = Starlette(routes=[Route("/v1/completions", _completions, methods=["POST"])])
    body = {**HI, "response_format": {"type": "json_object"}}
    with fake_vllm.serving(plain) as url, serving(OpenAICompletions(url, "m")) as address:
        for stream in (False, True):
            answer = httpx2.post(address + CHAT, json={**body, "stream": stream})
            told = json.loads(answer.headers["x-toolgram-relaxations"])
            assert (told[0]["pointer"], told[0]["keyword"]) == ("", "grammar")
        assert httpx2.post(f"{address}/v1/explain", json=body).json()["relaxations"] == told
        assert "x-toolgram-relaxations" not in httpx2.post(address + CHAT, json=HI).headers
        long = httpx2.post(address + CHAT, json=LONG)
        assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")
        assert "requested 5001 tokens" in long.json()["error"]["message"]


ODD: dict[str, list[Any]] = {
    "choices are no list": [{"choices": 5}],
    "a choice is no object": [{"choices": ["a"]}],
    "a text is no string": [{"choices": [{"text": 5}]}],
    "ids are no numbers": [{"choices": [{"text": "a", "token_ids": ["x"]}]}],
    "an end is no word": [{"choices": [{"text": "", "finish_reason": ["stop"]}]}],
    "counts are no numbers": [{"choices": [{"text": "a"}], "usage": {"prompt_tokens": "many"}}],
    "a list": [[]],
    "a line without an end": [{"choices": [{"text": "x" * 20_000_000}]}],
}


@contextmanager
def saying(*events: Any, first: str = "") -> Iterator[str]:
    """A server before one that says this after a word, in one line each, and `first` before all."""
    word = {"choices": [{"text": "word "}]}

    async def completions(request: Request) -> Response:
        lines = [first, *(f"data: {json.dumps(event)}\n\n" for event in (word, *events))]
        return StreamingResponse(iter(lines), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/completions", completions, methods=["POST"])])
    with fake_vllm.serving(app) as url, serving(OpenAICompletions(url, "m")) as address:
        yield address


@pytest.mark.parametrize("name", ODD)
def test_an_upstream_that_says_what_cannot_be_understood_is_a_503(name: str) -> None:
    with saying(*ODD[name]) as address:
        answer = httpx2.post(address + CHAT, json=HI, timeout=60)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
        assert said(httpx2.post(address + CHAT, json={**HI, "stream": True}, timeout=60)) == "word "


def test_half_a_character_of_an_upstream_is_replaced() -> None:
    with saying({"choices": [{"text": "a\ud83d", "finish_reason": "stop"}]}) as address:
        for path, body in ((CHAT, HI), ("/v1/messages", HI), ("/v1/responses", {"input": "Hi."})):
            for stream in (False, True):
                answer = httpx2.post(address + path, json={**body, "stream": stream}, timeout=60)
                assert answer.status_code == 200
                assert "a\ufffd" in answer.text


def test_a_byte_order_mark_before_the_events_of_an_upstream_is_none_of_them() -> None:
    with saying({"choices": [{"text": "again", "finish_reason": "stop"}]}, first="\ufeff") as address:
        answer = httpx2.post(address + CHAT, json=HI, timeout=60)
        assert answer.json()["choices"][0]["message"]["content"] == "word again"


USAGES: dict[str, Any] = {
    CHAT: (HI, ("prompt_tokens", "completion_tokens")),
    "/v1/completions": ({"prompt": "Say it.", "max_tokens": 9}, ("prompt_tokens", "completion_tokens")),
    "/v1/responses": ({"input": "Hi."}, ("input_tokens", "output_tokens")),
    "/v1/messages": (HI, ("input_tokens", "output_tokens")),
}


def usage_of(answer: httpx2.Response) -> dict[str, Any]:
    """The last one that is told."""
    if "event-stream" not in answer.headers["content-type"]:
        return answer.json()["usage"]
    told = (event.get("usage") or event.get("response", {}).get("usage") for event in events(answer))
    return [usage for usage in told if usage][-1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", USAGES)
def test_where_an_upstream_counts_no_tokens_they_are_estimated_and_said_to_be(path: str, *, stream: bool) -> None:
    body, (read, written) = USAGES[path]
    options = {"stream": stream, **({"stream_options": {"include_usage": True}} if stream and "comp" in path else {})}
    more = {"choices": [{"text": "two three stop"}]}
    ended = {"choices": [{"text": "", "finish_reason": "stop"}]}
    usage = {"prompt_tokens": 7, "completion_tokens": 5}
    stopped = {"stop_sequences" if "messages" in path else "stop": ["stop"]}
    cases = [({}, (more, ended), True), ({}, (more, ended | {"usage": usage}), False)]
    if path != "/v1/responses":  # which has no stop strings; elsewhere it is found before the upstream tells anything
        cases.append((stopped, (more,), True))
    for asked, told, estimated in cases:
        with saying(*told) as address:
            found = usage_of(httpx2.post(address + path, json={**body, **asked, **options}, timeout=60))
        assert found.get("estimated", False) is estimated
        assert found[written] == (2 if estimated else 5)
        assert (found[read] == 7) is not estimated
        assert found[read] > 0
