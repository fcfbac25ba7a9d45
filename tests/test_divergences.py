"""Where the grammar cuts a number or a bounded string short of what the model was about to write, the reply says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import toolgram
from scripted_model import WISH, scripted
from situations import CHATML, WEATHER, tool
from toolgram import Message, ToolCall
from toolgram.chat import Reply, divergences, generate_sync
from toolgram.engines.base import Sampling, TracePoint
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.models.catalog import default_model

STYLES = ("hermes", "qwen_xml", "pythonic")


@dataclass(frozen=True)
class Planted:
    """A value of a property with this schema, up to where the model would like to write `wish`."""

    schema: dict[str, Any]
    value: Any
    before: str
    wish: str
    pointer: str = "/value"


AMOUNT = {"type": "integer"}
PLANTED = (
    Planted({"type": "integer", "minimum": 0, "maximum": 99}, 20, "20", "0"),
    Planted(AMOUNT, 200, "200", "m"),
    Planted(AMOUNT, 35, "35", "%"),
    Planted(AMOUNT, 3, "3", "."),
    Planted({"type": "integer", "minimum": 10, "maximum": 99}, 15, "1", " "),
    Planted({"type": "string", "maxLength": 5}, "Paris", "Paris", "ian"),
    Planted({"enum": ["celsius", "kelvin"]}, "kelvin", "", "f"),
    Planted({"type": "string", "pattern": "^[A-Z]{3}$"}, "PAR", "PAR", "is"),
    Planted({"type": "array", "items": {"type": "integer", "maximum": 9}}, [7, 8], "8", "0", "/value/1"),
    Planted(
        {"type": "object", "properties": {"a/b": AMOUNT}, "required": ["a/b"]}, {"a/b": 4}, "4", "k", "/value/a~1b"
    ),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[LlamaCpp]:
    engine = LlamaCpp(default_model(), context=2048, threads=1)
    yield engine
    engine.close()


def planned(style: str, properties: dict[str, Any]) -> toolgram.Plan:
    parameters = {"type": "object", "properties": properties, "required": ["value"]}
    request = {
        "messages": [{"role": "user", "content": "Do it."}],
        "tools": [tool("set", parameters)],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    return toolgram.plan(request, CHATML, style)


def written(plan: toolgram.Plan, arguments: dict[str, Any]) -> str:
    text = plan.write(Message(None, None, (ToolCall("set", json.dumps(arguments)),)))
    assert text is not None
    return text


def asked(engine: LlamaCpp, plan: toolgram.Plan, text: str, wishes: dict[int, str], **more: Any) -> Reply:
    with scripted(engine, text, wishes):
        reply = generate_sync(plan, engine, Sampling(max_tokens=200, trace=True, **more))
    assert reply.text == text
    return reply


def place(text: str, planted: Planted) -> int:
    """Where the planted wish comes, in the text of a call."""
    value = next(iter(planted.value.values())) if isinstance(planted.value, dict) else planted.value
    value = value[-1] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType] - JSON
    return text.rindex(str(value)) + len(planted.before)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.before}{planted.wish}")
def test_a_planted_divergence_is_found(engine: LlamaCpp, style: str, planted: Planted) -> None:
    plan = planned(style, {"value": planted.schema})
    text = written(plan, {"value": planted.value})
    at = place(text, planted)
    (found,) = asked(engine, plan, text, {at: planted.wish}).divergences
    assert (found.call, found.pointer, found.preferred, found.offset) == (0, planted.pointer, planted.wish, at)
    assert found.removed == pytest.approx(WISH, abs=0.02)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("value", [200, True, ["Ada", 7]])
def test_a_value_that_was_to_be_null_is_another_one(engine: LlamaCpp, style: str, value: Any) -> None:
    items = {"type": ["integer", "string"]}
    plan = planned(style, {"value": {"type": ["integer", "boolean", "array"], "items": items}})
    text = written(plan, {"value": value})
    last = "7" if isinstance(value, list) else str(value) if str(value) in text else "true"
    at = text.rindex(last)
    (found,) = asked(engine, plan, text, {at: "null"}).divergences
    assert (found.pointer, found.preferred) == ("/value/1" if isinstance(value, list) else "/value", "null")


def test_a_text_that_was_to_be_null_is_another_one(engine: LlamaCpp) -> None:
    plan = planned("hermes", {"value": {"type": "string"}, "note": {"type": "string"}})
    text = written(plan, {"value": "Paris", "note": "null"})
    (found,) = asked(engine, plan, text, {text.index(' "Paris"'): " null"}).divergences
    assert (found.pointer, found.preferred) == ("/value", " null")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.before}{planted.wish}")
def test_there_is_none_where_the_model_alone_writes_the_valid_text(
    engine: LlamaCpp, style: str, planted: Planted
) -> None:
    plan = planned(style, {"value": planted.schema})
    reply = asked(engine, plan, written(plan, {"value": planted.value}), {})
    assert reply.divergences == ()
    assert all(point.removed < 0.01 for point in reply.trace)


def test_a_comma_of_thousands_is_no_comma_before_the_next_member(engine: LlamaCpp) -> None:
    """The comma is the model's own, but then it is made to begin with a key."""
    plan = planned("hermes", {"value": AMOUNT, "unit": {"enum": ["EUR"]}})
    text = written(plan, {"value": 200, "unit": "EUR"})
    (found,) = asked(engine, plan, text, {text.index("200,") + 4: "0"}).divergences
    assert (found.pointer, found.preferred) == ("/value", "0")
    plan = planned("hermes", {"value": AMOUNT})
    text = written(plan, {"value": 200})
    (found,) = asked(engine, plan, text, {text.index("}"): ","}).divergences
    assert (found.pointer, found.preferred) == ("/value", ",")


def test_what_changes_no_value_is_no_divergence(engine: LlamaCpp) -> None:
    plan = planned("hermes", {"value": {"type": "integer", "maximum": 99}, "name": {"type": "string", "maxLength": 5}})
    text = written(plan, {"value": 20, "name": "Paris"})
    others = {
        "20": "\n",  # white space
        "20,": "{",  # another member
        '"na': "1",  # another key
        "Par": "\n",  # which a string has escaped
        "Pari": "<|im_end|>",  # the end of the turn
    }
    for before, wish in others.items():
        reply = asked(engine, plan, text, {text.index(before) + len(before): wish})
        assert reply.divergences == (), before


def test_a_value_has_one_divergence_at_most(engine: LlamaCpp) -> None:
    plan = planned("hermes", {"value": {"type": "integer", "minimum": 200, "maximum": 999}})
    text = written(plan, {"value": 205})
    at = text.index("205")
    reply = asked(engine, plan, text, {at + 1: "k", at + 3: "m"})
    assert [(one.preferred, one.offset) for one in reply.divergences] == [("k", at + 1)]
    assert [point.forced for point in reply.trace if point.removed > 0.5] == [False, True]


def test_an_answer_in_a_schema_has_divergences_too(engine: LlamaCpp) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 4}}, "required": ["city"]}
    request = {
        "messages": [{"role": "user", "content": "Where?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}},
    }
    plan = toolgram.plan(request, CHATML)
    text = '{"city": "Pari"}'
    (found,) = asked(engine, plan, text, {text.index("Pari") + 4: "s"}).divergences
    assert (found.call, found.pointer, found.preferred) == (None, "/city", "s")


def test_the_second_call_is_told_from_the_first(engine: LlamaCpp) -> None:
    request = {
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [tool("look", WEATHER)],
        "tool_choice": "required",
    }
    plan = toolgram.plan(request, CHATML, "hermes")
    calls = tuple(ToolCall("look", json.dumps({"city": "Oslo", "days": days})) for days in (3, 14))
    text = plan.write(Message(None, None, calls))
    assert text is not None
    (found,) = asked(engine, plan, text, {text.index("14") + 2: "0"}).divergences
    assert (found.call, found.pointer, found.preferred) == (1, "/days", "0")


def test_the_trace_is_counted_from_where_the_turn_begins(engine: LlamaCpp) -> None:
    """Also where reasoning was closed, so that the engine began anew."""
    request = {
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [tool("look", WEATHER)],
        "tool_choice": "required",
        "reasoning_max_tokens": 2,
    }
    opened = toolgram.ChatTemplate(CHATML.source + "{% if add_generation_prompt %}<think>\n{% endif %}")
    reply = generate_sync(toolgram.plan(request, opened, "hermes"), engine, Sampling(max_tokens=120, trace=True))
    assert reply.usage.reasoning_closed
    assert [point.offset for point in reply.trace] == sorted({point.offset for point in reply.trace})
    assert all(reply.text[point.offset :].startswith(engine.detokenize([point.token])) for point in reply.trace)


def test_there_is_no_trace_unless_it_is_asked_for(engine: LlamaCpp) -> None:
    reply = generate_sync(planned("hermes", {"value": AMOUNT}), engine, Sampling(max_tokens=40))
    assert reply.trace == reply.divergences == ()


def test_what_was_written_as_preferred_is_none() -> None:
    """Where many tokens were ruled out, the likeliest of all may still be the one that was written."""
    plan = planned("hermes", {"value": {"type": "string", "enum": ["Paris", "London"]}})
    text = written(plan, {"value": "Paris"})
    point = TracePoint(0, 7, 7, b"Paris", 0.7, text.index("Paris"))
    message = plan.parse(text)
    assert divergences(plan, message, text, [point]) == ()
    assert divergences(plan, message, text, [replace(point, preferred=8, piece=b"Oslo")])
