"""What servers are told of the sampling, and what they tell of it: penalties, biases, logprobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from engines.contract import SEA
from engines.fake_vllm import FakeVllm, serving
from engines.peers import llama_server
from toolgram.engines.base import Chunk, Engine, Sampling
from toolgram.engines.remote.llama_server import LlamaServer
from toolgram.engines.remote.openai import OpenAICompletions
from toolgram.engines.remote.vllm import Vllm

PENALTIES = {"presence_penalty": 0.5, "frequency_penalty": 0.25, "repetition_penalty": 1.25}


async def heard(engine: Engine, sampling: Sampling) -> list[Chunk]:
    async with aclosing(engine.generate(SEA, None, sampling)) as chunks:
        return [chunk async for chunk in chunks]


def said(engine: Engine, **sampling: object) -> str:
    return "".join(chunk.text for chunk in asyncio.run(heard(engine, Sampling(**sampling))))  # type: ignore[arg-type] - passed on


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with llama_server() as (url, _):
        yield LlamaServer(url)


def test_completion_servers_are_told_all() -> None:
    server = FakeVllm()
    with serving(server.app) as url:
        for engine in (Vllm(url), OpenAICompletions(url, "m")):
            sampling = Sampling(max_tokens=4, seed=1, logit_bias={7: -100, 9: 2.5}, logprobs=2, **PENALTIES)
            asyncio.run(heard(engine, sampling))
            asyncio.run(heard(engine, Sampling(max_tokens=4)))
            full, plain = server.asked[-2:]
            assert {name: full[name] for name in PENALTIES} == PENALTIES
            assert (full["seed"], full["logprobs"], full["logit_bias"]) == (1, 2, {"7": -100, "9": 2.5})
            # servers that do not know them may refuse them
            assert not {*PENALTIES, "seed", "logprobs", "logit_bias"} & set(plain)


def test_completion_servers_tell_logprobs() -> None:
    server = FakeVllm()
    with serving(server.app) as url:
        for engine in (Vllm(url), OpenAICompletions(url, "m")):
            for top in (0, 1, 3):
                chunks = asyncio.run(heard(engine, Sampling(max_tokens=6, logprobs=top)))
                told = [each for chunk in chunks for each in chunk.logprobs]
                assert len(told) == 6
                assert all(each.chosen.logprob == -0.5 for each in told)
                assert [len(each.top) for each in told] == [top] * 6
                assert all(each.top[0] == each.chosen for each in told if top)
                assert [each.logprob for each in told[0].top] == [-0.5, -1.5, -2.5][:top]
            assert not any(chunk.logprobs for chunk in asyncio.run(heard(engine, Sampling(max_tokens=3))))


def test_vllm_tells_the_ids_of_the_tokens_too() -> None:
    with serving(FakeVllm().app) as url:
        chunks = asyncio.run(heard(Vllm(url), Sampling(max_tokens=6, logprobs=0)))
    tokens = [token for chunk in chunks for token in chunk.tokens]
    assert [each.chosen.token for chunk in chunks for each in chunk.logprobs] == tokens


def test_llama_server_tells_logprobs(server: LlamaServer) -> None:
    for top in (0, 1, 3):
        chunks = asyncio.run(heard(server, Sampling(max_tokens=5, logprobs=top)))
        told = [each for chunk in chunks for each in chunk.logprobs]
        assert [each.chosen.token for each in told] == [token for chunk in chunks for token in chunk.tokens]
        assert b"".join(each.chosen.piece for each in told).decode() == "".join(chunk.text for chunk in chunks)
        assert [len(each.top) for each in told] == [top] * 5
        assert all(each.top[0] == each.chosen for each in told if top)  # greedy
        assert all(each.chosen.logprob < 0 for each in told)


def test_llama_server_takes_penalties_and_biases(server: LlamaServer) -> None:
    plain = asyncio.run(heard(server, Sampling(max_tokens=12)))
    first = plain[0].tokens[0]
    text = "".join(chunk.text for chunk in plain)
    without = asyncio.run(heard(server, Sampling(max_tokens=2, logit_bias={first: -100})))
    assert without[0].tokens[0] != first
    only = asyncio.run(heard(server, Sampling(max_tokens=3, logit_bias={first: 100})))
    assert [token for chunk in only for token in chunk.tokens] == [first] * 3
    both = asyncio.run(heard(server, Sampling(max_tokens=6, logit_bias={first: 60}, frequency_penalty=20)))
    assert len({token for chunk in both for token in chunk.tokens}) > 1  # the bias is used up
    for penalty in ({"presence_penalty": 2.0}, {"frequency_penalty": 2.0}, {"repetition_penalty": 3.0}):
        assert said(server, max_tokens=12, **penalty) != text


def test_asking_twice_with_a_seed_gives_the_same(server: LlamaServer) -> None:
    options = {"max_tokens": 8, "temperature": 1.0, "seed": 5, **PENALTIES}
    assert said(server, **options) == said(server, **options)
