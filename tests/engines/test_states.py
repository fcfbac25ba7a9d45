"""Models with recurrent layers, of random weights: what they have read is not read again, and changes no answer."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines import hybrid_model
from toolgram.engines.base import Chunk, Sampling, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.gguf_model import BATCH, Cancel, Model, Span
from toolgram.engines.llama_cpp.kv_cache import Slot, Slots

CONTEXT = 2048
TOOLS = "<|system|>tool call name arguments city " * 40


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid_model.write(tmp_path_factory.mktemp("model") / "hybrid.gguf", CONTEXT)


@pytest.fixture(params=[{"budget": 3 * CONTEXT}, {"budget": 2 * CONTEXT}], ids=["apart", "shared"])
def engine(path: Path, request: pytest.FixtureRequest) -> Iterator[LlamaCpp]:
    engine = LlamaCpp(path, context=CONTEXT, parallel=3, threads=1, **request.param)
    assert engine._model.apart == (request.param["budget"] == 3 * CONTEXT)
    yield engine
    engine.close()


async def answer(engine: LlamaCpp, prompt: str, tokens: int = 12) -> tuple[str, Usage]:
    sampling = Sampling(temperature=0, max_tokens=tokens, logit_bias=dict.fromkeys((0, 2, 6), -100))
    chunks: list[Chunk] = [chunk async for chunk in engine.generate(((prompt, True),), None, sampling)]
    usage = chunks[-1].usage
    assert usage
    return "".join(chunk.text for chunk in chunks), usage


async def cold(path: Path, prompt: str) -> str:
    """What the model answers that has read nothing before."""
    engine = LlamaCpp(path, context=CONTEXT, parallel=1, threads=1)
    text, _ = await answer(engine, prompt)
    engine.close()
    return text


def turn(text: str) -> str:
    return f"<|user|>{text}<|end|><|assistant|>"


def test_a_turn_reads_only_what_is_new(path: Path, engine: LlamaCpp) -> None:
    """Whether the next prompt has the answer as it was written, or is otherwise from where that began."""

    async def run() -> None:
        prompt = TOOLS + turn("Hi Bob city")
        for said in (None, "tool"):
            text, usage = await answer(engine, prompt)
            read = usage.prompt_tokens
            prompt += f"{text if said is None else said}<|end|>" + turn("call name")
            again, usage = await answer(engine, prompt)
            assert usage.cached_tokens is not None
            assert read - (16 if said is None else 80) <= usage.cached_tokens < usage.prompt_tokens
            assert again == await cold(path, prompt)

    asyncio.run(run())


def test_others_between_do_not_matter(path: Path, engine: LlamaCpp) -> None:
    async def run() -> None:
        prompt = TOOLS + turn("Hi Bob")
        text, usage = await answer(engine, prompt)
        for number in range(5):
            await answer(engine, f"name {number}" * 30)
        prompt += text + "<|end|>" + turn("city")
        again, after = await answer(engine, prompt)
        assert after.cached_tokens is not None
        assert after.cached_tokens >= usage.prompt_tokens - 16
        assert again == await cold(path, prompt)

    asyncio.run(run())


def test_what_two_prompts_have_in_common_a_third_does_not_read(path: Path, engine: LlamaCpp) -> None:
    async def run() -> None:
        prompts = [TOOLS + turn(f"{name} city" * 20) for name in ("Hi", "Bob", "tool")]
        for prompt in prompts[:2]:
            await answer(engine, prompt)
        text, usage = await answer(engine, prompts[2])
        assert usage.cached_tokens is not None
        assert usage.cached_tokens > usage.prompt_tokens // 2
        assert text == await cold(path, prompts[2])

    asyncio.run(run())


def test_who_waits_for_the_same_prompt_does_not_read_it(path: Path) -> None:
    """One that is being read is noted where the one that waits goes on otherwise; and of many places some are kept."""
    model = Model(path, CONTEXT, 1, parallel=2, kept=2, budget=CONTEXT)
    slots = Slots(model)
    first, second = [300 + at % 50 for at in range(700)], [300 + at % 50 for at in range(333)] + [301] * 300

    def read(slot: Slot, tokens: list[int]) -> None:
        while len(slot.tokens) < len(tokens):
            start = len(slot.tokens)
            count = min(len(tokens) - start, BATCH, slot.next_note or BATCH)
            span = Span(slot.sequence, start, tokens[start : start + count], 0)
            model.evaluate([span], Cancel())
            slot.tokens += span.tokens
            slots.note(slot)

    reading = slots.take(first)
    slots.will_part(reading, 333)
    assert reading.to_note == [333, 700 - 16]
    read(reading, first)
    waited = slots.take(second)
    assert waited.tokens == second[:333]
    read(waited, second)
    slots.end(reading)
    slots.end(waited)
    for number in range(5):
        longer = [*first[:-10], *[302 + number] * 100]
        slot = slots.take(longer)
        assert len(slot.tokens) == len(first) - 16
        read(slot, first := longer)
        slots.end(slot)
        assert slot.noted[0].length == 333
        assert len(slot.noted) <= 4
    model.close()


def test_many_at_once_end_and_are_gone_on_with(path: Path, engine: LlamaCpp) -> None:
    async def run() -> None:
        prompts = [TOOLS + turn(f"{number} city" * 9) for number in range(8)]
        texts = await asyncio.gather(*(answer(engine, prompt) for prompt in prompts))
        longer = [prompt + text + "<|end|>" + turn("Hi") for prompt, (text, _) in zip(prompts, texts, strict=True)]
        again = await asyncio.gather(*(answer(engine, prompt) for prompt in longer))
        cached = [usage.cached_tokens or 0 for _, usage in again]
        assert sum(count > usage.prompt_tokens // 2 for count, (_, usage) in zip(cached, again, strict=True)) == 8

    asyncio.run(run())


def test_it_is_forgotten_where_there_is_no_memory_for_it(path: Path, engine: LlamaCpp) -> None:
    engine._model.aside = 0

    async def run() -> None:
        prompt = TOOLS + turn("Hi Bob")
        await answer(engine, prompt)
        slots = engine._scheduler._slots
        assert not slots._aside
        assert not any(slot.noted for slot in slots._ended)
        text, _ = await answer(engine, prompt)
        assert text == await cold(path, prompt)

    asyncio.run(run())


def test_deterministic_answers_read_everything(path: Path) -> None:
    engine = LlamaCpp(path, context=CONTEXT, parallel=2, threads=1, deterministic=True)

    async def run() -> None:
        prompt = TOOLS + turn("Hi Bob")
        text, _ = await answer(engine, prompt)
        again, usage = await answer(engine, prompt)
        assert (again, usage.cached_tokens) == (text, 0)

    asyncio.run(run())
    engine.close()
