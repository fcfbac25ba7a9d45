"""Clients that leave, upstreams and workers that are killed, generations that fail, at random and under load: a text
that is said to be finished is whole, no text is somebody else's, and no place stays taken."""

# Faults are planted in what must not be seen from outside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import httpx2
import pytest

from live_server import listening
from server.echoing_upstream import words
from situations import CHATML
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.gguf_model import Model
from toolgram.engines.llama_cpp.sampling import Sampler
from toolgram.models.catalog import default_model
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

UPSTREAM = Path(__file__).with_name("echoing_upstream.py")
CHAT = "/v1/chat/completions"
CLIENTS, PARALLEL = 8, 8
FAR = 60.0  # seconds in which whatever was killed is there again

how_many = pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.fuzz)])


def wait_for(holds: Any) -> None:
    end = time.monotonic() + FAR
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def told(address: str, body: dict[str, Any], leave_after: int | None = None) -> tuple[str, bool]:
    """What a stream says, and whether it says that this is all; the client may leave after some events."""
    pieces: list[str] = []
    finished, buffer = False, b""
    try:
        with httpx2.stream("POST", address + CHAT, json={**body, "stream": True}, timeout=FAR) as answer:
            for number, piece in enumerate(answer.iter_bytes()):
                buffer += piece
                if number == leave_after:
                    break
    except httpx2.TransportError:
        pass  # what it said until then counts
    for line in buffer.split(b"\n")[:-1]:
        if line.startswith(b"data: {") and "choices" in (event := json.loads(line[6:])):
            pieces += [choice["delta"].get("content") or "" for choice in event["choices"]]
            finished = finished or any(choice["finish_reason"] is not None for choice in event["choices"])
    return "".join(pieces), finished


def next_of(queue: Queue[int]) -> int | None:
    try:
        return queue.get_nowait()
    except Empty:
        return None


@dataclass
class Load:
    """Clients that ask again and again, some of which leave, and what became of their requests."""

    address: str
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    over: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter[str])
    counting: threading.Lock = field(default_factory=threading.Lock)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 30)))
    leaving: Queue[int] = field(default_factory=Queue[int])  # of those that are to leave, after how many events

    def question(self) -> tuple[dict[str, Any], str]:
        """A question, and the whole answer to it."""
        tag, count = next(self.numbers), self.rng.randrange(1, 40)
        body = {"messages": [{"role": "user", "content": f"tag{tag}of{count}"}]}
        return body, "".join(words(str(tag), count))

    def client(self) -> None:
        while not self.over.is_set():
            body, whole = self.question()
            leaves = next_of(self.leaving)
            text, finished = told(self.address, body, leaves)
            assert whole.startswith(text), (whole, text)
            assert text == whole or not finished, (whole, text)
            with self.counting:
                self.counts["left" if leaves is not None else "whole" if finished else "broken"] += 1
            if not finished and leaves is None:
                time.sleep(0.05)

    def ends_one(self) -> None:
        """Wait until an answer is whole."""
        before = self.counts["whole"]
        wait_for(lambda: self.counts["whole"] > before)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self.client) for _ in range(CLIENTS)]
            try:
                yield
            finally:
                self.over.set()
            for client in clients:
                client.result()

    def all_places_are_free(self, parallel: int) -> None:
        """As many requests as may run at once come to their ends, and nothing is left of those before."""
        questions = [self.question() for _ in range(parallel)]
        with ThreadPoolExecutor(parallel) as pool:
            answers = pool.map(lambda question: told(self.address, question[0]), questions)
            assert list(answers) == [(whole, True) for _, whole in questions]
        for kind in ("running", "waiting"):
            wait_for(lambda kind=kind: f"toolgram_requests_{kind} 0.0" in httpx2.get(self.address + "/metrics").text)


class Upstream:
    """A process that answers, and another one at the same port when it was killed."""

    def __init__(self) -> None:
        self.port = 0
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-S", str(UPSTREAM), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def restart(self) -> None:
        self.kill()
        self._start()


@contextmanager
def workers(upstream: Upstream, folder: Path) -> Iterator[tuple[str, int]]:
    """The address of a server of two workers, and the process that they belong to."""
    (folder / "chatml.jinja").write_text(CHATML.source)
    options = {
        "--upstream": f"http://127.0.0.1:{upstream.port}",
        "--upstream-kind": "openai",
        "--upstream-model": "m",
        "--chat-template": str(folder / "chatml.jinja"),
        "--workers": "2",
        "--port": "0",
        "--parallel": str(PARALLEL),
        "--log-file": str(folder / "log"),
    }
    command = [sys.executable, "-m", "toolgram", "serve", *(word for pair in options.items() for word in pair)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[3].removesuffix("/v1,"), process.pid
        finally:
            process.terminate()


def workers_of(server: int) -> list[int]:
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [int(pid) for pid in children if b"spawn_main" in command_of(pid)]


def command_of(pid: str) -> bytes:
    """The command of a process; nothing where it has ended since it was listed."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@how_many
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the processes of a process are told by Linux")
def test_upstreams_workers_and_clients_are_killed(kills: int, tmp_path: Path) -> None:
    rng, upstream, left = random.Random(kills), Upstream(), 0
    try:
        with workers(upstream, tmp_path) as (address, server):
            load = Load(address)
            wait_for(lambda: len(workers_of(server)) == 2)
            load.all_places_are_free(1)
            with load.running():
                for number in range(kills):
                    if number % 4 == 0:  # or else, on a slow machine, none would live long enough
                        load.ends_one()
                    time.sleep(rng.random() / 4)
                    match rng.choice(["client", "client", "upstream", "worker"]):
                        case "upstream":
                            upstream.restart()
                        case "worker":
                            os.kill(rng.choice(workers_of(server)), signal.SIGKILL)
                            wait_for(lambda: len(workers_of(server)) == 2)
                        case _:
                            load.leaving.put(rng.randrange(4))
                            left += 1
                wait_for(lambda: load.counts["left"] == left)
            wait_for(lambda: told(address, load.question()[0])[1])
            load.all_places_are_free(PARALLEL)
            assert load.counts["left"] > kills // 4
            assert load.counts["whole"] >= kills // 4
    finally:
        upstream.kill()


class Faults:
    """Makes some generations fail, and now and then the model itself."""

    def __init__(self, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: Counter[str] = Counter()
        self._rng = rng
        choose, evaluate = Sampler.choose, Model.evaluate

        def choosing(sampler: Sampler, logits: Any) -> int:
            self._fail("generation")
            return choose(sampler, logits)

        def evaluating(model: Model, *given: Any) -> Any:
            self._fail("model")
            return evaluate(model, *given)

        monkeypatch.setattr(Sampler, "choose", choosing)
        monkeypatch.setattr(Model, "evaluate", evaluating)

    def _fail(self, kind: str) -> None:
        if self.left[kind] > 0:
            self.left[kind] -= 1
            raise RuntimeError(f"planted in the {kind}")


class Seas(Load):
    """Load for a model of which each answer is known."""

    seas = ("North", "Red", "Black", "Dead")
    known: dict[str, str]

    def learn(self) -> None:
        self.known = {}
        for sea in self.seas:
            text, finished = told(self.address, self.body(sea))
            assert finished
            self.known[sea] = text

    def body(self, sea: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": f"Where is the {sea} Sea?"}]
        return {"messages": messages, "temperature": 0, "max_tokens": 24}

    def question(self) -> tuple[dict[str, Any], str]:
        sea = self.rng.choice(self.seas)
        return self.body(sea), self.known[sea]


@how_many
def test_generations_and_clients_of_the_embedded_model_are_killed(kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, path, left = random.Random(kills), default_model(), 0
    engine = LlamaCpp(path, context=1024, deterministic=True)
    app = create_app([Served("smollm2", ChatTemplate.from_gguf(path), engine)], Settings(parallel=4))
    with listening(app) as address:
        load = Seas(address)
        load.learn()
        faults = Faults(rng, monkeypatch)
        with load.running():
            for number in range(kills):
                if number % 4 == 0:
                    load.ends_one()
                time.sleep(rng.random() / 4)
                kind = rng.choice(["client", "client", "generation", "model"])
                if kind == "client":
                    load.leaving.put(rng.randrange(4))
                    left += 1
                else:
                    faults.left[kind] += 1
            wait_for(lambda: load.counts["left"] == left and not any(faults.left.values()))
        load.all_places_are_free(4)
        assert load.counts["left"] > kills // 4
        assert load.counts["broken"] > 0
        assert load.counts["whole"] >= kills // 4
