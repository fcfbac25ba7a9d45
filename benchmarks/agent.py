"""Twenty tasks with tools that run and typed answers: how many are solved, in how many steps and tokens, how fast.

The same tasks, tools and types go through `toolgram.agent` and, on a toolgram server of the same model, through
pydantic-ai and openai-agents (which has packages of its own: `make test-agents` installs it). Steps and tokens are
counted at the engine. A run that ends without an answer of its type is counted beside those that are solved.

    python benchmarks/agent.py [--model NAME|FILE] [--side toolgram] [--tasks 20] [--verbose]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from _agent_tasks import CUSTOMERS, FUNCTIONS, INSTRUCTIONS, ORDERS, STEPS, TASKS, TOKENS, Task, products
from _common import show
from toolgram.agent import Agent, Limits
from toolgram.agent.openapi import openapi_tools
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.errors import ToolgramError
from toolgram.models import catalog
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings
from toolgram.template.chat_template import ChatTemplate

HERE = Path(__file__).parent
PYTHONS = {"pydantic-ai": sys.executable, "openai-agents": str(HERE.parent / ".agents/python/bin/python")}
SIDES = ("toolgram", *PYTHONS)
HEAD = ("agent", "solved", "without an answer", "steps", "tokens", "seconds")


class Counted(LlamaCpp):
    """The engine, with what was asked of it since it was last looked at."""

    asked = written = 0

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        """Chunks of the answer."""
        self.asked += 1
        async with aclosing(super().generate(prompt, constraint, sampling)) as chunks:
            async for chunk in chunks:
                self.written += len(chunk.tokens)
                yield chunk

    def looked_at(self) -> tuple[int, int]:
        """Steps and tokens, which are 0 again then."""
        counted, self.asked, self.written = (self.asked, self.written), 0, 0
        return counted


@dataclass(frozen=True)
class Outcome:
    """What came of a task: an answer of its type or an error, and what it cost."""

    task: Task
    answer: dict[str, Any] | None
    error: str
    steps: int
    tokens: int
    seconds: float


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default=catalog.DEFAULT)
    options.add_argument("--side", action="append", choices=SIDES)
    options.add_argument("--tasks", type=int, default=len(TASKS))
    options.add_argument("--threads", type=int)
    options.add_argument("--verbose", action="store_true")
    given = options.parse_args()
    path = catalog.resolve(given.model)
    engine, template = Counted(path, context=4096, threads=given.threads), ChatTemplate.from_gguf(path)
    rows: list[tuple[Any, ...]] = []
    with _listening(shop()) as at, _listening(create_app([Served("model", template, engine)], Settings())) as url:
        for side in given.side or SIDES:
            if not Path(PYTHONS.get(side, sys.executable)).exists():
                print(f"{side} is not installed: make test-agents")
                continue
            run = (
                _ours(engine, template, at, given.tasks)
                if side == "toolgram"
                else _theirs(side, engine, url, at, given.tasks)
            )
            outcomes = []
            for outcome in run:
                outcomes.append(outcome)
                if given.verbose:
                    solved = "solved" if outcome.task.is_solved(outcome.answer) else "not solved"
                    print(f"{side}: {outcome.task.goal} {solved}: {outcome.answer or outcome.error}", flush=True)
            rows.append((side, *_summary(outcomes)))
    show(f"{path.name}, {given.tasks} tasks; steps, tokens and seconds are means", HEAD, rows)


def _summary(outcomes: list[Outcome]) -> tuple[Any, ...]:
    many = len(outcomes)
    solved = sum(each.task.is_solved(each.answer) for each in outcomes)
    failed = sum(each.answer is None for each in outcomes)
    steps, tokens = sum(each.steps for each in outcomes), sum(each.tokens for each in outcomes)
    seconds = sum(each.seconds for each in outcomes)
    return solved, failed, steps / many, tokens / many, seconds / many


def _ours(engine: Counted, template: ChatTemplate, shop: str, count: int) -> Iterator[Outcome]:
    operations = {tool.name: tool for tool in openapi_tools(document(shop))}
    for task in TASKS[:count]:
        tools = [FUNCTIONS.get(name) or operations[name] for name in task.tools]
        limits = Limits(STEPS, step_tokens=TOKENS, answer_tokens=TOKENS)
        agent = Agent(engine, template, tools, task.answer, INSTRUCTIONS, limits, "never")
        engine.looked_at()
        begun, answer, error = time.monotonic(), None, ""
        try:
            answer = asyncio.run(agent.run(task.goal)).answer.model_dump()
        except ToolgramError as raised:
            error = f"{type(raised).__name__}: {raised}"
        yield Outcome(task, answer, error, *engine.looked_at(), time.monotonic() - begun)


def _theirs(side: str, engine: Counted, url: str, shop: str, count: int) -> Iterator[Outcome]:
    command = [PYTHONS[side], str(HERE / "_agent_peers.py"), side, url, shop, "model", str(count)]
    peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    given, told = peer.stdin, peer.stdout
    if given is None or told is None:
        raise AssertionError("both are pipes")
    with contextlib.closing(given):
        for task in TASKS[:count]:
            engine.looked_at()
            given.write("\n")
            given.flush()
            said = json.loads(told.readline())
            yield Outcome(task, said.get("answer"), said.get("error", ""), *engine.looked_at(), said["seconds"])
    peer.wait()


def document(shop: str) -> dict[str, Any]:
    """The OpenAPI document of the shop."""
    text, number = {"type": "string"}, {"type": "number"}
    order = {
        "type": "object",
        "properties": {"item": text, "count": {"type": "integer"}},
        "required": ["item", "count"],
    }

    def parameter(name: str, place: str, schema: Any) -> dict[str, Any]:
        return {"name": name, "in": place, "required": True, "schema": schema}

    def operation(id_: str, about: str, *parameters: Any, **more: Any) -> dict[str, Any]:
        return {"operationId": id_, "summary": about, "parameters": list(parameters), **more}

    get_order = operation(
        "get_order", "An order: what, how many, for whom, and how far it is.", parameter("id", "path", text)
    )
    get_customer = operation(
        "get_customer", "A customer, and the city of the customer.", parameter("name", "path", text)
    )
    find = operation(
        "find_products",
        "The names of products that cost no more than a price.",
        parameter("max_price", "query", number),
    )
    body = {"required": True, "content": {"application/json": {"schema": order}}}
    create = operation("create_order", "Order so many of an item; gives the number of the order.", requestBody=body)
    return {
        "openapi": "3.1.0",
        "servers": [{"url": shop}],
        "paths": {
            "/orders": {"post": create},
            "/orders/{id}": {"get": get_order},
            "/customers/{name}": {"get": get_customer},
            "/products": {"get": find},
        },
    }


def shop() -> Starlette:
    """A small shop."""

    async def order(request: Request) -> JSONResponse:
        return _found(ORDERS.get(request.path_params["id"]))

    async def customer(request: Request) -> JSONResponse:
        return _found(CUSTOMERS.get(request.path_params["name"]))

    async def find(request: Request) -> JSONResponse:
        return JSONResponse(products(float(request.query_params["max_price"])))

    async def create(request: Request) -> JSONResponse:
        return JSONResponse({"number": 4711, **await request.json()})

    return Starlette(
        routes=[
            Route("/orders/{id}", order),
            Route("/customers/{name}", customer),
            Route("/products", find),
            Route("/orders", create, methods=["POST"]),
        ]
    )


def _found(value: Any) -> JSONResponse:
    return JSONResponse({"error": "there is none"}, 404) if value is None else JSONResponse(value)


@contextmanager
def _listening(app: Any) -> Iterator[str]:
    """Its address, while it listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)


if __name__ == "__main__":
    main()
