"""Keys, limits, faults, and what is told of them."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from live_server import serving
from request_bodies import message_of
from toolgram.api.generation import Generation
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay
from toolgram.server.listening import Server, config
from toolgram.server.settings import Settings

CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}]}


class Slow(Replay):
    """Says a word, then waits until it is free, and tells when it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Semaphore(0)
        self.stopped = threading.Semaphore(0)
        self.free = False

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """A word, and nothing until it is free."""
        self.begun.release()
        try:
            yield Chunk("slow", (1,))
            while not self.free:
                await asyncio.sleep(0.01)
            yield Chunk("", finish="stop", usage=Usage(completion_tokens=1))
        finally:
            self.stopped.release()


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The lines of the server's log."""
    logger = logging.getLogger("toolgram.server")
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Kept()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield said
    logger.removeHandler(handler)


def test_keys() -> None:
    with serving(Replay("a", "b", "c", "d"), Settings(api_keys=("right", "also"))) as address:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "right"}, {"x-api-key": "ä".encode()}):
            answer = httpx2.post(address + CHAT, json=HI, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
        assert httpx2.post(address + CHAT, json=HI, headers={"authorization": "Bearer right"}).status_code == 200
        assert httpx2.post(address + CHAT, json=HI, headers={"x-api-key": "also"}).status_code == 200
        for both in (
            {"authorization": "Bearer of another", "x-api-key": "also"},
            {"authorization": "Bearer also", "x-api-key": "-"},
        ):
            assert httpx2.post(address + CHAT, json=HI, headers=both).status_code == 200
        assert httpx2.get(address + "/health").status_code == 200
        assert httpx2.get(address + "/v1/models").status_code == 401


def test_a_large_body_is_refused_whether_it_tells_its_length_or_not() -> None:
    with serving(Replay(), Settings(max_body=1000)) as address:
        assert httpx2.post(address + CHAT, content=b"x" * 1001).status_code == 413
        assert httpx2.post(address + CHAT, content=iter([b"x" * 600] * 2)).status_code == 413


WHOLE: dict[str, Any] = {
    CHAT: {**HI, "temperature": 0.5, "tools": [{"type": "function", "function": {"name": "f"}}]},
    "/v1/explain": {**HI, "response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": [1]}}}},
    "/v1/responses": {"input": [{"role": "user", "content": "Hi."}], "tools": [{"type": "function", "name": "f"}]},
    "/v1/messages": {**HI, "max_tokens": 9, "tools": [{"name": "f", "input_schema": {"type": "object"}}]},
    "/v1/completions": {"prompt": ["Once", "In"], "max_tokens": 9, "stop": ["."], "n": 1},
    "/api/chat": {**HI, "tools": [{"type": "function", "function": {"name": "f"}}], "options": {"top_k": 9}},
    "/api/generate": {"prompt": "Once", "format": {"enum": [1]}, "options": {"num_predict": 9}},
}


@pytest.mark.parametrize("path", WHOLE)
def test_malformed_bodies_are_never_a_500(path: str) -> None:
    whole = json.dumps(WHOLE[path]).encode()
    chance = random.Random(1)
    with serving(Replay(*["x"] * 400)) as address, httpx2.Client() as client:
        for _ in range(100):
            body = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                body[chance.randrange(len(body))] = chance.choice(b'"{}[]:,1 n\x00\xff')
            cut = bytes(body[: chance.randrange(len(body))]) if chance.random() < 0.3 else bytes(body)
            answer = client.post(address + path, content=cut)
            assert answer.status_code < 500, (cut, answer.text)
            assert answer.status_code == 200 or message_of(answer.json()), cut
        deep = b'{"messages":' + b"[" * 900 + b"]" * 900 + b"}"
        for odd in (b"", b"null", b"[]", b'"x"', b"1", b"[" * 5000, deep):
            assert client.post(address + path, content=odd).status_code == 400
        assert client.post(address + path, json=WHOLE[path]).status_code == 200
        assert "toolgram_requests_running 0.0" in client.get(address + "/metrics").text


def test_a_compressed_body_is_refused() -> None:
    with serving(Replay("a")) as address:
        for encoding, status in (("gzip", 400), ("identity", 200)):
            answer = httpx2.post(address + CHAT, json=HI, headers={"content-encoding": encoding})
            assert answer.status_code == status
            assert status == 200 or answer.json()["error"]["code"] == "unsupported_encoding"


def test_no_such_route_or_method() -> None:
    with serving(Replay()) as address:
        assert httpx2.get(address + "/v2/nothing").status_code == 404
        assert httpx2.get(address + CHAT).status_code == 405
        assert httpx2.get(address + CHAT).json()["error"]["code"] == "no_such_route"


def test_who_finds_the_queue_full_is_told_to_come_back() -> None:
    engine = Slow()
    with serving(engine, Settings(parallel=1, queue=1)) as address, ThreadPoolExecutor() as pool:
        first = pool.submit(httpx2.post, address + CHAT, json=HI, timeout=20)
        assert engine.begun.acquire(timeout=10)
        second = pool.submit(httpx2.post, address + CHAT, json=HI, timeout=20)
        wait_for(lambda: "toolgram_requests_waiting 1.0" in httpx2.get(address + "/metrics").text)
        for stream in (False, True):
            third = httpx2.post(address + CHAT, json={**HI, "stream": stream})
            assert third.status_code == 429
            assert int(third.headers["retry-after"]) >= 1
            assert third.json()["error"]["type"] == "rate_limit_error"
        engine.free = True
        del first, second


def test_planning_takes_two_threads_and_who_finds_too_many_waiting_is_told_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planning, free = threading.Semaphore(0), threading.Event()
    plan = Generation.plan

    def slowly(*given: Any, **named: Any) -> Any:
        planning.release()
        assert free.wait(20)
        return plan(*given, **named)

    monkeypatch.setattr(Generation, "plan", slowly)
    settings = Settings(parallel=2, queue=1)
    with serving(Replay(*["a"] * 5), settings) as address, ThreadPoolExecutor() as pool:
        asked = [pool.submit(httpx2.post, address + CHAT, json=HI, timeout=30) for _ in range(6)]
        done = next(as_completed(asked, timeout=10)).result()
        assert (done.status_code, done.json()["error"]["code"]) == (429, "too_many_requests")
        assert planning.acquire(timeout=10)
        assert planning.acquire(timeout=10)
        assert not planning.acquire(timeout=0.2)
        assert httpx2.get(address + "/health", timeout=5).status_code == 200
        free.set()
        assert sorted(one.result().status_code for one in asked)[:3] == [200] * 3


def wait_for(holds: Any) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


async def asked_and_gone(engine: Slow, url: str, body: Any) -> None:
    """Asks, and goes when the answer has begun."""
    async with httpx2.AsyncClient(timeout=60) as client:
        asking = asyncio.create_task(client.post(url, json=body))
        assert await asyncio.to_thread(engine.begun.acquire, timeout=20)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [path for path in WHOLE if path != "/v1/explain"])
def test_a_client_that_goes_frees_its_place(path: str, stream: bool) -> None:
    engine = Slow()
    body = {key: value for key, value in WHOLE[path].items() if key != "tools"} | {"stream": stream}
    with serving(engine, Settings(parallel=1)) as address:
        asyncio.run(asked_and_gone(engine, address + path, body))
        assert engine.stopped.acquire(timeout=20)
        engine.free = True
        assert httpx2.post(address + CHAT, json=HI, timeout=20).json()["choices"][0]["message"]["content"] == "slow"
        wait_for(lambda: "toolgram_requests_running 0.0" in httpx2.get(address + "/metrics").text)


def test_a_request_that_takes_too_long() -> None:
    with serving(Slow(), Settings(timeout=0.3)) as address:
        answer = httpx2.post(address + CHAT, json=HI)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
        assert answer.headers["x-should-retry"] == "false"
        streamed = httpx2.post(address + CHAT, json={**HI, "stream": True})
    events = [line for line in streamed.text.split("\n\n") if line]
    assert json.loads(events[-1].removeprefix("data: "))["error"]["code"] == "timeout"
    assert '"content":"slow"' in streamed.text


def test_a_stream_shows_that_it_lives() -> None:
    with serving(Slow(), Settings(timeout=1, keep_alive=0.2)) as address:
        assert ": keep-alive\n\n" in httpx2.post(address + CHAT, json={**HI, "stream": True}).text


class Silent(Slow):
    """Says nothing until it is free."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """A word, when it is free."""
        while not self.free:
            await asyncio.sleep(0.01)
        async for chunk in super().generate(prompt, constraint, sampling):
            yield chunk


@pytest.mark.parametrize(
    ("path", "more", "silence", "end"),
    [
        ("/v1/responses", {"input": "Hi."}, ["created", "in_progress", "in_progress"], "completed"),
        ("/v1/messages", {**HI, "max_tokens": 9}, ["message_start", "ping", "ping"], "message_stop"),
    ],
)
def test_a_silence_is_an_event_where_the_api_has_one(path: str, more: Any, silence: list[str], end: str) -> None:
    """Codex gives up where no event comes for a while, as when a long prompt is read; it sees no comments."""
    engine, told = Silent(), list[str]()
    with (
        serving(engine, Settings(keep_alive=0.05)) as address,
        httpx2.stream("POST", address + path, json={**more, "model": "recorded", "stream": True}) as answer,
    ):
        for line in answer.iter_lines():
            assert not line.startswith(":")
            if line.startswith("event: "):
                told.append(line.removeprefix("event: ").removeprefix("response."))
                engine.free = len(told) >= len(silence)
    assert told[: len(silence)] == silence
    assert (told.count(silence[0]), told[-1]) == (1, end)


def test_answers_are_as_long_as_the_server_allows() -> None:
    with serving(Replay(list("Hello.")), Settings(max_tokens=3)) as address:
        assert httpx2.post(address + CHAT, json={**HI, "max_tokens": 4}).json()["error"]["param"] == "max_tokens"
        answer = httpx2.post(address + CHAT, json=HI).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"] == "Hel"


def test_pages_of_other_sites_are_let_in_only_where_that_is_asked_for() -> None:
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    with serving(Replay()) as address:
        assert "access-control-allow-origin" not in httpx2.options(address + CHAT, headers=asked).headers
    with serving(Replay(), Settings(origins=("https://a.example",), api_keys=("k",))) as address:
        answer = httpx2.options(address + CHAT, headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        seen = httpx2.get(address + "/health", headers={"origin": "https://a.example"}).headers
        assert {"x-request-id", "request-id"} <= set(seen["access-control-expose-headers"].split(", "))
        other = httpx2.options(address + CHAT, headers={**asked, "origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


def test_the_log_has_no_contents_unless_they_are_asked_for(lines: list[str]) -> None:
    secret = {"messages": [{"role": "user", "content": "a secret"}]}
    with serving(Replay("another secret")) as address:
        httpx2.post(address + CHAT, json=secret, headers={"x-request-id": "mine-1"})
    (line,) = lines
    told = json.loads(line)
    assert "secret" not in line
    assert (told["request"], told["status"], told["path"], told["completion_tokens"]) == ("mine-1", 200, CHAT, 1)
    with serving(Replay("another secret"), Settings(log_contents=True)) as address:
        httpx2.post(address + CHAT, json=secret)
    assert json.loads(lines[1])["answers"][0]["content"] == "another secret"


def test_the_log_tells_what_was_written_before_an_answer_broke_off(lines: list[str]) -> None:
    with serving(Slow(), Settings(timeout=0.5)) as address:
        assert httpx2.post(address + CHAT, json={**HI, "n": 2}).status_code == 504
    told = json.loads(lines[0])
    assert (told["status"], told["completion_tokens"]) == (504, 2)


def test_a_log_that_cannot_be_written_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("toolgram.server")
    logger.setLevel(logging.INFO)
    full = Path("/dev/full").open("w")  # noqa: SIM115 - a device that is always full, even when it is closed
    handler = logging.StreamHandler(full)
    logger.addHandler(handler)
    try:
        with serving(Replay("a", "b")) as address:
            assert httpx2.post(address + CHAT, json=HI).status_code == 200
            assert httpx2.post(address + CHAT, json=HI).status_code == 200
    finally:
        logger.removeHandler(handler)
        with suppress(OSError):
            full.close()
    assert "No space left" in capsys.readouterr().err


def test_odd_request_ids_are_not_repeated() -> None:
    with serving(Replay("a")) as address:
        answer = httpx2.get(address + "/health", headers={"x-request-id": "a b\x01"})
    assert answer.headers["x-request-id"].startswith("req_")


def test_metrics_count() -> None:
    with serving(Replay(list("abc"))) as address:
        httpx2.post(address + CHAT, json=HI)
        httpx2.post(address + CHAT, json={})
        httpx2.get(address + "/v1/models/none")
        text = httpx2.get(address + "/metrics").text
    assert 'toolgram_requests_total{path="/v1/chat/completions",status="200"} 1.0' in text
    assert 'toolgram_requests_total{path="/v1/chat/completions",status="400"} 1.0' in text
    assert 'toolgram_requests_total{path="other",status="404"} 1.0' in text
    assert 'toolgram_tokens_total{kind="answer"} 3.0' in text


def test_streams_are_finished_before_the_server_ends() -> None:
    engine = Slow()
    with ThreadPoolExecutor() as pool:
        with serving(engine) as address:
            answer = pool.submit(httpx2.post, address + CHAT, json={**HI, "stream": True}, timeout=20)
            assert engine.begun.acquire(timeout=10)
            engine.free = True
        assert answer.result().text.endswith("data: [DONE]\n\n")
    assert engine.closed


def test_models_are_told() -> None:
    with serving(Replay(), aliases=["other"]) as address:
        (model,) = httpx2.get(address + "/v1/models").json()["data"]
        assert (model["id"], model["object"], model["aliases"]) == ("recorded", "model", ["other"])
        assert httpx2.get(address + "/v1/models/other").json()["id"] == "recorded"


def test_what_would_be_sent_is_explained() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    with serving(Replay()) as address:
        told = httpx2.post(address + "/v1/explain", json={**HI, "tools": tools, "dialect": "lark"}).json()
        assert told["style"]["name"] == "compact"
        assert "".join(part["text"] for part in told["prompt_parts"]) == told["prompt"]
        assert told["grammar"]["text"].startswith("start:")
        wrong = httpx2.post(address + "/v1/explain", json={**HI, "tools": tools, "dialect": "bnf"})
    assert wrong.json()["error"]["param"] == "dialect"


@pytest.mark.parametrize(("tasks", "on_terminal"), [(2, True), (0, True), (2, False)])
def test_on_a_terminal_a_server_that_waits_says_so(
    tasks: int, on_terminal: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(config(lambda: None, 25))
    monkeypatch.setattr(server.server_state, "tasks", set(range(tasks)))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    server.handle_exit(signal.SIGINT, None)
    said = capfd.readouterr().err
    if tasks and on_terminal:
        assert said == "\nending: 2 running, for 25 seconds at most (--shutdown-timeout); Ctrl-C ends now\n"
    else:
        assert said == ""
