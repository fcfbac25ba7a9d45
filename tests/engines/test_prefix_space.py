"""Vocabularies that put a space before a text: it is none of an answer, for the grammar and for who reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgram
from engines import sentencepiece_model
from toolgram.chat import Reply
from toolgram.engines import LlamaCpp
from toolgram.engines.base import Chunk, Prompt, Sampling, SupportsGrammar
from toolgram.grammar.constraint import Constraint
from toolgram.planning.plan import Plan

WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Bob", "Hi"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "call", "parameters": WEATHER}}]
USER = [{"role": "user", "content": "Hi Bob"}]
SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": WEATHER}}}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sentencepiece_model.write(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def engine(path: Path) -> Iterator[LlamaCpp]:
    engine = LlamaCpp(path, context=512, parallel=1)
    yield engine
    engine.close()


def plan_of(path: Path, **body: Any) -> Plan:
    return toolgram.plan({"messages": USER, **body}, toolgram.ChatTemplate.from_gguf(path))


def written(
    engine: LlamaCpp, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
) -> tuple[str, list[int]]:
    async def run() -> list[Chunk]:
        return [chunk async for chunk in engine.generate(prompt, constraint, sampling)]

    chunks = asyncio.run(run())
    return "".join(chunk.text for chunk in chunks), [token for chunk in chunks for token in chunk.tokens]


def answered(engine: LlamaCpp, plan: Plan, sampling: Sampling) -> Reply:
    return asyncio.run(toolgram.generate(plan, engine, sampling))


def piece(engine: LlamaCpp, text: str) -> int:
    """The token of this text, no mere byte."""
    return engine.tokens[text]


def test_the_space_before_an_answer_is_none_of_it(engine: LlamaCpp, path: Path) -> None:
    hi = Sampling(max_tokens=3, logit_bias={piece(engine, " Hi"): 100.0})
    plan = plan_of(path)
    assert (written(engine, plan.prompt_parts, None, hi))[0] == "Hi Hi Hi"
    reply = answered(engine, plan_of(path, tools=TOOLS), hi)  # under a grammar, too
    assert reply.message.content == "Hi Hi Hi"
    assert (written(engine, (("<|user|>Hi", True),), None, hi))[0] == " Hi Hi Hi"  # which goes on a text


def test_what_a_grammar_forces_is_written_as_the_vocabulary_does(engine: LlamaCpp, path: Path) -> None:
    plan = plan_of(path, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    text, tokens = written(engine, plan.prompt_parts, plan.constraint, Sampling())
    assert plan.parse(text).tool_calls[0].name == "call"
    assert engine.tokenize((*plan.prompt_parts, (text, True))) == [*engine.tokenize(plan.prompt_parts), *tokens]


def test_a_grammar_takes_the_first_token_as_it_is_meant(engine: LlamaCpp, path: Path) -> None:
    grammar = toolgram.schema_grammar({"anyOf": [WEATHER, {"type": "array", "items": WEATHER}]})
    prompt = (("<|assistant|>", True),)
    for first in (" {", "{", " [", "[", " "):
        sampling = Sampling(max_tokens=60, logit_bias={piece(engine, first): 50.0})
        text, tokens = written(engine, prompt, Constraint(grammar), sampling)
        assert engine.detokenize(tokens[:1]).startswith(first)
        assert text.startswith(first.strip())
        assert grammar.accepts(text), text


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_drawn_is_a_sentence(engine: LlamaCpp, path: Path, seed: int) -> None:
    body = ({"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "required"}, SCHEMA)[seed % 3]
    plan = plan_of(path, **body)
    reply = answered(engine, plan, Sampling(temperature=1.0, seed=seed, max_tokens=120))
    assert plan.constraint is not None
    assert reply.finish_reason == "length" or plan.constraint.grammar.accepts(reply.text), reply.text


def test_the_odds_of_a_call_are_those_of_the_token_that_the_model_means(engine: LlamaCpp, path: Path) -> None:
    plan = plan_of(path, tools=TOOLS)
    for first in ("<", " <"):
        reply = answered(engine, plan, Sampling(max_tokens=2, logit_bias={piece(engine, first): 100.0}))
        assert reply.call_log_odds is not None
        assert reply.call_log_odds > 0


def test_a_token_of_text_is_no_mere_byte(engine: LlamaCpp) -> None:
    listed = [text for text, _ in sentencepiece_model.tokens()]
    assert {listed[engine.tokens[char]] for char in '{"\\<\n'} == {"{", '"', "\\", "<", "\n"}


def test_text_that_is_broken_apart_gets_no_space(engine: LlamaCpp) -> None:
    assert engine.detokenize(engine.tokenize((("Hi<tag>Bob", False),))) == " Hi<tag>Bob"
