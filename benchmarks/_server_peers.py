"""32 clients of the embedded model over HTTP: `toolgram serve` beside llama.cpp's own server, equal slots and threads.

Each server is a separate process. They answer the same questions by turns, several times, since machines are noisy:
what counts is the median of the ratios of neighbours. Both keep all cores busy, and do the same work in the same code:
tokens for each second of the processor, of the server's process, tell more than those by the clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from _tool_tasks import Task, tasks
from toolgram.models.catalog import default_model

CLIENTS = 32
CONTEXT = 1024
TOKENS = 32
ROUNDS = 11
HEAD = ["texts", "toolgram", "llama.cpp", "×", "least", "most"]

LLAMA_CPP = """
import os, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, slots, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.n_parallel, params.n_ctx, params.kv_unified = slots, slots * context, False
params.api_keys = sys.argv[4:]
params.cpuparams.n_threads, params.cpuparams_batch.n_threads = 1, os.cpu_count()
params.ui, params.verbosity, params.port = False, -1, 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
"""One thread for a single sequence, all for more, as the embedded engine."""


def embedded() -> list[list[object]]:
    """Texts, which cost a pass of the model for each token on both sides."""
    model = str(default_model())
    options = ["--port", "0", "--parallel", str(CLIENTS), "--max-model-len", str(CONTEXT)]
    toolgram = [sys.executable, "-m", "toolgram", "serve", "--model", model, *options]
    llama = [sys.executable, "-c", LLAMA_CPP, model, str(CLIENTS), str(CONTEXT)]
    chosen = tasks()[:CLIENTS]
    texts = [_text(task) for task in chosen]
    with running(toolgram) as ours, running(llama) as theirs:
        for server in (ours, theirs):
            asyncio.run(_tokens(server.address, texts))  # the first time, prompts are read
        found = [(_speed(ours, texts), _speed(theirs, texts)) for _ in range(ROUNDS)]
    by_clock, by_processor = zip(*(zip(mine, other, strict=True) for mine, other in found), strict=True)
    return [_row("tokens/s", by_clock), _row("tokens per processor s", by_processor)]


def _row(what: str, pairs: Sequence[tuple[float, float]]) -> list[object]:
    ratios = [mine / other for mine, other in pairs]
    speeds = [statistics.median(each) for each in zip(*pairs, strict=True)]
    return [what, *speeds, statistics.median(ratios), min(ratios), max(ratios)]


def _text(task: Task) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": task.question}], "max_tokens": TOKENS, "temperature": 0}
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


class Server(NamedTuple):
    """A server that runs: where, and the number of its process."""

    address: str
    process: int

    def worked(self) -> float:
        """Seconds of the processor that it has used, as Linux tells."""
        user, system = Path(f"/proc/{self.process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _speed(server: Server, bodies: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Tokens a second, and tokens for each second of the server's processor."""
    began, worked = time.perf_counter(), server.worked()
    tokens = asyncio.run(_tokens(server.address, bodies))
    return tokens / (time.perf_counter() - began), tokens / (server.worked() - worked)


async def _tokens(address: str, bodies: Sequence[dict[str, Any]]) -> int:
    """How many tokens come for all of these at once."""
    async with httpx.AsyncClient(base_url=address, timeout=300, limits=httpx.Limits(max_connections=None)) as client:
        return sum(await asyncio.gather(*(_ask(client, body) for body in bodies)))


async def _ask(client: httpx.AsyncClient, body: dict[str, Any]) -> int:
    count = 0
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                usage = json.loads(line.removeprefix("data: ")).get("usage")
                count = usage["completion_tokens"] if usage else count
    return count


@contextmanager
def running(command: Sequence[str]) -> Generator[Server]:
    """A server that says its address in its first line."""
    environment = {**os.environ, "GOMP_SPINCOUNT": "2000"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield Server(re.findall(r"http://[\d.]+:\d+", line)[0], process.pid)
        finally:
            process.kill()
