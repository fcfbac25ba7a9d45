"""Tokens that promise what the grammar forbids: the model writes the one that goes on as the grammar does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from toolgram.chat import generate_sync
from toolgram.engines.base import Chunk, Prompt, Sampling
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.grammar.constraint import Constraint
from toolgram.grammar.grammar import Grammar
from toolgram.grammar.ir import choice, seq
from toolgram.models.catalog import default_model

PROMPT: Prompt = (("<|im_start|>user\nWhich are they?<|im_end|>\n<|im_start|>assistant\n", True),)
STRINGS = {"type": "array", "items": {"type": "string"}}
TOKENS = 12


@pytest.fixture(scope="module")
def engine() -> Iterator[LlamaCpp]:
    engine = LlamaCpp(default_model(), context=512)
    yield engine
    engine.close()


def written(engine: LlamaCpp, schema: dict[str, Any], wanted: str, **sampling: Any) -> tuple[list[str], list[Chunk]]:
    """The tokens of an object with such a member, by a model that wants a certain one everywhere, and how they came."""
    grammar = toolgram.schema_grammar({"type": "object", "properties": {"a": schema}, "required": ["a"]})
    return written_under(engine, grammar, wanted, **sampling)


def written_under(
    engine: LlamaCpp, grammar: toolgram.Grammar, wanted: str, **sampling: Any
) -> tuple[list[str], list[Chunk]]:
    (token,) = engine.tokenize(((wanted, True),))

    async def run() -> list[Chunk]:
        told = Sampling(max_tokens=TOKENS, logit_bias={token: 60.0}, **sampling)
        return [chunk async for chunk in engine.generate(PROMPT, Constraint(grammar), told)]

    chunks = asyncio.run(run())
    return [engine.detokenize([token]) for chunk in chunks for token in chunk.tokens], chunks


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 1}, {"temperature": 1.5, "seed": 2}])
def test_a_list_of_strings_begins_as_the_model_begins_one(engine: LlamaCpp, sampling: dict[str, Any]) -> None:
    """And not ` []`, which the model has a token for: it wrote another."""
    tokens, _ = written(engine, STRINGS, " [", **sampling)
    assert tokens[tokens.index('":') + 1] == ' ["'


def test_what_is_written_instead_promises_no_more(engine: LlamaCpp) -> None:
    tokens, _ = written(engine, STRINGS, " ")
    assert tokens[tokens.index('":') + 1] in (' ["', " []")


def test_a_list_that_must_be_empty_is(engine: LlamaCpp) -> None:
    tokens, _ = written(engine, {**STRINGS, "maxItems": 0}, " [")
    assert "".join(tokens).startswith('{"a": []}')


def test_a_text_ends_where_the_model_ends_it_and_more(engine: LlamaCpp) -> None:
    """It would end the object with it, where another member must follow; it was left with what goes on in the text."""
    texts = {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}}, "required": ["b", "c"]}
    tokens, _ = written(engine, texts, '"}')
    assert "".join(tokens).startswith('{"a": {"b": "", "c":')


@pytest.mark.parametrize("wanted", [",", " km"])
def test_a_number_ends_where_the_model_is_done_with_it(engine: LlamaCpp, wanted: str) -> None:
    """It would write what may not follow, and was left with digits."""
    numbers = {"type": "array", "items": {"type": "integer", "minimum": 10, "maximum": 99999999}, "maxItems": 1}
    tokens, _ = written_under(engine, toolgram.schema_grammar(numbers), wanted, temperature=5.0, seed=1)
    assert re.fullmatch(r"\[\d\d\]", "".join(tokens))


@pytest.mark.parametrize("written", ["30,000", "200,000"])
def test_a_number_goes_on_behind_the_comma_of_its_thousands(engine: LlamaCpp, written: str) -> None:
    """The grammar has none; without it the model wants a point, or the end."""
    amount = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
    pay = {"type": "function", "function": {"name": "pay", "description": "Pay an amount.", "parameters": amount}}
    asked = {"messages": [{"role": "user", "content": f"Pay {written} euros for the car."}], "tools": [pay]}
    plan = toolgram.plan({**asked, "tool_choice": "required"}, toolgram.ChatTemplate.from_gguf(default_model()))
    calls = generate_sync(plan, engine).message.tool_calls
    assert [json.loads(call.arguments) for call in calls] == [{"amount": int(written.replace(",", ""))}]


def test_a_list_of_texts_that_was_to_stand_on_lines_has_texts(engine: LlamaCpp) -> None:
    """Its vocabulary has a token of a bracket and a quote, so that `""` and `".` came before a quote alone."""
    question = "Name five colors of the rainbow as a JSON list."
    plan = toolgram.plan(
        {
            "messages": [{"role": "user", "content": question}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "list", "schema": STRINGS}},
        },
        toolgram.ChatTemplate.from_gguf(default_model()),
    )
    reply = generate_sync(plan, engine)
    assert len([text for text in json.loads(reply.text) if text.isalpha()]) > 1


@pytest.mark.parametrize("items", ["integer", ["string", "integer"]])
def test_what_may_go_on_as_the_model_wants_is_left_to_it(engine: LlamaCpp, items: Any) -> None:
    assert " [" in written(engine, {"type": "array", "items": {"type": items}}, " [")[0]


def test_a_string_begins_with_the_space_before_it(engine: LlamaCpp) -> None:
    tokens, _ = written(engine, {"type": "string"}, " ")
    assert ' "' in tokens
    assert " " not in tokens[: tokens.index(' "')]


def test_a_space_goes_with_what_follows_it(engine: LlamaCpp) -> None:
    """Three and ` "` are how four before a quote are written; they were taken for the beginning of more."""
    lines = Grammar({"root": seq("[\n    ", choice('"city"', "[1]"), "\n]")})
    tokens, _ = written_under(engine, lines, "   ")
    assert tokens[tokens.index("   ") + 1] in (' "', " [")


def test_the_trace_and_the_odds_tell_of_the_token_that_was_written(engine: LlamaCpp) -> None:
    _, chunks = written(engine, STRINGS, " [", trace=True, logprobs=1)
    traced = [point.token for chunk in chunks for point in chunk.trace if not point.forced]
    sampled = [chunk.tokens[0] for chunk in chunks if len(chunk.tokens) > chunk.forced]
    assert traced == sampled
    assert [one.chosen.token for chunk in chunks for one in chunk.logprobs] == [t for c in chunks for t in c.tokens]


def test_values_are_those_that_the_model_knows(engine: LlamaCpp) -> None:
    """Of the prompt it copies the names; ` [` and then what is left of the quotes would begin with `""`."""
    tool = {
        "type": "function",
        "function": {
            "name": "sort_list",
            "description": "Sorts the elements of a list.",
            "parameters": {
                "type": "object",
                "properties": {"elements": {**STRINGS, "description": "The list of elements to sort."}},
                "required": ["elements"],
            },
        },
    }
    asked = {"role": "user", "content": "Sort this list of names in ascending order: ['Sam', 'Alice', 'Jack']"}
    template = toolgram.ChatTemplate.from_gguf(default_model())
    plan = toolgram.plan({"messages": [asked], "tools": [tool], "tool_choice": "required"}, template)
    reply = asyncio.run(toolgram.generate(plan, engine, Sampling(max_tokens=64)))
    (call,) = reply.message.tool_calls
    assert json.loads(call.arguments) == {"elements": ["Sam", "Alice", "Jack"]}
