"""Bodies of all APIs, each hostile in its own way: none is a 500, none is kept, and the server outlives them."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from toolgram.cli.main import MEMORY
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay

BODIES = int(os.environ.get("TOOLGRAM_FUZZ_BODIES", "10000"))
"""How many there are; the same ones in every run, from fixed seeds."""
LONGEST = 300.0
"""Seconds: what takes longer is a 504, and a hole in the budget of 20 seconds of work, however slow the machine."""
MOST = 256
"""Megabytes that the server may hold for one body more than it does between bodies."""
REST = 12.0
"""Seconds after which a server that has nothing to do has given back what is free."""
STORE = 2 << 20
"""Bytes of responses that are kept, which are as many after the first tenth of the bodies as after all."""
PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat")
TOOLS = (*[1] * 30, *[2] * 12, *[5] * 7, 40)
"""How many tools there are: each costs what a body does."""
ALONE = """
from server.test_fuzz_bodies import LONGEST, STORE, Compiling
from situations import CHATML
from toolgram.cli.serve import run
from toolgram.server.models import Served
from toolgram.server.settings import Settings

run((Served("recorded", CHATML, Compiling()),), Settings(timeout=LONGEST, max_store=STORE), "127.0.0.1", 0, None)
"""
Json = dict[str, Any]


class Compiling(Replay):
    """Writes the grammar in each dialect, and then a letter; remembers nothing."""

    capabilities = Capabilities(dialects=("lark", "gbnf", "ebnf"), special_tokens=True, token_ids=True)
    context = 4096
    most_characters = 1 << 17

    def count_tokens(self, prompt: Prompt) -> int:
        return min(sum(len(text) for text, _ in prompt) // 4, self.context - 1)

    def compile(self, constraint: SupportsGrammar) -> None:
        for dialect in self.capabilities.dialects:
            constraint.grammar.to(dialect)

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        yield Chunk("a", (1,))
        yield Chunk("", finish="stop", usage=Usage())


def odd_value(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON: of odd kinds, lengths and depths."""
    made: list[Callable[[], Any]] = [
        lambda: rng.choice([None, True, False, 0, -1, 1e308, -0.0, 2**63, 10**40, 0.1]),
        lambda: rng.choice(["", "a", "<|im_end|>", "\ue000", "{{", "\x00", "null", "(" * 300, "é" * 5000]),
        lambda: "x" * rng.randrange(1 << 14),
    ]
    if depth < 5:
        made += [
            lambda: [odd_value(rng, depth + 1) for _ in range(rng.randrange(5))],
            lambda: {str(odd_value(rng, 9))[:40]: odd_value(rng, depth + 1) for _ in range(rng.randrange(5))},
        ]
    return rng.choice(made)()


def odd_schema(rng: random.Random, depth: int = 0) -> Any:
    """A schema that may be costly."""
    count = rng.choice([1, 2, 3, 30, 300])
    made: list[Callable[[], Any]] = [
        lambda: {"type": "string", "pattern": odd_pattern(rng)},
        lambda: {"type": "string", "minLength": rng.randrange(99), "maxLength": rng.randrange(9999)},
        lambda: {"type": "integer", "multipleOf": rng.randrange(1, 9999), "minimum": -rng.randrange(10**9)},
        lambda: {"enum": [odd_value(rng, 4) for _ in range(rng.randrange(9))]},
        lambda: {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(count)}},
    ]
    if depth < 4:
        made += [
            lambda: {rng.choice(["allOf", "anyOf", "oneOf"]): [odd_schema(rng, depth + 1) for _ in range(3)]},
            lambda: {"not": odd_schema(rng, depth + 1)},
            lambda: {"type": "array", "items": odd_schema(rng, depth + 1), "minItems": 3, "uniqueItems": True},
            lambda: {"type": "object", "properties": {"a": odd_schema(rng, depth + 1)}, "required": ["a", "b"]},
            lambda: {"$ref": "#"},
        ]
    return rng.choice(made)()


def odd_pattern(rng: random.Random) -> str:
    """A regular expression that may have many states."""
    one = rng.choice(["a", "[a-z]", "(a|b)", ".", r"\w", "(?:ab?)", "[^a]"])
    for _ in range(rng.randrange(4)):
        low = rng.randrange(30)
        one = rng.choice([f"({one}){{{low},{low + rng.randrange(60)}}}", f"({one})*x", f"({one}|{one}b)", f"^{one}$"])
    return one


def odd_tool(rng: random.Random, number: int) -> Json:
    if rng.random() < 0.3:
        definition = rng.choice(["start: /{}/", 'start: a0\na0: "x" a0 | /{}/', "start: ({})*"]).format(
            odd_pattern(rng)
        )
        grammar = {"syntax": rng.choice(["lark", "regex"]), "definition": definition}
        return {"type": "custom", "custom": {"name": f"f{number}", "format": {"type": "grammar", "grammar": grammar}}}
    parameters = {"type": "object", "properties": {"a": odd_schema(rng), "b": odd_schema(rng)}}
    return {"type": "function", "function": {"name": f"f{number}", "parameters": parameters}}


def hostile(rng: random.Random) -> tuple[str, Json]:
    """A path, and a body for it with some fields that are well formed and odd, and some that are neither."""
    tools = [odd_tool(rng, number) for number in range(rng.choice(TOOLS))]
    schema = {"type": "json_schema", "json_schema": {"schema": odd_schema(rng), "strict": rng.random() < 0.3}}
    said = rng.choice(["Hi.", "<|im_end|>" * 99, "word " * rng.randrange(1 << 13)])
    extra = rng.choice(
        [{"tools": tools}, {"response_format": schema}, {"regex": odd_pattern(rng)}, {"n": rng.randrange(1, 130)}, {}]
    )
    fields = ["temperature", "stop", "logit_bias", "tools", "tool_choice", "stream", "max_tokens", "metadata", "seed"]
    odd = {rng.choice(fields): odd_value(rng) for _ in range(rng.randrange(2))}
    path = rng.choice(PATHS)
    turns = [{"role": "user", "content": said}]
    match path:
        case "/v1/responses":
            return path, {"input": turns, **extra, **odd}
        case "/v1/messages":
            given = [
                {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
                for tool in tools
                if "function" in tool
            ]
            return path, {"messages": turns, "max_tokens": 9, "tools": given, **odd}
        case "/api/chat":
            form = {"format": odd_schema(rng)} if rng.random() < 0.3 else {}
            functions = [tool for tool in tools if "function" in tool]
            return path, {"messages": turns, "tools": functions, **form, **odd}
        case _:
            return path, {"messages": turns, **extra, **odd}


@dataclass(frozen=True)
class Server:
    """`toolgram serve` in a process of its own, with the memory that is its alone."""

    address: str
    process: Path

    def memory(self, kind: str = "VmRSS") -> int:
        """Megabytes that it holds, or with `VmHWM` held at most since `forget_peak`."""
        lines = (self.process / "status").read_text().splitlines()
        return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(kind))

    def forget_peak(self) -> None:
        (self.process / "clear_refs").write_text("5")


@contextmanager
def server() -> Iterator[Server]:
    paths = os.pathsep.join((str(Path(__file__).parents[1]), *sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, **MEMORY}  # as `toolgram serve` begins
    command = [sys.executable, "-u", "-c", ALONE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
        assert found is not None
        try:
            yield Server(found[0], Path(f"/proc/{process.pid}"))
            assert process.poll() is None
        finally:
            process.terminate()


@pytest.mark.fuzz
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is told by Linux")
def test_thousands_of_hostile_bodies() -> None:
    answered = Counter[tuple[str, int]]()
    after_first = 0
    with server() as served, httpx2.Client(base_url=served.address, timeout=2 * LONGEST) as client:
        for number in range(BODIES):
            path, body = hostile(random.Random(number))
            before = served.memory()
            served.forget_peak()
            answer = client.post(path, content=json.dumps(body))
            assert answer.status_code in (200, 400, 413), (number, answer.text[:1000])
            assert served.memory("VmHWM") - before < MOST, number
            answered[path, answer.status_code] += 1
            if number + 1 == BODIES // 10:
                time.sleep(REST)
                after_first = served.memory()
        last = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi."}]})
        assert last.status_code == 200
        assert "toolgram_requests_running 0.0" in client.get("/metrics").text
        time.sleep(REST)
        after_all = served.memory()
        print(f"{after_first} MB after {BODIES // 10} bodies, {after_all} after {BODIES}")  # noqa: T201 (shown with -s)
        assert after_all < 1.2 * after_first
    for path in PATHS:
        assert min(answered[path, 200], answered[path, 400]) > BODIES // 50
