"""Values that only repeat themselves are brought to their end, by a way of the grammar, and the reply says so."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import pytest

import toolgram
from situations import CHATML, tool
from toolgram.chat import EndedRepetition, Reply, generate_sync
from toolgram.engines.base import BrokenOff, Chunk, Prompt, Sampling, SupportsGrammar, Usage
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.repetition import PERIODS, TOKENS, Repetition, period
from toolgram.engines.replay import Replay
from toolgram.models.catalog import default_model

BEGIN, END = '<tool_call>\n{"name": "set", "arguments": {"value": ', "}}\n</tool_call>"


def planned(schema: Any, style: str = "hermes", *, key: str = "value", **more: Any) -> toolgram.Plan:
    parameters = {"type": "object", "properties": {key: schema}, "required": [key]}
    request = {
        "messages": [{"role": "user", "content": "Do it."}],
        "tools": [tool("set", parameters)],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    return toolgram.plan(request | more, CHATML, style)


def repeated(plan: toolgram.Plan, begin: str, pieces: Sequence[str], times: int, end: str) -> tuple[Reply, Replay]:
    """What comes of a text in which `pieces` are repeated; where it is closed the engine goes on with `end`."""
    engine = Replay([begin, *pieces * times], [end])
    return generate_sync(plan, engine), engine


STRING = {"type": "string"}
ENDLESS = {
    "string": (STRING, '"', ["la", " "], '"'),
    "numbers": ({"type": "array", "items": {"type": "integer"}}, "[", ["12", ", "], "]"),
    "strings": ({"type": "array", "items": STRING}, '["', ["ab", "cd", '", "'], '"]'),
    "several": ({"type": "array", "items": {"type": "integer"}}, "[", ["1", ", ", "2", ", ", "3", ", "], "]"),
    "objects": (
        {"type": "array", "items": {"type": "object", "properties": {"a": STRING}, "required": ["a"]}},
        '[{"a": "',
        ["x", '"}', ", ", '{"a": "'],
        "]",
    ),
    "members": ({"type": "object"}, "{", ['"a": ', "1", ", "], "}"),
    "members in pieces": ({"type": "object"}, '{"a": "', ["x", '", "a": "'], '"}'),
    "lists": (
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "[[",
        ["0", ", ", "0", "], ["],
        "]]",
    ),
}


NODE = {
    "type": "object",
    "properties": {
        "name": STRING,
        "child": {"$ref": "#/properties/value"},
        "parts": {"type": "array", "items": {"$ref": "#/properties/value"}},
    },
}
NESTED = {
    "objects": (NODE, ['{"child": '], "}"),
    "objects in pieces": (NODE, ['{"', "child", '":', " "], "}"),
    "objects in lists": (NODE, ['{"name": "x", ', '"parts": ['], "]}"),
    "objects behind others": (NODE, ['{"parts": [{"name": "x"}, '], "]}"),
    "lists": ({"type": "array", "items": {}}, ["["], "]"),
    "anything": ({}, ["[[", '{"a": '], "}]]"),
    "a free object": ({"type": "object"}, ['{"code": '], "}"),
}


@pytest.mark.parametrize("name", NESTED)
def test_values_that_contain_one_another_without_end_are_ended(name: str) -> None:
    schema, pieces, closers = NESTED[name]
    plan = planned(schema)
    reply, _ = repeated(plan, BEGIN, pieces, 200, END)
    assert reply.ended_repetitions == (EndedRepetition(0, "/value"),)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(reply.text)
    assert reply.text.endswith(closers * PERIODS + END)
    assert len(json.loads(reply.message.tool_calls[0].arguments)) == 1


def test_a_token_may_end_short_of_the_space_before_a_value() -> None:
    """As tokens of real models do: `":`, then ` {"`."""
    reply, _ = repeated(planned(NODE), BEGIN.rstrip(), [' {"', "child", '":'], 200, END)
    assert reply.ended_repetitions == (EndedRepetition(0, "/value"),)
    assert '"child": {}' + "}" * PERIODS in reply.text
    assert json.loads(reply.message.tool_calls[0].arguments)["value"]["child"]


def test_of_what_contains_one_another_as_much_is_ended_as_the_schema_lets() -> None:
    schema = {
        "type": "object",
        "properties": {"child": {"$ref": "#/properties/value/properties/child"}, "last": STRING},
        "required": ["last"],
    }
    schema["properties"]["child"] = NODE | {"properties": {"child": {"$ref": "#/properties/value/properties/child"}}}
    reply, _ = repeated(planned(schema), BEGIN, ['{"child": '], 200, ', "last": "x"' + END)
    assert reply.ended_repetitions == (EndedRepetition(0, "/value/child"),)
    assert json.loads(reply.message.tool_calls[0].arguments)["value"]["last"] == "x"


def test_what_contains_one_another_goes_on_where_only_the_model_can_end_it() -> None:
    child = {"anyOf": [{"$ref": "#/properties/value"}, {"type": "integer", "minimum": 5}]}
    node = {"type": "object", "properties": {"child": child}, "required": ["child"]}
    reply = generate_sync(planned(node), Replay([BEGIN, *['{"child": '] * 300]), Sampling(max_tokens=200))
    assert reply.ended_repetitions == ()
    assert reply.finish_reason == "length"


@pytest.mark.parametrize("name", ENDLESS)
def test_a_value_that_only_repeats_itself_is_ended(name: str) -> None:
    schema, begin, pieces, closer = ENDLESS[name]
    plan = planned(schema)
    reply, engine = repeated(plan, BEGIN + begin, pieces, 200, END)
    assert reply.ended_repetitions == (EndedRepetition(0, "/value"),)
    assert reply.text.endswith(closer + END)
    assert plan.constraint is not None
    assert plan.constraint.grammar.accepts(reply.text)
    (call,) = reply.message.tool_calls
    value = json.loads(call.arguments)["value"]
    if isinstance(value, list):
        assert value[-1] in value[:-1]  # no item was cut off
    first, second = engine.calls
    assert "".join(text for text, _ in second.prompt) == first.text + reply.text.removesuffix(END)
    written = reply.usage.completion_tokens - 2  # the pieces, without what comes before them and the end
    assert TOKENS <= written < TOKENS + 64
    assert written / len(pieces) >= PERIODS


def test_an_answer_in_a_schema_is_ended_too() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    request = {
        "messages": [{"role": "user", "content": "Count."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "numbers", "schema": schema}},
    }
    reply, _ = repeated(toolgram.plan(request, CHATML), "[", ["7", ", "], 200, "")
    assert reply.ended_repetitions == (EndedRepetition(None, ""),)
    assert set(json.loads(reply.message.content or "")) == {7}


LEFT_ALONE = {
    "a bounded string": ({"type": "string", "maxLength": 2000}, "value", '"', ["la", " "]),
    "a string of a format": ({"type": "string", "contentMediaType": "text/html"}, "value", '"', ["<b>", " "]),
    "code by its name": (STRING, "newContent", '"', ["la", " "]),
    "code by its description": ({"type": "string", "description": "The SQL to run"}, "value", '"', ["la", " "]),
    "lines": (STRING, "value", '"', ["la", "\\n"]),
    "a bounded list": ({"type": "array", "maxItems": 999, "items": {"type": "integer"}}, "value", "[", ["1", ", "]),
    "a list of code": (
        {"type": "array", "items": {"type": "object", "properties": {"new_string": STRING}}},
        "value",
        '[{"new_string": "',
        ["x", '"}, {"new_string": "'],
    ),
    "a bound by reference": (
        {"anyOf": [{"$ref": "#/properties/value/$defs/few"}, STRING], "$defs": {"few": {"maxLength": 2000}}},
        "value",
        '"',
        ["la", " "],
    ),
    "members of code": ({"type": "object"}, "value", '{"code": "', ["x", '", "code": "']),
    "bounded members": ({"type": "object", "maxProperties": 900}, "value", "{", ['"a": ', "1", ", "]),
    "changes": (STRING, "value", '"', [f"{n} " for n in range(400)]),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_has_a_bound_or_may_be_code_goes_on(name: str) -> None:
    schema, key, begin, pieces = LEFT_ALONE[name]
    plan = planned(schema, key=key)
    begin = BEGIN.replace('"value"', f'"{key}"') + begin
    reply = generate_sync(plan, Replay([begin, *pieces * 200]), Sampling(max_tokens=400))
    assert reply.ended_repetitions == ()
    assert reply.finish_reason == "length"


def test_a_schema_of_very_many_branches_is_given_up_in_time() -> None:
    twice = {f"d{n}": {"anyOf": [{"$ref": f"#/properties/value/$defs/d{n + 1}"}] * 2} for n in range(30)}
    many = {"$ref": "#/properties/value/$defs/d0", "$defs": {**twice, "d30": STRING}}
    reply = generate_sync(planned(many), Replay([BEGIN + '"', *["la", " "] * 200]), Sampling(max_tokens=400))
    assert reply.ended_repetitions == ()


def test_a_list_of_numbers_may_have_any_name() -> None:
    plan = planned({"type": "array", "items": {"type": "integer"}}, key="data")
    reply, _ = repeated(plan, BEGIN.replace("value", "data") + "[", ["0", ", "], 200, END)
    assert reply.ended_repetitions == (EndedRepetition(0, "/data"),)


def test_raw_text_goes_on() -> None:
    begin = "<tool_call>\n<function=set>\n<parameter=value>\n"
    reply = generate_sync(planned(STRING, "qwen_xml"), Replay([begin, *["la", " "] * 200]), Sampling(max_tokens=400))
    assert reply.ended_repetitions == ()
    free = toolgram.plan({"messages": [{"role": "user", "content": "Sing."}]}, CHATML)
    assert generate_sync(free, Replay(["la", " "] * 200)).ended_repetitions == ()


def test_a_request_may_say_that_values_go_on() -> None:
    schema, begin, pieces, _ = ENDLESS["numbers"]
    engine = Replay([BEGIN + begin, *pieces * 200])
    reply = generate_sync(planned(schema, end_repetitions=False), engine, Sampling(max_tokens=390))
    assert reply.ended_repetitions == ()
    assert reply.usage.completion_tokens == 390


def test_a_list_is_not_ended_before_the_schema_lets_it() -> None:
    schema = {"type": "array", "minItems": 100, "items": {"type": "integer"}}
    reply, _ = repeated(planned(schema), BEGIN + "[", ["1", ", "], 200, END)
    assert len(json.loads(reply.message.tool_calls[0].arguments)["value"]) >= 100


def test_a_backslash_is_no_place_for_an_end() -> None:
    reply, _ = repeated(planned(STRING), BEGIN + '"', ["\\", "t"], 200, END)
    assert set(json.loads(reply.message.tool_calls[0].arguments)["value"]) == {"\t"}


def test_the_model_goes_on_after_the_end() -> None:
    """The embedded engine, made to say one word for ever."""
    engine = LlamaCpp(default_model(), context=1024, threads=1)
    try:
        (word,) = engine.tokenize(((" la", True),))
        reply = generate_sync(planned(STRING), engine, Sampling(max_tokens=300, logit_bias={word: 100}))
    finally:
        engine.close()
    assert reply.ended_repetitions == (EndedRepetition(0, "/value"),)
    assert reply.finish_reason == "tool_calls"
    assert set(json.loads(reply.message.tool_calls[0].arguments)["value"].split()) == {"la"}


def test_the_shortest_period_is_found() -> None:
    chance = random.Random(3)
    for _ in range(400):
        unit = [chance.randint(0, 2) for _ in range(chance.randint(1, 20))]
        tokens = [chance.randint(0, 2) for _ in range(chance.randint(0, 40))] + unit * chance.randint(5, 40)
        tokens += [chance.randint(0, 2)] * chance.choice((0, 0, 1))
        assert period(tokens) == slowly(tokens)


def slowly(tokens: Sequence[int]) -> int | None:
    for size in range(1, len(tokens) // PERIODS + 1):
        length = max(PERIODS * size, TOKENS)
        last = tokens[-length:]
        if length <= len(tokens) and last[size:] == last[:-size]:
            return size
    return None


def test_a_repetition_is_over_when_something_else_comes() -> None:
    watched = Repetition()
    watched.feed([1, 2] * 100)
    assert watched.period == 2
    watched.feed([1, 2])
    assert watched.period == 2
    watched.feed([3])
    assert watched.period is None


class Telling(Replay):
    """Tells what a generation cost that is broken off, and how it was chosen at its first token."""

    async def generate(
        self, prompt: Prompt, constraint: SupportsGrammar | None, sampling: Sampling
    ) -> AsyncGenerator[Chunk, None]:
        try:
            async for chunk in super().generate(prompt, constraint, sampling):
                cost = Usage(300, 290, 2, 1, 1, 0.25, 0.5)
                yield chunk if chunk.usage is None else replace(chunk, usage=cost, log_odds=-7.0)
        except BrokenOff:
            yield Chunk("", finish="cancelled", usage=Usage(100, 8, 150, 9, 141, 1.0, 2.0), log_odds=1.5)


def test_what_is_ended_costs_what_all_of_it_cost() -> None:
    schema, begin, pieces, _ = ENDLESS["numbers"]
    engine = Telling([BEGIN + begin, *pieces * 200], [END])
    reply = generate_sync(planned(schema), engine)
    assert reply.ended_repetitions == (EndedRepetition(0, "/value"),)
    assert TOKENS <= reply.usage.completion_tokens < TOKENS + 64  # those that were read
    assert replace(reply.usage, completion_tokens=0) == Usage(100, 8, 0, 1, 142, 1.25, 2.5)
    assert reply.call_log_odds == 1.5
