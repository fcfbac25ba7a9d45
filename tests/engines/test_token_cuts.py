"""Tokens are cut as the vocabulary cuts their text, also where the model chose one and the grammar wrote the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import toolgram
from toolgram.engines.base import Chunk, Prompt, Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.grammar.constraint import Constraint
from toolgram.models.catalog import default_model

PROMPT: Prompt = (("<|im_start|>user\nWhich is it?<|im_end|>\n<|im_start|>assistant\n", True),)
CLOSED = {"type": "object", "additionalProperties": False}
NESTED = {
    **CLOSED,
    "properties": {"a": {**CLOSED, "properties": {"b": {"type": "string"}}, "required": ["b"]}},
    "required": ["a"],
}
NAMES = ["nature_park_find", "restaurant_find", "volume"]


@pytest.fixture(scope="module")
def engine() -> Iterator[LlamaCpp]:
    engine = LlamaCpp(default_model(), context=512)
    yield engine
    engine.close()


def written(
    engine: LlamaCpp, schema: dict[str, Any], *wanted: str, max_tokens: int = 24, **sampling: Any
) -> list[Chunk]:
    """How the value of a schema comes from a model that wants certain tokens everywhere."""
    bias = {token: 60.0 for text in wanted for token in engine.tokenize(((text, True),))}

    async def run() -> list[Chunk]:
        told = Sampling(max_tokens=max_tokens, logit_bias=bias, **sampling)
        constraint = Constraint(toolgram.schema_grammar(schema))
        return [chunk async for chunk in engine.generate(PROMPT, constraint, told)]

    return asyncio.run(run())


def tokens_of(engine: LlamaCpp, chunks: Sequence[Chunk]) -> list[str]:
    return [engine.detokenize([token]) for chunk in chunks for token in chunk.tokens]


def cut(engine: LlamaCpp, text: str) -> list[str]:
    return [engine.detokenize([token]) for token in engine.tokenize(((text, True),))]


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 1}])
@pytest.mark.parametrize("wanted", ["n", "na", "r", "re", "v"])
def test_a_name_that_its_first_letters_decide_for_is_cut_as_a_whole(
    engine: LlamaCpp, wanted: str, sampling: dict[str, Any]
) -> None:
    tokens = tokens_of(engine, written(engine, {"enum": NAMES}, wanted, **sampling))
    text = "".join(tokens)
    assert text.startswith(f'"{wanted}')
    assert tokens == cut(engine, text)


def test_brackets_that_are_closed_at_once_are_one_token(engine: LlamaCpp) -> None:
    chunks = written(engine, NESTED, '"}')
    tokens = tokens_of(engine, chunks)
    assert "".join(tokens) == '{"a": {"b": ""}}'
    assert tokens[-1] == "}}"


@pytest.mark.parametrize("most", range(1, 12))
def test_no_more_is_written_than_was_asked_for(engine: LlamaCpp, most: int) -> None:
    chunks = written(engine, NESTED, '"}', max_tokens=most)
    tokens = tokens_of(engine, chunks)
    usage = chunks[-1].usage
    assert usage is not None
    assert len(tokens) == usage.completion_tokens <= most
    assert '{"a": {"b": ""}}'.startswith("".join(tokens))


def test_what_is_told_is_of_the_tokens_that_were_written(engine: LlamaCpp) -> None:
    chunks = written(engine, NESTED, '"}', trace=True, logprobs=1)
    said = [token for chunk in chunks for token in chunk.tokens]
    assert [one.chosen.token for chunk in chunks for one in chunk.logprobs] == said
    assert all(said[point.position] == point.token for chunk in chunks for point in chunk.trace)
    assert sum(chunk.forced for chunk in chunks) == len(said) - sum(len(c.tokens) > c.forced for c in chunks)
