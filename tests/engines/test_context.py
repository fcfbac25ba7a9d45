"""How much of a conversation fits, and how much of it is read again a turn later; with the default model."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from toolgram.engines.base import Chunk, Prompt, Sampling, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.errors import ModelError
from toolgram.models.catalog import default_model

FREE = "toolgram.engines.llama_cpp.machine.free_memory"
_TOKEN = 4 * 30 * 3 * 64  # bytes: a key and a value of 2 bytes a number, in 30 layers of 3 heads of 64


def test_the_context_is_what_the_model_was_trained_on() -> None:
    more = "as trained, which is the most: 1000000000 were asked for"
    for asked, told in ((None, "as trained"), (8192, "as trained"), (10**9, more)):
        engine = LlamaCpp(default_model(), context=asked, parallel=1)
        assert engine.context == 8192
        assert engine.memory.startswith(f"context of 8192 tokens ({told}); 0.2 GB of memory for requests, up to 0.4")
        engine.close()


def test_the_context_is_what_a_quarter_of_the_free_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FREE, lambda: default_model().stat().st_size + 4 * 1000 * _TOKEN)
    engine = LlamaCpp(default_model())
    assert engine.context == 1000
    assert engine._model.room == 1000
    assert engine.memory.startswith("context of 1000 tokens (trained for 8192)")
    engine.close()


def test_a_context_may_have_fewer_tokens_than_there_are_sequences() -> None:
    engine = LlamaCpp(default_model(), context=1, parallel=1)
    try:
        assert engine.context == 1
        assert engine.count_tokens((("Hi.", True),)) > 0
    finally:
        engine.close()


def test_a_context_that_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FREE, lambda: 3000 * _TOKEN)
    with pytest.raises(ModelError, match=r"4096 tokens takes 0\.1 GB, and only .* give at most 3000 \(--ctx-size"):
        LlamaCpp(default_model(), context=4096)


@pytest.fixture(scope="module", params=[{"parallel": 3}, {"parallel": 3, "budget": 3 * 512}], ids=["shared", "apart"])
def engine(request: pytest.FixtureRequest) -> Iterator[LlamaCpp]:
    options: dict[str, Any] = {"context": 512, "budget": 512, **request.param}
    engine = LlamaCpp(default_model(), **options)
    yield engine
    engine.close()


def turn(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


async def answer(engine: LlamaCpp, prompt: str, tokens: int) -> tuple[str, Usage]:
    sampling = Sampling(max_tokens=tokens, logit_bias={0: -100, 2: -100})  # no end of the turn
    parts: Prompt = ((prompt, True),)
    chunks: list[Chunk] = [chunk async for chunk in engine.generate(parts, None, sampling)]
    usage = chunks[-1].usage
    assert usage
    return "".join(chunk.text for chunk in chunks), usage


def test_a_turn_reads_only_what_is_new(engine: LlamaCpp) -> None:
    """Also after others, for which the idle conversation was put aside, and beside others."""

    async def run() -> list[Usage]:
        others = [turn(f"{name} says little. " * 12) for name in ("Anna", "Boris")]
        prompt, usages = turn("What happens in the old house by the sea? " * 12), list[Usage]()
        for beside in ([], [], others):
            (text, usage), *_ = await asyncio.gather(*(answer(engine, each, 5) for each in (prompt, *beside)))
            for other in others:
                await answer(engine, other, 5)
            usages.append(usage)
            prompt += f"{text}<|im_end|>\n{turn('And then?')}"
        return usages

    first, *later = asyncio.run(run())
    known = first
    for usage in later:
        # the last token of the answer was not evaluated, and may be written otherwise with what follows it
        assert usage.cached_tokens >= known.prompt_tokens + known.completion_tokens - 2
        assert usage.prompt_tokens - usage.cached_tokens < 20
        known = usage


def test_what_differs_in_the_middle_leaves_the_beginning_known(engine: LlamaCpp) -> None:
    head = "What happens in the old house by the sea? " * 9
    asyncio.run(answer(engine, turn(f"{head} One: {'so it goes on. ' * 6}"), 2))
    _, usage = asyncio.run(answer(engine, turn(f"{head} Two: {'it is no more. ' * 6}"), 2))
    assert usage.cached_tokens >= engine.count_tokens(((turn(head), True),)) - 8
