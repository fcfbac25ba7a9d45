"""Servers that refuse, fail, break off, fall silent or die: every request that waits gets an error, and what came."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, contextmanager
from typing import Any

import httpcore2
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import toolgram
from engines.contract import CALLS, SEA, one_of
from engines.fake_vllm import FakeVllm, OwnGrammar, serving
from engines.peers import llama_server
from situations import CHATML
from toolgram.chat import generate
from toolgram.engines.base import Chunk, Engine, Logprob, Prompt, Sampling, SupportsGrammar, TokenLogprobs, Usage
from toolgram.engines.remote import http
from toolgram.engines.remote.http import Http, Silent, Unavailable, trusted
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.engines.remote.vllm import Vllm
from toolgram.errors import EngineError
from toolgram.grammar.constraint import Constraint


@contextmanager
def fakes(count: int = 1, **made: object) -> Iterator[tuple[list[FakeVllm], list[str]]]:
    servers = [FakeVllm(**made) for _ in range(count)]  # type: ignore[arg-type] - passed on
    with ExitStack() as stack:
        yield servers, [stack.enter_context(serving(server.app)) for server in servers]


def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


async def heard(
    engine: Engine,
    prompt: Prompt = SEA,
    constraint: SupportsGrammar | None = None,
    sampling: Sampling = Sampling(max_tokens=20),  # noqa: B008 - frozen
) -> tuple[str, EngineError | None]:
    """What was said, and the error that ended it."""
    text = ""
    try:
        async with aclosing(engine.generate(prompt, constraint, sampling)) as chunks:
            async for chunk in chunks:
                text += chunk.text
    except EngineError as error:
        return text, error
    return text, None


def test_certificates_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event loop has connections of its own: `generate_sync` makes one for each answer."""
    times = list[object]()
    monkeypatch.setattr(httpx2, "create_ssl_context", lambda: times.append(1) or ssl.create_default_context())
    monkeypatch.setattr(httpcore2, "default_ssl_context", lambda **_: times.append(2) or ssl.create_default_context())
    trusted.cache_clear()
    server = Http(nobody())
    for _ in range(2):
        with pytest.raises(Unavailable):
            asyncio.run(server.get("/", timeout=1))
    assert len(times) == 1


def test_a_server_that_is_not_there_is_an_error() -> None:
    url = nobody()
    for engine in (Vllm(url), LlamaServer(url), OpenAICompletions(url, "m")):
        text, error = asyncio.run(heard(engine))
        assert text == ""
        assert isinstance(error, Unavailable)
        assert url in str(error)


def test_a_server_of_this_machine_is_behind_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable names a proxy, and none says that this machine is not behind it."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    hosts = list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts.append(Headers(scope=scope)["host"])
            await Response("Here.")(scope, receive, send)

    async def asked(url: str) -> bytes:
        return await Http(url).get("/health", timeout=5)

    with serving(app) as address:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, nobody())
        for url in (address, address.replace("127.0.0.1", "localhost")):
            assert asyncio.run(asked(url)) == b"Here."
        with pytest.raises(Unavailable):
            asyncio.run(asked("http://models.example:8000"))
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, address)
        assert asyncio.run(asked("http://models.example:8000")) == b"Here."
    assert [host.partition(":")[0] for host in hosts] == ["127.0.0.1", "localhost", "models.example"]


def test_what_is_no_address_is_refused() -> None:
    for url in ("localhost:8000", "", "ftp://here"):
        with pytest.raises(EngineError, match="not the address of a server"):
            Http(url)
    with pytest.raises(EngineError, match="one server at least"):
        Vllm([])


def test_a_server_that_has_just_spoken_and_is_silent_now_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CHECK_SECONDS", 0.2)

    async def health(_request: Request) -> Response:
        await asyncio.sleep(30)
        return Response()

    async def count(_request: Request) -> Response:
        return JSONResponse({"count": 1})

    async def defect(_request: Request) -> Response:
        return Response(status_code=500)

    async def check(url: str) -> None:
        server = Http(url)
        with pytest.raises(Silent):  # nothing was ever heard of it
            await server.check("/health")
        with pytest.raises(Unavailable):
            await server.post("/defect", {})
        with pytest.raises(Silent):  # an error is no sign of life
            await server.check("/health")
        await server.post("/count", {})
        await server.check("/health")
        monkeypatch.setattr(http, "_LATELY", 0.1)  # that was long ago now
        with pytest.raises(Silent):
            await server.check("/health")

    posted = [Route(f"/{to.__name__}", to, methods=["POST"]) for to in (count, defect)]
    with serving(Starlette(routes=[Route("/health", health), *posted])) as url:
        asyncio.run(check(url))


@pytest.mark.parametrize("fault", ["500", "busy", "dead", "silent"])
def test_another_server_does_what_one_cannot(fault: str) -> None:
    async def run(urls: list[str]) -> list[tuple[str, EngineError | None]]:
        engine = Vllm(urls, timeout=1.0)
        return [await heard(engine) for _ in range(4)]

    with fakes(2) as (servers, urls):
        servers[0].fault = fault
        answers = asyncio.run(run([urls[0], nobody(), urls[1]]))
        assert [error for _, error in answers] == [None] * 4
        assert len({text for text, _ in answers}) == 1
        assert len(servers[0].asked) <= 1  # then it was left alone
        assert len(servers[1].asked) == 4


def test_a_server_is_used_again_when_it_is_well() -> None:
    async def run(url: str, server: FakeVllm) -> list[tuple[str, EngineError | None]]:
        engine = Vllm(url)
        first = await heard(engine)
        server.fault = "dead"
        failed = [await heard(engine) for _ in range(2)]
        server.fault = None
        return [first, *failed, await heard(engine)]

    with fakes() as ((server,), (url,)):
        first, one, other, last = asyncio.run(run(url, server))
        assert first == last
        for text, error in (one, other):
            assert text == ""
            assert isinstance(error, Unavailable)


def test_half_a_stream_is_not_begun_again() -> None:
    async def run(urls: list[str]) -> tuple[str, EngineError | None]:
        return await heard(Vllm(urls))

    with fakes(2) as (servers, urls):
        for server in servers:
            server.fault = "half"
        text, error = asyncio.run(run(urls))
        assert text
        assert isinstance(error, Unavailable)
        assert sum(len(server.asked) for server in servers) == 1


def test_a_refusal_is_told_and_not_tried_elsewhere() -> None:
    async def run(urls: list[str]) -> tuple[str, EngineError | None]:
        return await heard(Vllm(urls), constraint=OwnGrammar("root ::= nowhere"))

    with fakes(2) as (servers, urls):
        text, error = asyncio.run(run(urls))
        assert text == ""
        assert not isinstance(error, Unavailable)
        assert "refuses the request with status 400: Invalid grammar" in str(error)
        assert sum(len(server.asked) for server in servers) == 1


def test_requests_are_spread_and_prefixes_stay_together() -> None:
    def about(topic: str, number: int) -> Prompt:
        return ((f"<|im_start|>system\nAll about {topic}. " + topic * 300 + "<|im_end|>", True), (str(number), False))

    async def run(urls: list[str]) -> None:
        engine = Vllm(urls)
        await asyncio.gather(*(heard(engine, SEA) for _ in range(24)))
        for number in range(4):
            for topic in ("sea", "sun"):
                await heard(engine, about(topic, number))

    with fakes(3, pause=0.005) as (servers, urls):
        asyncio.run(run(urls))
        assert max(server.most_at_once for server in servers) <= 12
        assert min(server.most_at_once for server in servers) >= 4
        for topic in ("sea", "sun"):
            of_topic = [
                number
                for number, server in enumerate(servers)
                for body in server.asked
                if topic * 20 in server.tokenizer.decode(body["prompt"])
            ]
            assert len(of_topic) == 4
            assert len(set(of_topic)) == 1


def test_leaving_disconnects() -> None:
    async def run(url: str, server: FakeVllm) -> None:
        engine = Vllm(url)
        stream = engine.generate(SEA, None, Sampling(max_tokens=2000))
        await anext(stream)
        assert server.running == 1
        await stream.aclose()
        for _ in range(200):
            if not server.running:
                break
            await asyncio.sleep(0.01)
        assert (server.running, server.aborted) == (0, 1)

    with fakes(pause=0.02) as ((server,), (url,)):
        asyncio.run(run(url, server))


def test_what_is_sent_to_vllm() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "<|im_start|>system"}], **CALLS}, CHATML, "long")
    with fakes() as ((server,), (url,)):
        asyncio.run(generate(plan, Vllm(url), Sampling(max_tokens=300, seed=3, temperature=0.5)))
        (body,) = server.asked
        special = server.tokenizer.added_tokens_encoder
        assert body["prompt"].count(special["<|im_start|>"]) == 3  # system, user and assistant; not what the user wrote
        assert server.tokenizer.decode(body["prompt"]) == plan.prompt
        format_ = json.loads(body["structured_outputs"]["structural_tag"])["format"]
        assert format_["type"] == "grammar"
        assert f"Token({special['<tool_call>']})" in format_["grammar"]
        assert body["stop_token_ids"] == [special["<|im_end|>"]]
        assert body["skip_special_tokens"] is False
        assert (body["seed"], body["temperature"], body["max_tokens"], body["stop"]) == (3, 0.5, 300, [])


def test_a_lazy_constraint_becomes_a_structural_tag() -> None:
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Hi."}], "tools": CALLS["tools"]}, CHATML, "long")
    assert plan.constraint is not None
    lazy = plan.constraint.lazy()
    with fakes() as ((server,), (url,)):
        _, error = asyncio.run(heard(Vllm(url), constraint=lazy))
        assert error is None
        tag = json.loads(server.asked[0]["structured_outputs"]["structural_tag"])
        assert tag["type"] == "structural_tag"
        _, error = asyncio.run(heard(Vllm(url, dialect="lark"), constraint=lazy))
        assert "takes no trigger" in str(error)
        own = OwnGrammar('root ::= "a"')
        _, error = asyncio.run(heard(Vllm(url, dialect="structural_tag"), constraint=own))
        assert "no structural tag" in str(error)


def test_a_completion_server_finds_the_ends_as_text() -> None:
    with fakes() as ((server,), (url,)):
        for stops in (("Straße",), ("1", "2", "3", "4", "Straße")):
            engine = OpenAICompletions(f"{url}/v1", "m", api_key="k")
            sampling = Sampling(max_tokens=400, stop=stops)
            whole, _ = asyncio.run(heard(engine, sampling=Sampling(max_tokens=400)))
            text, error = asyncio.run(heard(engine, sampling=sampling))
            assert error is None
            assert "Straße" in whole
            assert text == whole[: whole.index("Straße")]
            assert len(server.asked[-1]["stop"]) <= 4
            assert server.asked[-1]["prompt"] == "".join(text for text, _ in SEA)


def cost(engine: Engine, sampling: Sampling) -> Usage | None:
    """What the last chunk tells."""

    async def run() -> Usage | None:
        async with aclosing(engine.generate(SEA, None, sampling)) as chunks:
            return [chunk async for chunk in chunks][-1].usage

    return asyncio.run(run())


def test_what_a_server_does_not_count_is_counted_here() -> None:
    for sampling in (Sampling(max_tokens=20), Sampling(max_tokens=20, logprobs=0), Sampling(stop=("Straße",))):
        with fakes() as ((server,), (url,)):
            told = cost(Vllm(url), sampling)
            server.fault = "uncounted"
            assert told is not None
            assert told.prompt_tokens > 0 < told.completion_tokens
            assert cost(Vllm(url), sampling) == told
            estimated = cost(OpenAICompletions(url, "m"), sampling)
            assert estimated is not None
            assert estimated.estimated
            assert estimated.completion_tokens <= told.completion_tokens
            if sampling.logprobs is not None:
                assert estimated.completion_tokens == told.completion_tokens


def test_a_vllm_that_ignores_grammars_is_asked_for_none() -> None:
    """As one does that was started with a reasoning parser, without a word."""
    with fakes(unread=True) as ((server,), (url,)):
        engine = Vllm(url)
        for _ in range(2):
            text, error = asyncio.run(heard(engine, constraint=one_of("yes")))
            assert text == ""
            assert f"{url} does not keep to grammars: start vLLM without --reasoning-parser" in str(error)
        assert not server.asked
        assert asyncio.run(heard(engine))[1] is None
        server.unread = False
        assert asyncio.run(heard(engine, constraint=one_of("yes"))) == ('"yes"', None)


@pytest.mark.parametrize("reason", ["stop", "eos", "eos_token", "stop_sequence"])
def test_a_completion_server_ends_in_its_own_words(reason: str) -> None:
    with serving(_saying({"text": "word"}, {"text": "", "finish_reason": reason})) as url:
        chunks = asyncio.run(chunks_of(OpenAICompletions(url, "m"), Sampling()))
    assert [(chunk.text, chunk.finish) for chunk in chunks] == [("word", None), ("", "stop")]


def test_logprobs_come_in_two_forms() -> None:
    """llama-server tells those of `/v1/completions` as of a chat, OpenAI and vLLM in lists."""
    two: list[Any] = [{"token": "no", "bytes": None, "logprob": -0.5}, {"token": "é", "bytes": [195], "logprob": -2.0}]
    chat = {"content": [{**two[0], "top_logprobs": two}, {**two[1], "id": 7, "top_logprobs": []}]}
    lists = {"tokens": ["no"], "token_logprobs": [-0.5], "top_logprobs": [{"\ufffd": -2.0, "no": -0.5}]}
    with serving(_saying({"text": "no", "logprobs": chat}, {"text": "no", "logprobs": lists, **_END})) as url:
        chunks = asyncio.run(chunks_of(OpenAICompletions(url, "m"), Sampling(logprobs=1)))
    no = Logprob(-1, b"no", -0.5)
    assert [chunk.logprobs for chunk in chunks] == [
        (TokenLogprobs(no, (no,)), TokenLogprobs(Logprob(7, b"\xc3", -2.0))),
        (TokenLogprobs(no, (no,)),),
        (),
    ]


def test_what_breaks_off_after_the_end_is_whole() -> None:
    for rest in ([{"text": "", **_END}], []):
        with serving(_saying({"text": "word"}, *rest, breaks=True)) as url:
            text, error = asyncio.run(heard(OpenAICompletions(url, "m")))
        assert text == "word"
        assert (error is None) == bool(rest)


_END = {"finish_reason": "length"}


def _saying(*choices: Mapping[str, Any], breaks: bool = False) -> Starlette:
    """A server whose `/v1/completions` streams these choices, and `breaks` off then."""

    async def events() -> AsyncGenerator[str]:
        for choice in choices:
            yield f"data: {json.dumps({'choices': [choice]})}\n\n"
        if breaks:
            raise ConnectionError

    async def answer(_: Request) -> Response:
        return StreamingResponse(events())

    return Starlette(routes=[Route("/v1/completions", answer, methods=["POST"])])


async def chunks_of(engine: Engine, sampling: Sampling) -> list[Chunk]:
    """All of an answer."""
    async with aclosing(engine.generate(SEA, None, sampling)) as chunks:
        return [chunk async for chunk in chunks]


async def _uncounting(request: Request) -> Response:
    """What a llama-server says that tells no counts."""
    if request.url.path == "/tokenize":
        text = (await request.json())["content"]
        return JSONResponse({"tokens": [{"id": ord(piece), "piece": piece} for piece in text]})
    events = [{"content": piece, "tokens": [ord(piece)]} for piece in "word"]
    told = [*events, {"stop": True, "stop_type": "limit", "content": ""}]
    return StreamingResponse(iter([f"data: {json.dumps(event)}\n\n" for event in told]))


def test_what_a_llama_server_does_not_count_is_counted_here() -> None:
    paths = ("/tokenize", "/completion")
    with serving(Starlette(routes=[Route(path, _uncounting, methods=["POST"]) for path in paths])) as url:
        text = "".join(text for text, _ in SEA)
        assert cost(LlamaServer(url), Sampling()) == Usage(len(text), completion_tokens=4, forward_passes=4)


def test_a_killed_server_leaves_no_request_waiting() -> None:
    async def listen(engine: Engine, begun: asyncio.Event) -> tuple[str, EngineError | None]:
        text = ""
        endless = OwnGrammar("root ::= [a-z ]{1900}")  # no text is over before the server is killed
        sampling = Sampling(max_tokens=1500, temperature=1.0)
        stream: AsyncGenerator[Chunk, None] = engine.generate(SEA, endless, sampling)
        try:
            async for chunk in stream:
                text += chunk.text
                begun.set()
        except EngineError as error:
            return text, error
        return text, None

    async def run() -> list[tuple[str, EngineError | None]]:
        async with AsyncExitStack() as stack:
            url, process = stack.enter_context(llama_server())
            engine = LlamaServer(url)
            begun = asyncio.Event()
            tasks = [asyncio.create_task(listen(engine, begun)) for _ in range(6)]
            await begun.wait()
            process.kill()
            return await asyncio.wait_for(asyncio.gather(*tasks), timeout=20)

    answers = asyncio.run(run())
    assert all(isinstance(error, Unavailable) for _, error in answers), answers
    assert any(text for text, _ in answers)


def test_grammars_that_llama_server_misreads_are_not_sent() -> None:
    """It hangs on the first, and takes the others for no grammar or for a crash."""
    for grammar in ('root ::= "a"{5,2}', "root ::= nowhere", "%llguidance {}\nstart: /a/", 'root ::= root "a" | "a"'):
        with serving(_tokens_only) as url:
            _, error = asyncio.run(heard(LlamaServer(url), constraint=OwnGrammar(grammar)))
        assert error is not None
        assert "no GBNF" in str(error)


async def _tokens_only(scope: object, receive: object, send: object) -> None:
    """A llama-server without tokens, which must be asked for nothing else."""
    assert scope["path"] == "/tokenize"  # type: ignore[index] - ASGI
    await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator] - ASGI
    await send({"type": "http.response.body", "body": b'{"tokens": []}'})  # type: ignore[operator] - ASGI


def test_a_trigger_leaves_free_what_comes_before() -> None:
    with llama_server() as (url, _):
        engine = LlamaServer(url)
        lazy = Constraint(toolgram.Grammar(one_of("sea", "sky").grammar.rules), trigger='"')
        text, error = asyncio.run(heard(engine, constraint=lazy, sampling=Sampling(max_tokens=40)))
        assert error is None
        assert text.partition('"')[0] != ""
