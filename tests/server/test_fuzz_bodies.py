"""Bodies of all three APIs, each hostile in its own way: none is a 500, none is kept, and the server outlives them."""

from __future__ import annotations

import gc
import json
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.base import Capabilities, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

BODIES = int(os.environ.get("TOOLGRAM_FUZZ_BODIES", "10000"))
"""How many there are; the same ones in every run, from fixed seeds."""
LONGEST = 300.0
"""Seconds: what takes longer is a 504, and a hole in the budget of 20 seconds of work, however slow the machine."""
MOST = 256
"""Megabytes that the server may hold for one body more than it does between bodies."""
MOST_IN_ALL = 512
"""Megabytes that all bodies may leave, with full caches: what tests before have left in the process is not theirs."""
TOOLS = (*[1] * 30, *[2] * 12, *[5] * 7, 40)
"""How many tools there are: each costs what a body does."""
STATUS = Path("/proc/self/status")
PEAK = Path("/proc/self/clear_refs")
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
    path = rng.choice(["/v1/chat/completions", "/v1/responses", "/v1/messages"])
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
        case _:
            return path, {"messages": turns, **extra, **odd}


def memory(kind: str = "VmRSS") -> int:
    """Megabytes that this process holds, or with `VmHWM` held at most since `forget_peak`."""
    return next(int(line.split()[1]) >> 10 for line in STATUS.read_text().splitlines() if line.startswith(kind))


def forget_peak() -> None:
    PEAK.write_text("5")


def kept() -> int:
    """How many objects there are when the caches are empty."""
    functions = [
        found
        for name, module in list(sys.modules.items())
        if name.startswith("toolgram")
        for found in list(vars(module).values())
    ]
    for function in functions:
        if callable(clear := getattr(function, "cache_clear", None)):
            clear()
    gc.collect()
    return len(gc.get_objects())


@pytest.fixture
def apart() -> Iterator[None]:
    """What is there already is not counted as the server's; garbage is looked for as seldom as `serve` does."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.fuzz
@pytest.mark.usefixtures("apart")
@pytest.mark.skipif(not PEAK.exists(), reason="the memory of a process is told by Linux")
def test_thousands_of_hostile_bodies() -> None:
    at_first, after_first, answered = memory(), 0, Counter[tuple[str, int]]()
    with serving(Compiling(), Settings(timeout=LONGEST)) as address, httpx2.Client(timeout=2 * LONGEST) as client:
        for number in range(BODIES):
            path, body = hostile(random.Random(number))
            content = json.dumps(body)
            before = memory()
            forget_peak()
            answer = client.post(address + path, content=content)
            assert answer.status_code in (200, 400, 413), (number, answer.text[:1000])
            assert memory("VmHWM") - before < MOST, number
            answered[path, answer.status_code] += 1
            if number + 1 == BODIES // 10:
                after_first = kept()
        last = client.post(address + "/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi."}]})
        assert last.status_code == 200
        assert "toolgram_requests_running 0.0" in client.get(address + "/metrics").text
        assert memory() - at_first < MOST_IN_ALL
        assert kept() < 1.2 * after_first
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
        assert min(answered[path, 200], answered[path, 400]) > BODIES // 50
