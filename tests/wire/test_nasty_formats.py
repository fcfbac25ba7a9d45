"""The three properties for the formats that are furthest from plain JSON, as data below any template.

Harmony has its headers, Gemma 4 its own string quotes and bare keys, LFM2 Python calls; Hermes stands for the rest.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_oracle import gbnf_accepted
from oracles import ebnf_accepts, lark_accepts
from situations import callable_tools, fed, joined, nasty_text, or_none, plain_text
from toolgram import Message, ToolCall
from toolgram.conversation.events import Event, Finish, Unreadable
from toolgram.grammar.constraint import Constraint
from toolgram.planning.plan import same_message
from toolgram.planning.turn import CompiledTurn, compile_turn
from toolgram.planning.turn_spec import TurnSpec
from toolgram.styles.native.gemma4 import GEMMA_4
from toolgram.styles.native.harmony import HARMONY
from toolgram.styles.native.hermes import HERMES
from toolgram.styles.native.pythonic import LFM2
from toolgram.wire.allowed import Calls
from toolgram.wire.reader import Reader

FORMATS = {style.name: style.wire for style in (HARMONY, GEMMA_4, LFM2, HERMES)}
QUOTE = '<|"|>'
LANGUAGES = ["de", 'e"n\n', "</tool_call>", "<|end|>", "'", ")]", 1, None, True]
PARAMETERS: dict[str, Any] = {
    "ping": None,
    "ping_all": {
        "type": "object",
        "properties": {
            "from": {"type": "string"},
            "limit": {"type": "integer", "minimum": -5, "maximum": 100},
            "exact": {"type": "boolean"},
            "language": {"enum": LANGUAGES},
        },
        "required": ["from"],
    },
    "update": {
        "type": "object",
        "properties": {
            "fields": {
                "type": "array",
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {"key": {"type": ["string", "null"]}, "value": {"type": ["number", "boolean"]}},
                    "required": ["value"],
                    "additionalProperties": False,
                },
            },
            "größe": {"type": ["null", "string", "integer"]},
        },
        "additionalProperties": False,
    },
    "store": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "more": {"type": "object"}},
        "additionalProperties": {"type": ["string", "boolean"]},
    },
}
VALIDATORS = {
    name: jsonschema_rs.validator_for(
        {"maxProperties": 0} if schema is None else {"additionalProperties": False} | schema
    )
    for name, schema in PARAMETERS.items()
}

MODES: dict[str, tuple[Calls, list[str]]] = {
    "none": ("none", []),
    "auto": ("any", list(PARAMETERS)),
    "required": ("only", list(PARAMETERS)),
    "named": ("only", ["update"]),
}


@dataclass(frozen=True)
class Case:
    """A format, and what a request allows in it."""

    style: str
    mode: str
    parallel: bool

    def __str__(self) -> str:
        return f"{self.style}-{self.mode}-{'parallel' if self.parallel else 'single'}"

    @property
    def tools(self) -> list[str]:
        """The tools that may be called."""
        return MODES[self.mode][1]

    @property
    def turn(self) -> CompiledTurn:
        return compiled(self)

    def read(self, text: str, cuts: list[int] | None = None) -> list[Event]:
        """The events of a text, fed whole or in pieces of these lengths."""
        return fed(Reader(self.turn.program), text, cuts)

    def written(self, message: Message) -> str | None:
        """The message as text, where it reads back equal."""
        text = self.turn.write(message)
        return text if text is not None and same_message(Message.from_events(self.read(text)), message) else None


@cache
def compiled(case: Case) -> CompiledTurn:
    """The turn of a case."""
    tools = callable_tools({name: PARAMETERS[name] for name in case.tools}, strict=True)
    calls = MODES[case.mode][0]
    return compile_turn(TurnSpec(FORMATS[case.style], tools, calls, case.parallel, None, ("<|im_end|>", "<|return|>")))


CASES = [Case(*each) for each in itertools.product(FORMATS, MODES, (True, False))]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


def check_allowed(case: Case, message: Message) -> None:
    """The message is one that the request allows."""
    calls = message.tool_calls
    if MODES[case.mode][0] == "only":
        assert calls
        assert not message.content
    if case.mode == "none" or not case.parallel:
        assert len(calls) <= (0 if case.mode == "none" else 1)
    for call in calls:
        assert call.name in case.tools
        VALIDATORS[call.name].validate(json.loads(call.arguments))


@each_case
def test_every_sentence_reads_back_to_an_allowed_message(case: Case) -> None:
    grammar = case.turn.grammar
    for seed in range(60):
        text = grammar.sample(seed)
        events = case.read(text)
        assert not [event for event in events if isinstance(event, Unreadable)], text
        assert isinstance(events[-1], Finish)
        assert events[-1].complete
        message = Message.from_events(events)
        check_allowed(case, message)
        again = case.written(message)
        assert again is not None, text
        assert grammar.accepts(again), again


@each_case
def test_the_dialects_take_every_sentence(case: Case) -> None:
    grammar = case.turn.grammar
    sentences = {text for text in map(grammar.sample, range(12)) if len(text) < 1500}
    lark, ebnf = grammar.to("lark"), grammar.to("ebnf")
    for text in sentences:
        assert lark_accepts(lark, text), text
        assert ebnf_accepts(ebnf, text), text
    assert gbnf_accepted(grammar.to("gbnf"), sentences) == sentences


@cache
def texts(case: Case) -> st.SearchStrategy[str]:
    """What a string may say: anything, but Gemma's has no way to say its own quote."""
    return nasty_text.filter(lambda text: QUOTE not in text) if case.style == "gemma_4" else nasty_text


@cache
def arguments(name: str, text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Valid arguments of a tool, with these texts as strings."""
    number = st.integers(-(10**18), 10**18) | st.floats(-1e9, 1e9).map(lambda x: round(x, 3))
    keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(lambda key: key not in ("id", "more"))
    field = st.fixed_dictionaries({"value": number | st.booleans()}, optional={"key": text | st.none()})
    by_name: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "ping": st.just({}),
        "ping_all": st.fixed_dictionaries(
            {"from": text},
            optional={
                "limit": st.integers(-5, 100),
                "exact": st.booleans(),
                "language": st.sampled_from(LANGUAGES),
            },
        ),
        "update": st.fixed_dictionaries(
            {}, optional={"fields": st.lists(field, max_size=3), "größe": st.none() | text | st.integers(-9, 9)}
        ),
        "store": st.tuples(
            st.dictionaries(keys, text | st.booleans(), max_size=2),
            st.fixed_dictionaries({}, optional={"id": text, "more": st.dictionaries(keys, number | text, max_size=2)}),
        ).map(_together),
    }
    return by_name[name]


def _together(parts: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    return parts[0] | parts[1]


@cache
def tool_names(case: Case) -> st.SearchStrategy[list[str]]:
    """The tools that a message may call."""
    least, most = {"none": (0, 0), "any": (0, 3), "only": (1, 3)}[MODES[case.mode][0]]
    return st.lists(st.sampled_from(case.tools or [""]), min_size=least, max_size=min(most, 3 if case.parallel else 1))


@st.composite
def messages(draw: st.DrawFn, case: Case, free: st.SearchStrategy[str]) -> Message:
    """A message that the request allows, with these texts in its free parts."""
    names = draw(tool_names(case))
    calls = [ToolCall(name, json.dumps(draw(arguments(name, texts(case))), ensure_ascii=False)) for name in names]
    content = None if MODES[case.mode][0] == "only" else draw(or_none(free))
    thought = draw(or_none(free)) if case.style == "harmony" else None
    return Message(content or None, thought or None, tuple(calls))


@each_case
@given(data=st.data())
def test_what_can_be_written_is_admitted(case: Case, data: st.DataObject) -> None:
    text = case.written(data.draw(messages(case, nasty_text)))
    assert text is None or case.turn.grammar.accepts(text), text


# Before a call of Hermes a line break belongs to the format.
within_lines = plain_text.filter(lambda text: not text.endswith("\n"))


@each_case
@given(data=st.data())
def test_a_message_without_markers_can_be_written(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages(case, within_lines))
    text = case.written(message)
    assert text is not None, (case.turn.write(message), Message.from_events(case.read(case.turn.write(message) or "")))
    assert case.turn.grammar.accepts(text), text


@each_case
@given(data=st.data())
def test_reading_does_not_depend_on_the_chunks(case: Case, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        text = data.draw(nasty_text)
    else:
        text = case.turn.grammar.sample(data.draw(st.integers(0, 99)))[:2000]
        cut = data.draw(st.integers(0, len(text)))
        text = text[:cut] + data.draw(nasty_text) + text[cut:]
    whole = joined(case.read(text))
    cuts = data.draw(st.lists(st.integers(1, 8), max_size=len(text)))
    assert whole == joined(case.read(text, [1] * len(text))) == joined(case.read(text, cuts))


def test_the_quotes_of_gemma_are_marks_that_a_vocabulary_may_have_as_tokens() -> None:
    bound = Constraint(Case("gemma_4", "auto", parallel=True).turn.grammar).bind({QUOTE: 52})
    assert "<[52]>" in bound.grammar.to("gbnf")
    assert QUOTE not in bound.grammar.to("gbnf")
