"""The three properties for every native style and for discovered ones: what is admitted is read, what can be written is
admitted, chunks do not matter; and the three dialects agree on the sentences."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_oracle import gbnf_accepted
from made_up import discovered
from oracles import ebnf_accepts, lark_accepts
from situations import A_FEW, WEATHER, callable_tools, fed, joined, nasty_text, or_none, plain_text
from toolgram import Message, ToolCall
from toolgram.conversation.events import Event, Finish, Unreadable
from toolgram.planning.plan import same_message
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.styles.base import ToolStyle
from toolgram.styles.native import NATIVE
from toolgram.wire import format as wire
from toolgram.wire.allowed import Calls, allowed
from toolgram.wire.forgotten import without_forgotten
from toolgram.wire.program import compile_format
from toolgram.wire.reader import Reader
from toolgram.wire.unclosed import closed_by_calls

DISCOVERED = discovered()
OWN_WAYS = {f"{style.name}_own_ways": style for style in NATIVE if style.own_ways is not None}
MODES: dict[str, Calls] = {"none": "none", "auto": "any", "required": "only"}
# Marks of the headers that calls and answers have alike.
SHARED = {
    "<|start|>",
    "<|im_start|>",
    "<|channel|>",
    "<|message|>",
    "<|constrain|>",
    ">>>",
    "@@",
    "<|open|>",
    "<|close|>",
    "<|sep|>",
}
LIST = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2}}}
PARAMETERS: dict[str, Any] = {"get": None, "get_weather": WEATHER, "tag": LIST | {"additionalProperties": False}}
STYLES = {
    name: replace(style, wire=style.format(with_tools=True, tools=tuple(PARAMETERS)))
    for name, style in ({style.name: style for style in NATIVE} | DISCOVERED).items()
}
STYLES |= {
    name: ToolStyle(name, style.format(with_tools=True, tools=tuple(PARAMETERS), may_call=True), style.about)
    for name, style in OWN_WAYS.items()
}
# Those in which a call may close the reasoning, whether or not the style has it so by itself.
UNCLOSED = {
    f"{style.name}_unclosed": ToolStyle(style.name, closed, style.about)
    for style in NATIVE
    if (closed := closed_by_calls(style.wire, tuple(PARAMETERS))) != style.wire
}
STYLES |= UNCLOSED
# Those in which a model that may call may forget what opens a call.
STYLES |= {
    f"{name}_forgotten": ToolStyle(style.name, admitted, style.about)
    for name, style in STYLES.items()
    if (admitted := without_forgotten(style.wire)) != style.wire
}
VALIDATORS = {
    name: jsonschema_rs.validator_for({"additionalProperties": False} | (schema or {"maxProperties": 0}))
    for name, schema in PARAMETERS.items()
}


@dataclass(frozen=True)
class Case:
    """A style, and what a request allows in it."""

    style: str
    mode: str
    parallel: bool

    def __str__(self) -> str:
        return f"{self.style}-{self.mode}-{'parallel' if self.parallel else 'single'}"

    @property
    def turn(self) -> CompiledTurn:
        return compiled(self)

    @property
    def call_id(self) -> wire.CallId | None:
        """What the ids on the wire are; None where there are none."""
        ids = [node for node in wire.walk(STYLES[self.style].wire.turn, written=True) if isinstance(node, wire.CallId)]
        return ids[0] if ids else None

    @property
    def most_calls(self) -> int:
        """How many calls the tests make of a turn; some formats have room for one alone."""
        nodes = wire.walk(STYLES[self.style].wire.turn)
        several = any(isinstance(node, wire.Many | wire.Array) and wire.holds(node, wire.Call) for node in nodes)
        return 2 if several and self.parallel else 1

    @property
    def either(self) -> bool:
        """Whether a turn is either calls or an answer."""
        nodes = wire.walk(STYLES[self.style].wire.turn)
        return any(isinstance(node, wire.Alt) and wire.holds(node, wire.Content) for node in nodes)

    @property
    def reasons(self) -> bool:
        """Whether the style has a place for reasoning."""
        return wire.holds(STYLES[self.style].wire.turn, wire.Reasoning)

    def read(self, text: str, cuts: list[int] | None = None) -> list[Event]:
        """The events of a text, fed whole or in pieces of these lengths."""
        return fed(Reader(self.turn.program, expected=self.turn.expected), text, cuts)

    def written(self, message: Message) -> str | None:
        """The message as text, where it reads back equal."""
        text = self.turn.write(message)
        return text if text is not None and same_message(Message.from_events(self.read(text)), message) else None


@cache
def compiled(case: Case) -> CompiledTurn:
    """The turn of a case."""
    calls = MODES[case.mode]
    tools = callable_tools(PARAMETERS if calls != "none" else {})
    return compile_turn(TurnSpec(STYLES[case.style].wire, tools, calls, case.parallel, None, ("<|stop|>",)))


CASES = [Case(style.name, *each) for style in NATIVE for each in itertools.product(MODES, (True, False))]
CASES += [Case(style, "auto", parallel) for style in OWN_WAYS for parallel in (True, False)]
CASES += [Case(style, *each) for style in UNCLOSED for each in (("auto", True), ("required", False))]
# There are many of them, and they are made of the same pieces.
CASES += [Case(style, *each) for style in DISCOVERED for each in (("auto", True), ("required", False))]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


@each_case
def test_every_sentence_reads_back_to_an_allowed_message(case: Case) -> None:
    grammar = case.turn.grammar
    for seed in range(30):
        text = grammar.sample(seed)
        events = case.read(text)
        assert not [event for event in events if isinstance(event, Unreadable)], text
        assert isinstance(events[-1], Finish)
        message = Message.from_events(events)
        assert bool(message.tool_calls) or case.mode != "required"
        assert len(message.tool_calls) <= (0 if case.mode == "none" else 1 if not case.parallel else 10**6)
        for call in message.tool_calls:
            VALIDATORS[call.name].validate(json.loads(call.arguments))
        again = case.written(message)
        if again is None:  # two pieces of reasoning may make a mark where they meet
            assert case.style in ("harmony", "found_openai_gpt_oss_120b"), text
        else:
            assert grammar.accepts(again), again


@each_case
def test_the_dialects_agree(case: Case) -> None:
    grammar = case.turn.grammar
    rng = random.Random(str(case))
    sentences = [text for text in map(grammar.sample, range(10)) if len(text) < 1500]
    cut = [text[: rng.randrange(len(text) + 1)] + text[rng.randrange(len(text) + 1) :] for text in sentences]
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    texts = {*sentences, *cut}
    accepted = {text for text in texts if grammar.accepts(text)}
    assert {text for text in texts if lark_accepts(lark, text)} == accepted
    assert {text for text in texts if ebnf_accepts(ebnf, text)} == accepted
    assert gbnf_accepted(grammar.to("gbnf"), texts) == accepted


@pytest.mark.parametrize("style", STYLES)
def test_without_calls_no_mark_of_a_call_is_left(style: str) -> None:
    turn = STYLES[style].wire.turn
    left = allowed(turn, "none")
    assert left is not None
    parts = [part for part in wire.walk(turn) if isinstance(part, wire.Opt | wire.Many) and wire.holds(part, wire.Call)]
    of_calls = {mark for part in parts if not wire.holds(part, wire.Content) for mark in wire.walk(part)}
    shared = {mark for part in wire.walk(left) for mark in wire.walk(part)} & of_calls
    opening = {mark.text for mark in shared if isinstance(mark, wire.Mark)} - SHARED
    assert not opening


arguments = {
    "get": st.just({}),
    "get_weather": st.fixed_dictionaries(
        {"city": nasty_text},
        optional={"days": st.integers(1, 14), "unit": st.sampled_from(["C", "F", '"', "</tool_call>"])},
    ),
    "tag": st.fixed_dictionaries({}, optional={"tags": st.lists(nasty_text, max_size=2)}),
}


@st.composite
def messages(draw: st.DrawFn, case: Case, text: st.SearchStrategy[str]) -> Message:
    """A message that the request allows, with these texts in its free parts."""
    calls: list[ToolCall] = []
    if case.mode == "required" or (case.mode == "auto" and draw(st.booleans())):
        for _ in range(draw(st.integers(1, case.most_calls))):
            name = draw(st.sampled_from(list(PARAMETERS)))
            call_id = None
            if case.call_id is not None:
                least, most = case.call_id.length, case.call_id.longest
                digits = draw(st.text("0123456789", min_size=least, max_size=most))
                call_id = case.call_id.form.format(name=name, id=digits)
            calls.append(ToolCall(name, json.dumps(draw(arguments[name])), call_id))
    silent = case.mode == "required" or (calls and case.either)
    content = None if silent else draw(or_none(text))
    thought = draw(or_none(text)) if case.reasons else None
    return Message(content or None, thought or None, tuple(calls))


@each_case
@A_FEW
@given(data=st.data())
def test_what_can_be_written_is_admitted(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages(case, nasty_text))
    text = case.written(message)
    if text is not None:
        assert case.turn.grammar.accepts(text), text


@cache
def without_markers(style: str) -> st.SearchStrategy[str]:
    """Texts without the marks of a style.

    They may not end with what the next mark begins with, where that mark repeats it: ">" before Functionary's ">>>".
    Nor may they begin as a bare call does.
    """
    program = compile_format(STYLES[style].wire.turn)
    marks, first = program.markers("content"), program.first_characters
    ends = tuple(mark[:at] for mark in marks for at in range(1, len(mark)) if (mark[:at] + mark).index(mark) < at)
    return plain_text.map(lambda text: text.lstrip(first)).filter(
        lambda text: not text.endswith(ends) and not any(mark in text for mark in marks)
    )


@each_case
@A_FEW
@given(data=st.data())
def test_a_message_without_markers_can_be_written(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages(case, without_markers(case.style)))
    plain = tuple(replace(call, arguments="{}") for call in message.tool_calls if call.name != "get_weather")
    message = replace(message, tool_calls=plain)
    if case.mode == "required" and not plain:
        return
    text = case.written(message)
    assert text is not None, (message, case.turn.write(message))
    assert case.turn.grammar.accepts(text), text


@each_case
@A_FEW
@given(data=st.data())
def test_reading_does_not_depend_on_the_chunks(case: Case, data: st.DataObject) -> None:
    text = case.turn.grammar.sample(data.draw(st.integers(0, 49)))
    cut = data.draw(st.integers(0, len(text)))
    text = text[:cut] + data.draw(nasty_text) + text[cut:]
    whole = case.read(text)
    assert joined(whole) == joined(case.read(text, [1] * len(text)))
    assert joined(whole) == joined(case.read(text, data.draw(st.lists(st.integers(1, 8), max_size=len(text)))))
