"""What one client asks for, at its worst, leaves the others served."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from live_server import listening, serving
from request_bodies import message_of
from situations import CHATML
from toolgram.conversation.lark_patterns import as_pattern
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay
from toolgram.server.app import create_app
from toolgram.server.listening import Connection
from toolgram.server.models import Served
from toolgram.server.settings import Settings

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}]}


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


class Counting(Replay):
    """Writes answers, of which the first `may_end` end, and counts how many it writes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Semaphore(0)
        self.may_end = self.running = self.most = 0
        self.prompts: list[str] = []

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """One word."""
        number = len(self.prompts)
        self.prompts.append(prompt if isinstance(prompt, str) else "".join(text for text, _ in prompt))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            self.begun.release()
            while number >= self.may_end:
                await asyncio.sleep(0.005)
            yield Chunk("word", (1,))
            yield Chunk("", finish="stop", usage=Usage(completion_tokens=1))
        finally:
            self.running -= 1


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "many"), [(CHAT, {**HI, "n": 8}), (COMPLETIONS, {"prompt": ["a", "b"], "n": 4, "max_tokens": 9})]
)
def test_each_choice_of_a_request_needs_a_place_and_others_come_before_its_next(
    path: str, many: dict[str, Any], *, stream: bool
) -> None:
    engine = Counting()
    with serving(engine, Settings(parallel=2)) as address, ThreadPoolExecutor() as pool:
        all_of_them = pool.submit(httpx2.post, address + path, json={**many, "stream": stream}, timeout=30)
        assert engine.begun.acquire(timeout=10)
        assert engine.begun.acquire(timeout=10)
        ordinary = pool.submit(httpx2.post, address + CHAT, json=said("Another."), timeout=30)
        wait_for(lambda: "toolgram_requests_waiting 1.0" in httpx2.get(address + "/metrics").text)
        engine.may_end = 2  # one of these is the place of the request, the other a spare one
        assert engine.begun.acquire(timeout=10)
        assert engine.begun.acquire(timeout=10)
        assert "Another." in engine.prompts[2] + engine.prompts[3]
        engine.may_end = 9
        assert ordinary.result().status_code == 200
        answer = all_of_them.result()
        assert answer.status_code == 200
        assert answer.text.count("word") == 8
        assert engine.most == 2
        wait_for(lambda: "toolgram_requests_running 0.0" in httpx2.get(address + "/metrics").text)


class InTurn(Counting):
    """Lets clients write in turn, as the embedded engine does."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = Capabilities(turns=True)


def test_where_clients_write_in_turn_one_that_has_no_place_does_not_wait_for_one() -> None:
    engine = InTurn()
    settings = Settings(parallel=2, api_keys=("greedy", "modest", "third", "fourth"))

    def ask(address: str, key: str) -> httpx2.Response:
        body = {"messages": [{"role": "user", "content": f"by {key}."}]}
        return httpx2.post(address + CHAT, json=body, headers={"authorization": f"Bearer {key}"}, timeout=30)

    with serving(engine, settings) as address, ThreadPoolExecutor(9) as pool:
        waiting = "toolgram_requests_waiting {}.0".format
        many = [pool.submit(ask, address, "greedy") for _ in range(5)]
        wait_for(lambda: waiting(3) in httpx2.get(address + "/metrics").text)
        assert engine.running == 2
        few = [pool.submit(ask, address, key) for key in ("modest", "modest", "third", "fourth")]
        wait_for(lambda: waiting(5) in httpx2.get(address + "/metrics").text)
        assert engine.running == engine.most == 4
        told = "".join(engine.prompts)
        assert told.count("by greedy.") == 2
        assert sorted(told.count(f"by {key}.") for key in ("modest", "third", "fourth")) == [0, 1, 1]
        engine.may_end = 9
        assert {one.result().status_code for one in (*many, *few)} == {200}
        assert engine.most == 4
        wait_for(lambda: "toolgram_requests_running 0.0" in httpx2.get(address + "/metrics").text)


@pytest.mark.parametrize("stream", [False, True])
def test_requests_for_many_choices_pass_their_place_on_between_them(*, stream: bool) -> None:
    engine = Counting()
    asked: list[Any] = []
    with serving(engine, Settings(parallel=1)) as address, ThreadPoolExecutor() as pool:
        for waiting, (name, n) in enumerate({"first": 3, "second": 3, "third": 1, "fourth": 1}.items()):
            body = {**said(name), "n": n, "stream": stream}
            asked.append(pool.submit(httpx2.post, address + CHAT, json=body, timeout=30))
            now = f"toolgram_requests_waiting {waiting}.0"
            wait_for(lambda now=now: bool(engine.prompts) and now in httpx2.get(address + "/metrics").text)
        engine.may_end = 1
        wait_for(lambda: len(engine.prompts) == 2)
        assert "toolgram_requests_waiting 3.0" in httpx2.get(address + "/metrics").text
        assert "toolgram_requests_running 1.0" in httpx2.get(address + "/metrics").text
        engine.may_end = 99
        assert [one.result().text.count("word") for one in asked] == [3, 3, 1, 1]
        wait_for(lambda: "toolgram_requests_running 0.0" in httpx2.get(address + "/metrics").text)
    order = " ".join(re.findall("first|second|third|fourth", "".join(engine.prompts)))
    assert order == "first second third fourth first second first second"


def test_no_place_is_lost_where_clients_leave_while_theirs_are_passed_on() -> None:
    engine = Counting()
    with serving(engine, Settings(parallel=2)) as address, ThreadPoolExecutor() as pool:

        def leaving() -> None:
            with pytest.raises(httpx2.TimeoutException):
                httpx2.post(address + CHAT, json={**HI, "n": 4}, timeout=1)

        many = pool.submit(leaving)
        wait_for(lambda: len(engine.prompts) == 2)
        others = [pool.submit(httpx2.post, address + CHAT, json=HI, timeout=30) for _ in range(2)]
        wait_for(lambda: "toolgram_requests_waiting 2.0" in httpx2.get(address + "/metrics").text)
        engine.may_end = 2
        many.result()
        wait_for(lambda: "toolgram_requests_waiting 0.0" in httpx2.get(address + "/metrics").text)
        others += [pool.submit(httpx2.post, address + CHAT, json=HI, timeout=30) for _ in range(3)]
        wait_for(lambda: "toolgram_requests_waiting 3.0" in httpx2.get(address + "/metrics").text)
        assert engine.running == 2
        engine.may_end = 99
        assert [one.result().status_code for one in others] == [200] * 5
        assert engine.most == 2


def test_many_requests_of_one_client_do_not_stand_before_those_of_another() -> None:
    engine = Counting()
    settings = Settings(parallel=1, queue=4, api_keys=("greedy", "modest"))

    def ask(key: str) -> httpx2.Response:
        return httpx2.post(address + CHAT, json=said(key), headers={"x-api-key": key}, timeout=30)

    with serving(engine, settings) as address, ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(ask, "greedy")]
        wait_for(lambda: len(engine.prompts) == 1)
        asked += [pool.submit(ask, "greedy") for _ in range(4)]
        wait_for(lambda: "toolgram_requests_waiting 4.0" in httpx2.get(address + "/metrics").text)
        assert ask("greedy").status_code == 429
        asked += [pool.submit(ask, "modest") for _ in range(2)]
        wait_for(lambda: "toolgram_requests_waiting 6.0" in httpx2.get(address + "/metrics").text)
        assert ask("modest").status_code == 429
        engine.may_end = 99
        assert [one.result().status_code for one in asked] == [200] * 7
    whose = ["modest" if "modest" in prompt else "greedy" for prompt in engine.prompts]
    assert whose == ["greedy", "greedy", "modest", "greedy", "modest", "greedy", "greedy"]


def test_many_requests_of_one_program_do_not_stand_before_those_of_another_of_the_same_client() -> None:
    engine = Counting()

    def ask(program: str) -> httpx2.Response:
        return httpx2.post(address + CHAT, json=said(program), headers={"user-agent": program}, timeout=30)

    with serving(engine, Settings(parallel=1)) as address, ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(ask, "batch")]
        wait_for(lambda: len(engine.prompts) == 1)
        asked += [pool.submit(ask, "batch") for _ in range(4)]
        wait_for(lambda: "toolgram_requests_waiting 4.0" in httpx2.get(address + "/metrics").text)
        asked += [pool.submit(ask, "chat") for _ in range(2)]
        wait_for(lambda: "toolgram_requests_waiting 6.0" in httpx2.get(address + "/metrics").text)
        engine.may_end = 99
        assert [one.result().status_code for one in asked] == [200] * 7
    whose = ["chat" if "chat" in prompt else "batch" for prompt in engine.prompts]
    assert whose == ["batch", "batch", "chat", "batch", "chat", "batch", "batch"]


def test_all_places_are_free_after_a_request_for_many_choices_is_gone() -> None:
    engine = Counting()
    with serving(engine, Settings(parallel=3)) as address, ThreadPoolExecutor() as pool:
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(address + CHAT, json={**HI, "n": 20}, timeout=0.5)
        wait_for(lambda: not engine.running)
        begun = len(engine.prompts)
        asked = [pool.submit(httpx2.post, address + CHAT, json=HI, timeout=30) for _ in range(3)]
        wait_for(lambda: len(engine.prompts) == begun + 3)
        engine.may_end = begun + 3
        assert [one.result().status_code for one in asked] == [200] * 3


def test_a_long_grammar_of_a_custom_tool_is_read_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads: list[bool] = []

    def noted(grammar: str) -> str:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            in_threads.append(True)
        return as_pattern(grammar)

    monkeypatch.setattr("toolgram.conversation.custom_tools.as_pattern", noted)
    grammar = {"syntax": "lark", "definition": 'start: "x"' + "\n" * 30_000}
    custom = {"name": "f", "format": {"type": "grammar", "grammar": grammar}}
    with serving(Replay("Hello.")) as address:
        answer = httpx2.post(address + CHAT, json={**HI, "tools": [{"type": "custom", "custom": custom}]})
        assert answer.status_code == 200
        assert in_threads == [True]
        grammar["definition"] += "\n" * 40_000
        answer = httpx2.post(address + CHAT, json={**HI, "tools": [{"type": "custom", "custom": custom}]})
    assert answer.status_code == 400
    assert answer.json()["error"]["pointer"] == "/tools/0/custom/format/grammar/definition"
    assert "at most 65536 characters" in answer.json()["error"]["message"]


TOO_MUCH = {
    "characters": ('root ::= "x"\n' + "#" * 70_000, "70013 characters: a grammar may have at most 65536"),
    "rules": ('root ::= "x"\n' + "".join(f'a{i} ::= "x"\n' for i in range(1000)), "1001 rules"),
    "groups": ("root ::= " + "(" * 300 + '"x"' + ")" * 300, "nested too deeply"),
    "repetitions": ('root ::= "x"' + "?" * 5000, "nested too deeply"),
}


@pytest.mark.parametrize("body", [HI, {"prompt": "Hi", "max_tokens": 9}], ids=["chat", "completions"])
@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_of_a_grammar_is_refused_with_its_place(name: str, body: dict[str, Any]) -> None:
    grammar, says = TOO_MUCH[name]
    with serving(Replay("x")) as address:
        answer = httpx2.post(address + (CHAT if "messages" in body else COMPLETIONS), json={**body, "grammar": grammar})
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, "/grammar")
    assert says in answer.json()["error"]["message"]


def tool_of(syntax: str, definition: str) -> dict[str, Any]:
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {"tools": [{"type": "custom", "custom": {"name": "f", "format": grammar}}]}


def array_in_array(count: int) -> Any:
    return {"type": "array", "items": array_in_array(count - 1)} if count else {"type": "string"}


PARENTHESES = "(" * 300 + "a" + ")" * 300
CHAIN = "".join(f"a{i}: a{i + 1}\n" for i in range(3000))
DEEP: dict[str, tuple[dict[str, Any], str]] = {
    "regex": ({"regex": PARENTHESES}, "/regex"),
    "regex of a tool": (tool_of("regex", PARENTHESES), "/tools/0/custom/format/grammar/definition"),
    "terminal": (tool_of("lark", f"start: /{PARENTHESES}/"), "/tools/0/custom/format/grammar/definition"),
    "groups": (tool_of("lark", "start: " + PARENTHESES.replace("a", '"a"') * 9), ""),
    "deep groups": (
        tool_of("lark", f'start: {"(" * 9000}"a"{")" * 9000}'),
        "/tools/0/custom/format/grammar/definition",
    ),
    "chain": (tool_of("lark", f'start: a0\n{CHAIN}a3000: "x"'), "/tools/0/custom/format/grammar/definition"),
    "schema": ({"response_format": {"type": "json_schema", "json_schema": {"schema": array_in_array(90)}}}, ""),
    "schemas": ({"response_format": {"type": "json_schema", "json_schema": {"schema": array_in_array(190)}}}, ""),
}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_deep_is_taken_or_refused_with_its_place(name: str) -> None:
    body, pointer = DEEP[name]
    with serving(Replay("x")) as address:
        answer = httpx2.post(address + CHAT, json={**HI, **body}, timeout=60)
        assert answer.status_code == (400 if pointer else 200)
        if pointer:
            assert pointer.startswith(answer.json()["error"]["pointer"] or "-")
            assert "deep" in answer.json()["error"]["message"]


HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n".encode()


def connected(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def all_of(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    pieces: list[bytes] = []
    while piece := connection.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def test_a_body_that_never_ends_is_refused_and_its_connection_closed() -> None:
    with serving(Replay("a"), Settings(body_timeout=0.3)) as address, connected(address) as connection:
        connection.sendall(HEAD + b"\r\n{")
        said = all_of(connection)
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"the body did not arrive within 0.3 seconds" in said
        assert httpx2.post(address + CHAT, json=HI).status_code == 200


class Impatient(Connection):
    """Waits for nothing."""

    headers_within = 0.3
    reads_within = 0.3


@pytest.mark.parametrize("before", [b"", b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"])
def test_headers_that_never_end_close_their_connection(before: bytes) -> None:
    app = create_app([Served("recorded", CHATML, Replay("a"))])
    with listening(app, connection=Impatient) as address, connected(address) as connection:
        if before:
            connection.sendall(before)
            while not connection.recv(1 << 16).endswith(b"}"):
                pass
        connection.sendall(HEAD)
        with suppress(ConnectionResetError):
            assert all_of(connection) == b""
        with connected(address) as silent, suppress(ConnectionResetError):
            assert all_of(silent) == b""
        assert httpx2.post(address + CHAT, json=HI).status_code == 200


class Endless(Replay):
    """Writes without an end."""

    stopped = False

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Much."""
        try:
            while True:
                yield Chunk("x" * 10_000, (1,))
                await asyncio.sleep(0)
        finally:
            self.stopped = True


def request_of(body: Any) -> bytes:
    content = json.dumps(body).encode()
    return HEAD.replace(b"100", str(len(content)).encode()) + b"\r\n" + content


def test_thousands_of_connections_that_ask_for_nothing_make_room_for_those_that_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolgram.server.listening.most_connections", lambda: 40)
    engine = Endless("a")
    with serving(engine) as address, ExitStack() as opened:
        streamed = opened.enter_context(connected(address))
        streamed.sendall(request_of({**HI, "stream": True}))
        assert streamed.recv(100).startswith(b"HTTP/1.1 200 ")
        for number in range(300):
            connection = opened.enter_context(connected(address))
            if number % 2:
                connection.sendall(HEAD + b"\r\n{")  # whose body never ends
            if number % 50 == 0:
                assert httpx2.get(f"{address}/health").status_code == 200
        assert httpx2.get(f"{address}/health").status_code == 200
        assert streamed.recv(100)
        assert not engine.stopped


def test_where_all_connections_are_at_work_one_more_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.server.listening.most_connections", lambda: 3)
    with serving(Endless("a")) as address, ExitStack() as opened:
        for _ in range(3):
            streamed = opened.enter_context(connected(address))
            streamed.sendall(request_of({**HI, "stream": True}))
            assert streamed.recv(100).startswith(b"HTTP/1.1 200 ")
        with pytest.raises(httpx2.TransportError):
            httpx2.get(f"{address}/health")
        assert streamed.recv(100)
        streamed.close()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with suppress(httpx2.TransportError):
                assert httpx2.get(f"{address}/health").status_code == 200
                return
        pytest.fail("there is no place, though one client has gone")


FEW_FILES = """
import resource, socket, sys
from toolgram.engines.replay import Replay
from toolgram.server.app import create_app
from toolgram.server.listening import BACKLOG, Server, config, take_files
from toolgram.server.models import Served
from situations import CHATML

resource.setrlimit(resource.RLIMIT_NOFILE, (120, 240))
take_files()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (240, 240)
listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
print(listener.getsockname()[1], flush=True)
Server(config(create_app([Served("recorded", CHATML, Replay("a"))]), 1)).run([listener])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of files")
def test_a_server_that_may_have_few_files_goes_on() -> None:
    """asyncio would let in as many as wait, and write a traceback for each for which there is no file."""
    command = [sys.executable, "-c", FEW_FILES]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        assert httpx2.get(f"{address}/health").status_code == 200
        with ExitStack() as opened:
            server.send_signal(signal.SIGSTOP)  # so that all come at once
            for _ in range(800):
                opened.enter_context(connected(address))
            server.send_signal(signal.SIGCONT)
            assert httpx2.get(f"{address}/health", timeout=20).status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.communicate(timeout=20)[1] == ""


def test_a_client_that_never_reads_loses_its_place() -> None:
    engine = Endless()
    app = create_app([Served("recorded", CHATML, engine)], Settings(parallel=1))
    with listening(app, connection=Impatient) as address, connected(address) as connection:
        connection.sendall(request_of({**HI, "stream": True}))
        wait_for(lambda: engine.stopped)
        wait_for(lambda: "toolgram_requests_running 0.0" in httpx2.get(address + "/metrics").text)


@pytest.mark.parametrize("sent", [HEAD, HEAD + b"\r\n{", request_of({**HI, "stream": True}), request_of(HI)])
def test_a_server_ends_though_clients_send_and_read_nothing(sent: bytes) -> None:
    engine = Endless() if b"stream" in sent else Counting()
    app = create_app([Served("recorded", CHATML, engine)])
    with ExitStack() as clients:
        with listening(app, shutdown_timeout=1) as address:
            clients.enter_context(connected(address)).sendall(sent)
            assert httpx2.get(address + "/health").status_code == 200
        assert engine.closed


class Slow(Counting):
    """Writes a word, and then nothing for a long time."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """A word."""
        yield Chunk("word", (1,))
        async with aclosing(super().generate(prompt, constraint, sampling)) as chunks:
            async for chunk in chunks:
                yield chunk


BODIES: dict[str, dict[str, Any]] = {
    CHAT: HI,
    COMPLETIONS: {"prompt": "a", "max_tokens": 9},
    "/v1/responses": {"input": "Hi."},
    "/v1/messages": {**HI, "max_tokens": 9},
    "/api/chat": HI,
    "/api/generate": {"prompt": "a", "raw": True},
}


@pytest.mark.parametrize("path", BODIES)
def test_answers_that_a_server_no_longer_waits_for_when_it_ends_say_so(path: str) -> None:
    engine = Slow()
    app = create_app([Served("recorded", CHATML, engine)], Settings(parallel=2))
    with ThreadPoolExecutor() as pool:
        with listening(app, shutdown_timeout=0) as address:

            def ask(*, stream: bool = False) -> Any:
                return pool.submit(httpx2.post, address + path, json={**BODIES[path], "stream": stream}, timeout=30)

            whole, stream = ask(), ask(stream=True)
            assert engine.begun.acquire(timeout=10)
            assert engine.begun.acquire(timeout=10)
            waiting = ask()
            wait_for(lambda: "toolgram_requests_waiting 1.0" in httpx2.get(address + "/metrics").text)
        assert engine.closed
        for answer in (whole.result(), waiting.result()):
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert "shutting down" in message_of(answer.json())
            kind = "overloaded_error" if "messages" in path else "server_error"
            assert path.startswith("/api/") or answer.json()["error"]["type"] == kind
        last = stream.result().text.strip().rpartition("\n" if path.startswith("/api/") else "\n\n")
        assert "word" in last[0]
        assert "shutting down" in last[2]
        assert ("response.failed" in last[2]) == ("responses" in path)


ALONE = """
from test_hostile import CHATML, Counting
from toolgram.cli.serve import run
from toolgram.server.models import Served
from toolgram.server.settings import Settings

run((Served("recorded", CHATML, Counting()),), Settings(shutdown_timeout=1000), "127.0.0.1", 0, None)
"""


def test_a_second_signal_ends_a_server_at_once() -> None:
    paths = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    with subprocess.Popen(
        [sys.executable, "-u", "-c", ALONE], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    ) as process:
        assert process.stdout is not None
        found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
        assert found is not None
        with connected(found[0]) as connection:
            connection.sendall(request_of(HI))
            wait_for(lambda: "toolgram_requests_running 1.0" in httpx2.get(found[0] + "/metrics").text)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
