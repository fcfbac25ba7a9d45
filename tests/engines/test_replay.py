"""The engine that replays recorded text."""

from __future__ import annotations

import asyncio

import pytest

from toolgram.engines.base import Chunk, Engine, Sampling
from toolgram.engines.replay import Replay
from toolgram.errors import EngineError

PROMPT = (("<s>", True), ("hello", False))


async def all_of(engine: Engine, sampling: Sampling = Sampling()) -> list[Chunk]:  # noqa: B008 - frozen
    return [chunk async for chunk in engine.generate(PROMPT, None, sampling)]


def test_it_says_the_answers_in_their_pieces() -> None:
    engine = Replay(["one ", "two"], "three")
    first, second = asyncio.run(all_of(engine)), asyncio.run(all_of(engine))
    assert [chunk.text for chunk in first] == ["one ", "two", ""]
    assert [chunk.text for chunk in second] == ["three", ""]
    assert [chunk.finish for chunk in first] == [None, None, "stop"]
    assert first[-1].usage is not None
    assert first[-1].usage.completion_tokens == 2


def test_it_records_what_it_was_given() -> None:
    engine = Replay("x")
    sampling = Sampling(temperature=0.5)
    asyncio.run(all_of(engine, sampling))
    assert engine.calls[0].prompt == PROMPT
    assert engine.calls[0].text == "<s>hello"
    assert engine.calls[0].sampling is sampling


def test_it_fails_after_so_many_pieces() -> None:
    said: list[str] = []

    async def run() -> None:
        said.extend([chunk.text async for chunk in Replay(["a", "b"], fail_after=2).generate(PROMPT, None, Sampling())])
        async for chunk in Replay(["a", "b", "c"], fail_after=2).generate(PROMPT, None, Sampling()):
            said.append(chunk.text)  # noqa: PERF401 - what came before the failure must be kept

    with pytest.raises(EngineError, match="after 2"):
        asyncio.run(run())
    assert said == ["a", "b", "", "a", "b"]


def test_it_has_no_more_answers_than_were_recorded() -> None:
    with pytest.raises(EngineError, match="only 0"):
        asyncio.run(all_of(Replay()))


def test_it_stops_as_other_engines_do() -> None:
    chunks = asyncio.run(all_of(Replay(["say E", "ND", " more"]), Sampling(stop=("END",))))
    assert "".join(chunk.text for chunk in chunks) == "say "
    assert chunks[-1].finish == "stop"
    chunks = asyncio.run(all_of(Replay(["a", "b", "c"]), Sampling(max_tokens=2)))
    assert "".join(chunk.text for chunk in chunks) == "ab"
    assert chunks[-1].finish == "length"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 0},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"min_p": 2},
        {"stop": ("",)},
    ],
)
def test_sampling_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(EngineError):
        Sampling(**wrong)  # type: ignore[arg-type] - values of every type, on purpose
