"""The three properties, and that the dialects agree, where a turn is a call, perhaps in the model's own way, or an
answer in a schema: also where what a schema admits reads as a call."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts, structural_tag_accepts
from situations import A_FEW, CHATML, WEATHER, fed, joined, nasty_text, or_none, tool
from toolgram import Message, ToolCall
from toolgram.conversation.events import Finish, Unreadable
from toolgram.grammar.constraint import Constraint
from toolgram.planning.plan import same_message
from toolgram.styles.base import ToolStyle
from toolgram.styles.generic import COMPACT
from toolgram.styles.native.hermes import HERMES
from toolgram.styles.own_calls import with_own_calls

KEY = {"type": "object", "properties": {"key": {"type": "string"}}, "additionalProperties": False}
TOOLS = {"get_weather": WEATHER | {"additionalProperties": False}, "get": KEY}
NAMES = ["get", "get_weather", "gets", "Ada", ""]
ARGUMENTS: Any = {"type": "object", "additionalProperties": False, "properties": {"city": {"type": "string"}}}
NAMED: dict[str, Any] = {"name": {"type": "string"}, "arguments": ARGUMENTS, "n": {"type": ["integer", "null"]}}
SCHEMAS: dict[str, Any] = {
    "plain": {"type": "object", "properties": {"city": {"type": "string"}, "n": NAMED["n"]}, "required": ["city"]},
    "named": {"type": "object", "properties": NAMED, "required": ["name"]},
    "a call": {"type": "object", "properties": NAMED, "required": ["name", "arguments"]},
    "a call of another": {
        "type": "object",
        "properties": {"name": {"enum": ["get", "gets"]}, "arguments": {"type": "object", "maxProperties": 0}},
        "required": ["name", "arguments"],
    },
    "other order": {
        "type": "object",
        "properties": {"arguments": ARGUMENTS, "name": {"type": "string"}},
        "required": ["arguments", "name"],
    },
    "several": {
        "anyOf": [{"type": "array", "items": {"enum": NAMES}}, {"type": "number"}, {"enum": [None, "```", {}]}]
    },
    "any": {"type": "object"},
}
VALIDATORS = {name: jsonschema_rs.validator_for(schema) for name, schema in {**TOOLS, **SCHEMAS}.items()}
STYLES: dict[str, str | ToolStyle] = {
    "qwen_coder": "qwen_coder",
    "compact": with_own_calls(COMPACT),
    "thinking": with_own_calls(HERMES),
    "llama_3": "llama_3",
}


@dataclass(frozen=True)
class Case:
    """A style, a schema of answers, and whether there may be several calls."""

    style: str
    schema: str
    parallel: bool

    def __str__(self) -> str:
        return f"{self.style}-{self.schema}-{'parallel' if self.parallel else 'single'}"

    @property
    def plan(self) -> toolgram.Plan:
        return planned(self)

    @property
    def constraint(self) -> Constraint:
        assert self.plan.constraint is not None
        return self.plan.constraint

    def allows(self, message: Message) -> bool:
        """Whether the message is calls or an answer as they are asked for."""
        for call in message.tool_calls:
            if not VALIDATORS[call.name].is_valid(json.loads(call.arguments)):
                return False
        if message.tool_calls:
            return not message.content and (self.parallel or len(message.tool_calls) == 1)
        return VALIDATORS[self.schema].is_valid(json.loads(message.content or ""))


@cache
def planned(case: Case) -> toolgram.Plan:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [tool(name, schema) for name, schema in TOOLS.items()],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMAS[case.schema]}},
        "parallel_tool_calls": case.parallel,
    }
    if case.style == "thinking":
        body["reasoning_max_tokens"] = 100
    return toolgram.plan(body, CHATML, STYLES[case.style])


CASES = [Case(style, schema, schema != "named") for style in STYLES for schema in SCHEMAS]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


def reads_as_call(case: Case, value: Any) -> bool:
    """Whether a value is a call to the reader: where a mark begins it, whatever its arguments are."""
    if not (isinstance(value, dict) and value.get("name") in list(TOOLS)):
        return False
    return isinstance(value.get("arguments"), dict) if case.style == "llama_3" else "arguments" in value


@each_case
def test_every_sentence_reads_back_to_an_allowed_message(case: Case) -> None:
    grammar = case.constraint.grammar
    for seed in range(80):
        text = grammar.sample(seed)
        events = fed(case.plan.reader(), text, None)
        assert not [event for event in events if isinstance(event, Unreadable)], text
        assert isinstance(events[-1], Finish)
        assert events[-1].complete, text
        message = Message.from_events(events)
        assert case.allows(message), text
        again = case.plan.write(message)
        assert again is not None, text
        assert grammar.accepts(again)
        assert same_message(case.plan.parse(again), message, json_content=True)


answers = {
    "plain": st.fixed_dictionaries({"city": nasty_text}, optional={"n": st.none() | st.integers(-9, 9)}),
    "named": st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES)},
        optional={"arguments": st.fixed_dictionaries({}, optional={"city": nasty_text}), "n": st.integers(0, 9)},
    ),
    "a call": st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES), "arguments": st.fixed_dictionaries({}, optional={"city": nasty_text})}
    ),
    "a call of another": st.sampled_from([{"name": name, "arguments": {}} for name in ("get", "gets")]),
    "other order": st.fixed_dictionaries(
        {"arguments": st.fixed_dictionaries({}, optional={"city": nasty_text}), "name": st.sampled_from(NAMES)}
    ),
    "several": st.lists(st.sampled_from(NAMES), max_size=3) | st.integers(-9, 9) | st.sampled_from([None, "```", {}]),
    "any": st.dictionaries(
        st.sampled_from(["name", "arguments", "n", "city"]),
        st.sampled_from([*NAMES, {}, {"key": "a"}, None, [1]]),
    ),
}
arguments = {
    "get": st.fixed_dictionaries({}, optional={"key": nasty_text}),
    "get_weather": st.fixed_dictionaries({"city": nasty_text}, optional={"days": st.integers(1, 14)}),
}


@st.composite
def messages(draw: st.DrawFn, case: Case) -> Message:
    """Calls, or an answer that the schema admits."""
    thought = (
        draw(or_none(st.sampled_from(["Hm.", "So: ```json", '{"name": "get"']))) if case.style == "thinking" else None
    )
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(list(TOOLS)), min_size=1, max_size=2 if case.parallel else 1))
        calls = tuple(ToolCall(name, json.dumps(draw(arguments[name]))) for name in names)
        return Message(None, thought, calls if case.style != "llama_3" else calls[:1])
    return Message(json.dumps(draw(answers[case.schema]), ensure_ascii=False), thought)


@each_case
@A_FEW
@given(data=st.data())
def test_every_message_but_what_reads_as_a_call_is_written_as_a_sentence(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages(case))
    text = case.plan.write(message)
    called = not message.tool_calls and reads_as_call(case, json.loads(message.content or ""))
    assert case.plan.writable(message) is not called
    assert (text is not None and case.constraint.grammar.accepts(text)) is not called


@each_case
@A_FEW
@given(data=st.data())
def test_reading_does_not_depend_on_the_chunks(case: Case, data: st.DataObject) -> None:
    text = case.constraint.grammar.sample(data.draw(st.integers(0, 99)))
    cut = data.draw(st.integers(0, len(text)))
    text = (
        text[:cut]
        + data.draw(nasty_text | st.sampled_from(["", "```", "```json\n", "{", '{"name": "get']))
        + text[cut:]
    )
    whole = fed(case.plan.reader(), text, None)
    cuts = data.draw(st.lists(st.integers(1, 8), max_size=len(text)))
    assert joined(whole) == joined(fed(case.plan.reader(), text, [1] * len(text)))
    assert joined(whole) == joined(fed(case.plan.reader(), text, cuts))


@each_case
def test_the_dialects_agree_on_sentences_and_on_near_misses(case: Case) -> None:
    grammar = case.constraint.grammar
    rng = random.Random(str(case))
    sentences = [text for text in map(grammar.sample, range(16)) if len(text) < 1500]
    texts = {*sentences}
    for text in sentences:
        at, size = rng.randrange(len(text) + 1), rng.randrange(4)
        texts.add(text[:at] + rng.choice(["", '"', "```", "\n", '"get"', "arguments"]) + text[at + size :])
        texts.add(text.replace('"gets"', '"get"').replace("city", "key"))
        texts.add(text.removeprefix("```json\n").removesuffix("\n```"))
        texts.add(f"```json\n{text}\n```")
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    tag = case.constraint.structural_tag()
    accepted = {text for text in texts if grammar.accepts(text)}
    assert {text for text in texts if lark_accepts(lark, text)} == accepted
    assert {text for text in texts if ebnf_accepts(ebnf, text)} == accepted
    assert {text for text in texts if structural_tag_accepts(tag, text)} == accepted
    assert gbnf_accepted(grammar.to("gbnf"), texts) == accepted
