"""`toolgram serve --workers`: processes that share an address, before a server that others run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from typer.testing import CliRunner

from live_server import listening
from situations import CHATML
from toolgram.cli.app import app

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}]}
_PATIENCE = 30.0


class Upstream:
    """A server that runs the model: it says a word, and the others when it is `free`."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.app = Starlette(routes=[Route("/v1/completions", self._completions, methods=["POST"])])

    async def _completions(self, request: Request) -> StreamingResponse:
        await request.json()
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncGenerator[bytes]:
        for word in ("one ", "two ", "three"):
            yield b"data: %b\n\n" % json.dumps({"choices": [{"text": word, "finish_reason": None}]}).encode()
            while not self.free.is_set():
                await asyncio.sleep(0.01)
        yield b'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@dataclass(frozen=True)
class Server:
    """The server of a command, its address and its log."""

    process: subprocess.Popen[str]
    address: str
    log: Path
    upstream: Upstream

    def ask(self, **more: Any) -> httpx2.Response:
        return httpx2.post(f"{self.address}/v1/chat/completions", json={**BODY, **more}, timeout=_PATIENCE)

    def processes(self) -> set[int]:
        """The processes that answered."""
        return {json.loads(line)["process"] for line in self.log.read_text().splitlines()}

    def metrics(self) -> str:
        return httpx2.get(f"{self.address}/metrics", timeout=_PATIENCE).text

    def wait(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def ask_until(self, holds: Callable[[], bool]) -> None:
        """Ask many at once, again and again, until something holds."""
        deadline = time.monotonic() + _PATIENCE
        with ThreadPoolExecutor(8) as pool:
            while not holds():
                assert time.monotonic() < deadline, self.processes()
                assert {answer.status_code for answer in pool.map(lambda _: self.ask(), range(8))} == {200}


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    template, log = folder / "chatml.jinja", folder / "log.jsonl"
    template.write_text(CHATML.source)
    upstream = Upstream()
    with listening(upstream.app) as where:
        options = ["--upstream", where, "--upstream-kind", "openai", "--upstream-model", "m", "--workers", "2"]
        options += ["--chat-template", str(template), "--port", "0", "--log-file", str(log)]
        command = [sys.executable, "-m", "toolgram", "serve", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                told = process.stdout.readline()
                assert told.startswith("serving m at http://127.0.0.1:")
                yield Server(process, told.split()[3].removesuffix("/v1,"), log, upstream)
            finally:
                upstream.free.set()
                process.terminate()


def test_workers_share_the_work_and_are_replaced(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        server.upstream.free.set()
        answer = server.ask().json()
        assert answer["choices"][0]["message"]["content"] == "one two three"
        response = httpx2.post(f"{server.address}/v1/responses", json={"input": "Hi."}, timeout=_PATIENCE).json()
        assert response["store"] is False  # another process would not know it
        asked_again = httpx2.get(f"{server.address}/v1/responses/{response['id']}", timeout=_PATIENCE)
        assert (asked_again.status_code, "--workers" in asked_again.text) == (404, True)
        server.ask_until(lambda: len(server.processes()) == 2)
        assert server.process.pid not in server.processes()
        killed = min(server.processes())
        os.kill(killed, signal.SIGKILL)
        before = server.processes()
        server.ask_until(lambda: len(server.processes() - before) == 1)
        server.wait(lambda: "toolgram_requests_running 0.0" in server.metrics())
        counts = server.metrics()
        asked = [line for line in server.log.read_text().splitlines() if "/v1/chat/completions" in line]
        assert f'status="200"}} {len(asked)}.0' in counts
    assert server.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_finishes_streams(number: signal.Signals, tmp_path: Path) -> None:
    with serve(tmp_path) as server, ThreadPoolExecutor() as pool:
        answers = [pool.submit(server.ask, stream=True) for _ in range(6)]
        server.wait(lambda: "toolgram_requests_running 6.0" in server.metrics())
        server.process.send_signal(number)
        time.sleep(0.5)
        assert not any(answer.done() for answer in answers)
        server.upstream.free.set()
        for answer in answers:
            assert answer.result().text.endswith("data: [DONE]\n\n")
        assert server.process.wait(_PATIENCE) == 0
        gone = list(server.processes())
    for process in gone:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    with serve(tmp_path) as server, ThreadPoolExecutor() as pool:
        answers = [pool.submit(server.ask, stream=True) for _ in range(6)]
        server.wait(lambda: "toolgram_requests_running 6.0" in server.metrics())
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert not any(answer.done() for answer in answers)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(_PATIENCE) == 0
        for answer in answers:
            assert isinstance(answer.exception(), httpx2.TransportError)


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        server.metrics()
        server.wait(lambda: bool(server.processes()))  # a line is logged when its answer is sent already
        (worker, *_) = server.processes()
        server.process.kill()
        server.wait(lambda: not Path(f"/proc/{worker}").exists())


def test_an_embedded_model_has_one_process() -> None:
    result = CliRunner().invoke(app, ["serve", "--workers", "2", "--port", "0"])
    assert result.exit_code == 2
    assert "--workers needs --upstream" in result.output
