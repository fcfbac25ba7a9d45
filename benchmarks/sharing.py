"""What clients of the embedded engine take of each other: python benchmarks/sharing.py [--model FILE].

One client has a short answer written while another one has sixteen long ones, or another program of its own has; and
one has a long prompt read while another one has a long answer written. The time is divided between two, so that a long
prompt should take about twice as long as alone, and the one that writes should write about half as fast. A short answer
is nearly done by the time it is divided: who comes for a single one has half a second before those who write several.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from _common import show
from toolgram import work
from toolgram.engines.base import Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.models.catalog import default_model

SLOTS, ROUNDS = 4, 5
SHORT = 24  # tokens of a short answer
WORDS = 150  # times nine words in a long prompt
_STORY = "Tell me a long story of the sea."
_FOX = "The quick brown fox jumps over the lazy dog. "


class Client:
    """Who asks an engine, maybe by the same key or address as another one, and when each piece of its answers came."""

    def __init__(self, engine: LlamaCpp, program: str = "", same: Client | None = None) -> None:
        self.times: list[float] = []
        self._engine = engine
        self._program = program
        self._client: work.Client = same._client if same else work.Client(asyncio.Semaphore(99))

    async def ask(self, text: str, tokens: int, seed: int | None = None) -> float:
        """The seconds that an answer takes; sampled where there is a seed."""
        prompt = ((f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n", True),)
        began = time.perf_counter()
        sampling = Sampling(max_tokens=tokens, temperature=0.0 if seed is None else 1.0, seed=seed)
        with work.on(work.Errand(math.inf, client=self._client, program=self._program)):
            async for _ in self._engine.generate(prompt, None, sampling):
                self.times.append(time.perf_counter())
        return time.perf_counter() - began

    async def go_on(self, seed: int) -> None:
        """Long answers one after the other, without end."""
        while True:
            await self.ask(_STORY, 1000, seed)
            seed += 100

    @asynccontextmanager
    async def writing(self, answers: int) -> AsyncGenerator[None]:
        """Meanwhile so many long answers of this client are written, all together."""
        tasks = [asyncio.create_task(self.go_on(seed)) for seed in range(answers)]
        await asyncio.sleep(2)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def short_answer(one: Client, other: Client, rounds: int) -> tuple[float, float]:
    """Seconds of a short answer: alone, and beside four long ones of another client for each slot."""
    alone = [await one.ask("Hi.", SHORT) for _ in range(rounds + 1)][1:]
    async with other.writing(4 * SLOTS):
        beside = [await one.ask("Hi.", SHORT) for _ in range(rounds)]
    return statistics.median(alone), statistics.median(beside)


async def long_prompt(engine: LlamaCpp, rounds: int, words: int) -> tuple[float, float, float, float]:
    """Seconds of a long prompt, alone and beside a long answer of another client; its tokens a second likewise."""
    one, other = Client(engine), Client(engine)
    prompts = [f"{number} " + _FOX * words for number in range(2 * rounds)]  # none begins as another one
    alone = [await one.ask(prompt, 1) for prompt in prompts[:rounds]]
    async with other.writing(1):
        began = other.times[0]
        rate = len(other.times) / (time.perf_counter() - began)
        before, began = len(other.times), time.perf_counter()
        beside = [await one.ask(prompt, 1) for prompt in prompts[rounds:]]
        rate_beside = (len(other.times) - before) / (time.perf_counter() - began)
    return statistics.median(alone), statistics.median(beside), rate, rate_beside


async def measured(engine: LlamaCpp, rounds: int = ROUNDS, words: int = WORDS) -> list[tuple[str, float, float, float]]:
    """The rows of the table."""
    one = Client(engine, "chat")
    answer, answer_beside = await short_answer(one, Client(engine), rounds)
    own, own_beside = await short_answer(one, Client(engine, "batch", one), rounds)
    prompt, prompt_beside, rate, rate_beside = await long_prompt(engine, rounds, words)
    return [
        ("a short answer, s", answer, answer_beside, answer_beside / answer),
        ("the same, beside a program of one's own, s", own, own_beside, own_beside / own),
        ("a long prompt, s", prompt, prompt_beside, prompt_beside / prompt),
        ("a long answer beside that, tokens/s", rate, rate_beside, rate_beside / rate),
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file; default: SmolLM2")
    engine = LlamaCpp(parser.parse_args().model or default_model(), context=4096, parallel=SLOTS)
    try:
        show("Two clients", ("what", "alone", "beside another", "×"), asyncio.run(measured(engine)))
    finally:
        engine.close()


if __name__ == "__main__":
    main()
