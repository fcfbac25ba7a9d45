"""32 clients of the embedded model over HTTP: `toolgram serve` beside llama.cpp's own server, equal slots and threads.

Each server is a process of its own, and answers the same questions, the one after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from _tool_tasks import Task, tasks
from toolgram.engines.models import default_model

CLIENTS = 32
CONTEXT = 1024
TOKENS = 48
ROUNDS = 3
HEAD = ["tokens/s", "toolgram", "llama.cpp", "×"]

_LLAMA_CPP = """
import os, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, slots, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.n_parallel, params.n_ctx, params.kv_unified = slots, slots * context, False
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
    llama = [sys.executable, "-c", _LLAMA_CPP, model, str(CLIENTS), str(CONTEXT)]
    chosen = tasks()[:CLIENTS]
    texts = [_text(task) for task in chosen]
    with _running(toolgram) as ours, _running(llama) as theirs:
        for address in (ours, theirs):
            asyncio.run(_tokens(address, texts))  # the first time, prompts are read
        found = [[_speed(address, texts) for address in (ours, theirs)] for _ in range(ROUNDS)]
    mine, other = (sorted(speeds)[ROUNDS // 2] for speeds in zip(*found, strict=True))
    return [["texts", mine, other, mine / other]]


def _text(task: Task) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": task.question}], "max_tokens": TOKENS, "temperature": 0}
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


def _speed(address: str, bodies: Sequence[dict[str, Any]]) -> float:
    began = time.perf_counter()
    return asyncio.run(_tokens(address, bodies)) / (time.perf_counter() - began)


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
def _running(command: Sequence[str]) -> Generator[str]:
    """The address of a server that says it in its first line."""
    environment = {**os.environ, "GOMP_SPINCOUNT": "2000"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield re.findall(r"http://[\d.]+:\d+", line)[0]
        finally:
            process.kill()
