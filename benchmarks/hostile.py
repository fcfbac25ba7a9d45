"""What attacks on the server do to others: python benchmarks/hostile.py [--attacks NAME …] [--copies 4] [--seconds 20].

`toolgram serve` beside llama.cpp's own server, one after the other, with the embedded model, the same slots and
context. While an attack runs, `/health` is asked again and again, and a client has a text streamed; both are compared
with what they take when all is quiet. The attacks come from a process of their own, with a key of their own: servers
may tell clients apart by that. One that has no answer after `--seconds` is dropped. What others lose by it in all,
`lost s`, is the time that they wait for `/health` and streams beyond that of quiet, until the last answer to it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import httpx

from _common import end_in_order, show
from _hostile_attacks import ATTACKS, CHAT, TIMES
from _server_peers import LLAMA_CPP, running
from toolgram.models.catalog import default_model

SLOTS, CONTEXT = 4, 2048
QUIET = 15  # how often /health and the stream are asked at first
PAUSE = 0.02  # seconds between two questions for /health
HEAD = ["attack", "server", "/health ms", "95 %", "worst", "stream s", "attacked", "lost s", "broken", "answers"]
ATTACKER, VICTIM = "attacker", "victim"  # keys
MOST = 0.95  # of the answers of /health; the slowest of all tells of the machine too


@dataclass
class Side:
    """A server, and how long it takes when all is quiet, in seconds."""

    name: str
    address: str
    health: float = 0.0
    stream: float = 0.0


@dataclass
class Seen:
    """What others saw while an attack ran: seconds for `/health` and for streams, and streams that broke."""

    health: list[float] = field(default_factory=list[float])
    streams: list[float] = field(default_factory=list[float])
    broken: int = 0


def main() -> None:
    """Prints the table."""
    end_in_order()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attacks", nargs="*", choices=list(ATTACKS), default=list(ATTACKS), help="which ones")
    parser.add_argument("--copies", type=int, default=4, help="how often each is sent at once")
    parser.add_argument("--seconds", type=float, default=20, help="for which its answers are waited for")
    options = parser.parse_args()
    rows = [row for name in options.attacks for row in measured(name, options.copies, options.seconds)]
    show(f"{options.copies} of each attack at once, {SLOTS} slots of {CONTEXT} tokens", HEAD, rows)


def measured(name: str, copies: int, seconds: float) -> list[list[object]]:
    """The rows of an attack: each server is started anew, since the one before may have broken it."""
    model = str(default_model())
    serve = ["--port", "0", "--parallel", str(SLOTS), "--max-model-len", str(CONTEXT)]
    keys = [part for key in (ATTACKER, VICTIM) for part in ("--api-key", key)]
    commands = {
        "toolgram": [sys.executable, "-m", "toolgram", "serve", "--model", model, *serve, *keys],
        "llama.cpp": [sys.executable, "-c", LLAMA_CPP, model, str(SLOTS), str(CONTEXT), ATTACKER, VICTIM],
    }
    rows: list[list[object]] = []
    for side, command in commands.items():
        with running(command) as server:
            rows.append(asyncio.run(_row(name, Side(side, server.address), copies, seconds)))
    return rows


async def _row(name: str, side: Side, copies: int, seconds: float) -> list[object]:
    async with _client(side.address, VICTIM, seconds) as client:
        await _stream(client)
        side.stream = statistics.median([await _timed(lambda: _stream(client)) for _ in range(3)])
        side.health = statistics.median([await _timed(lambda: _health(client)) for _ in range(QUIET)])
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(int).result()  # it has begun
            answers = pool.submit(sent, side.address, name, copies, seconds)
            seen = await _attacked(client, asyncio.wrap_future(answers))
    told = ", ".join(f"{count} × {answer}" for answer, count in sorted(answers.result().items()))
    waits = sorted(1000 * wait for wait in seen.health) or [0.0]
    slowest = max(seen.streams, default=None)
    lost = sum(wait - side.health for wait in seen.health) + sum(wait - side.stream for wait in seen.streams)
    most = waits[int(MOST * (len(waits) - 1))]
    return [name, side.name, side.health * 1000, most, waits[-1], side.stream, slowest, lost, seen.broken, told]


def sent(address: str, name: str, copies: int, seconds: float) -> Counter[str]:
    """The answers to an attack; in a process of its own, whose work is not that of those who watch."""

    async def answers() -> Counter[str]:
        bodies = [ATTACKS[name](copy) for copy in range(copies * TIMES.get(name, 1))]
        async with _client(address, ATTACKER, seconds) as client:
            asked = (_answer(client, path, content, seconds) for path, content in bodies)
            return Counter(await asyncio.gather(*asked))

    return asyncio.run(answers())


async def _attacked(client: httpx.AsyncClient, attack: asyncio.Future[Counter[str]]) -> Seen:
    """What others see until the last answer to the attack."""
    seen = Seen()

    async def others(ask: Callable[[], Any], into: list[float]) -> None:
        while True:
            try:
                into.append(await _timed(ask))
            except (httpx.HTTPError, RuntimeError):
                seen.broken += 1
            if attack.done():
                return
            await asyncio.sleep(PAUSE)

    await asyncio.gather(others(lambda: _health(client), seen.health), others(lambda: _stream(client), seen.streams))
    return seen


def _client(address: str, key: str, seconds: float) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    headers = {"authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=address, headers=headers, timeout=seconds, limits=limits)


async def _answer(
    client: httpx.AsyncClient, path: str, content: bytes | AsyncGenerator[bytes, None], seconds: float
) -> str:
    try:
        async with asyncio.timeout(2 * seconds):  # where each part is sent in time, and there are ever more
            answer = await client.post(path, content=content, headers={"content-type": "application/json"})
    except (httpx.TimeoutException, TimeoutError):
        return "none"
    except httpx.HTTPError as error:
        return type(error).__name__
    return str(answer.status_code)


async def _timed(ask: Callable[[], Any]) -> float:
    began = time.perf_counter()
    await ask()
    return time.perf_counter() - began


async def _health(client: httpx.AsyncClient) -> None:
    (await client.get("/health", timeout=60)).raise_for_status()


async def _stream(client: httpx.AsyncClient) -> None:
    """A short text. Raises RuntimeError where it does not come whole."""
    body = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 24, "temperature": 0, "stream": True}
    finished = False
    async with client.stream("POST", CHAT, json=body, timeout=60) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                event = json.loads(line.removeprefix("data: "))
                if "error" in event:
                    raise RuntimeError(event["error"])
                finished = finished or any(choice.get("finish_reason") for choice in event.get("choices", ()))
    if not finished:
        raise RuntimeError("the stream broke off")


if __name__ == "__main__":
    main()
