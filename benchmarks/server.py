"""What the server costs: python benchmarks/server.py [--streams 1000] [--tokens 50].

The engine replays recorded text and takes no time itself. Server and clients run in separate processes; times are
the server's processor time, so that other load does not count. At the end the embedded model is served to 32 clients,
compared with llama.cpp's own server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import socket
import statistics
import time
from collections.abc import AsyncGenerator, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from _common import CHATML, request, show, tools
from _server_peers import CLIENTS, HEAD, embedded
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings

T = TypeVar("T")

CALL = '<tool_call>\n{"name": "find_order", "arguments": {"order_id": "1207", "state": "open"}}\n</tool_call>'
PATH = "/v1/chat/completions"


class Recorded:
    """Says `max_tokens` words that name the prompt's last one, or a call; a prompt that says `wait` is not answered."""

    capabilities = Capabilities(dialects=("gbnf", "lark", "ebnf"))

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """The words, one by one."""
        said = [text for text, trusted in prompt if not trusted][-1]
        if said == "wait":
            yield Chunk("…", (0,))
            await self.go.wait()
        words = [CALL] if constraint is not None else [f"{said} "] * (sampling.max_tokens or 1)
        for number, word in enumerate(words):
            await asyncio.sleep(0)
            yield Chunk(word, (number,))
        yield Chunk("", finish="stop", usage=Usage(completion_tokens=len(words)))

    async def aclose(self) -> None:
        """Nothing to free."""


def serve(listener: socket.socket, orders: Connection) -> None:
    """Serve in this process; to each order answer with the processor's seconds and the kilobytes of memory."""
    app = create_app([Served("recorded", CHATML, Recorded())], Settings(parallel=5000, keep_alive=600))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))

    def ordered() -> None:
        orders.recv()
        orders.send((time.process_time(), _resident()))

    async def run() -> None:
        asyncio.get_running_loop().add_reader(orders.fileno(), ordered)
        await server.serve([listener])

    asyncio.run(run())


def _resident() -> float:
    """Kilobytes of memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


class Server:
    """A server in a separate process."""

    def __init__(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as `toolgram serve` does
        self.port: int = listener.getsockname()[1]
        self._orders, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=serve, args=(listener, theirs), daemon=True)
        self._process.start()
        listener.close()

    def state(self) -> tuple[float, float]:
        """The processor's seconds until now, and kilobytes of memory."""
        self._orders.send(None)
        return self._orders.recv()

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


async def ask(port: int, body: dict[str, Any]) -> bytes:
    """The raw answer to a body, over a new connection."""
    reader, writer = await opened(port, body)
    answer = await reader.read()
    writer.close()
    return answer


async def opened(port: int, body: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a body was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    raw = json.dumps(body).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(raw)}\r\n\r\n"
    writer.write(head.encode() + raw)
    await writer.drain()
    return reader, writer


def words(text: str, count: int) -> dict[str, Any]:
    """A body that is answered with so many words."""
    return {"messages": [{"role": "user", "content": text}], "max_tokens": count}


def said(answer: bytes) -> str:
    """The content of a streamed answer; it must be complete."""
    text = answer.decode()
    assert text.startswith("HTTP/1.1 200"), text[:200]  # noqa: S101 - a benchmark of wrong answers is none
    assert "data: [DONE]" in text, text[-200:]  # noqa: S101 - as above
    lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
    return "".join(json.loads(line)["choices"][0]["delta"].get("content") or "" for line in lines)


def cost(server: Server, bodies: Callable[[int], dict[str, Any]], times: int, rounds: int) -> float:
    """The median of the processor's time for a request, in milliseconds, of some rounds of so many requests."""

    async def one_round() -> float:
        before, _ = server.state()
        for number in range(times):
            assert b"200 OK" in await ask(server.port, bodies(number))  # noqa: S101 - as above
        after, _ = server.state()
        return 1000 * (after - before) / times

    asyncio.run(one_round())  # the first one fills caches
    return statistics.median(asyncio.run(one_round()) for _ in range(rounds))


async def crowd(server: Server, streams: int, tokens: int) -> tuple[int, float, float]:
    """How many of so many streams at once came whole and uncrossed, the time of all, the processor's for a token."""
    before, _ = server.state()
    began = time.perf_counter()
    bodies = [{**words(f"w{number}", tokens), "stream": True} for number in range(streams)]
    answers = await asyncio.gather(*(ask(server.port, body) for body in bodies))
    seconds = time.perf_counter() - began
    after, _ = server.state()
    right = sum(said(answer) == f"w{number} " * tokens for number, answer in enumerate(answers))
    return right, seconds, 1e6 * (after - before) / (streams * tokens)


async def idle(server: Server, streams: int) -> float:
    """The kilobytes that an open stream holds on which nothing comes."""
    for number in range(20):
        said(await ask(server.port, {**words(f"w{number}", 5), "stream": True}))
    _, before = server.state()
    body = {**words("wait", 1), "stream": True}
    connections = await asyncio.gather(*(opened(server.port, body) for _ in range(streams)))
    for reader, _ in connections:
        await reader.readuntil("…".encode())
    _, after = server.state()
    for _, writer in connections:
        writer.close()
    return (after - before) / streams


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=50)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 3 * options.streams + 200), most))
    memory = measured(lambda server: asyncio.run(idle(server, options.streams)))
    measured(lambda server: tell(server, options.streams, options.tokens, memory))
    show(f"{CLIENTS} clients of the embedded model", HEAD, embedded())


def measured(measure: Callable[[Server], T]) -> T:
    """What is measured of a fresh server."""
    server = Server()
    try:
        return measure(server)
    finally:
        server.stop()


def tell(server: Server, streams: int, tokens: int, memory: float, rounds: int = 7) -> None:
    """Measure, and print the tables."""
    bare = cost(server, lambda number: words(f"q{number}", 1), 50, rounds)
    same = request(tools(3))
    called = cost(server, lambda _: {**same, "style": "hermes_2_pro"}, 30, rounds)
    short = cost(server, lambda number: {**words(f"q{number}", 1), "stream": True}, 30, rounds)
    long = cost(server, lambda number: {**words(f"q{number}", 501), "stream": True}, 6, rounds)
    rows = [
        ("a request without tools", bare, "ms"),
        ("a request with 3 tools, a call answered", called, "ms"),
        ("a stream of one token", short, "ms"),
        ("each further token of a stream", (long - short) * 1000 / 500, "µs"),
    ]
    show("Processor time of the server, median", ("what", "time", "unit"), rows)
    right, seconds, token = asyncio.run(crowd(server, streams, tokens))
    rows = [
        ("streams at once", streams, ""),
        ("of them whole and uncrossed", right, ""),
        ("time of all", seconds, "s"),
        ("processor time for a token, requests included", token, "µs"),
        ("memory of an idle stream", memory, "KB"),
    ]
    show(f"{streams} streams of {tokens} tokens, on {os.cpu_count()} cores", ("what", "value", "unit"), rows)


if __name__ == "__main__":
    main()
