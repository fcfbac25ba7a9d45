"""The three properties of every style: what the grammar admits is read, what can be written is admitted, chunks do not
matter."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situations import (
    A_FEW,
    ANSWER,
    NESTED,
    WEATHER,
    Situation,
    fed,
    joined,
    nasty_text,
    or_none,
    plain_text,
    situations,
)
from toolgram import Message, ToolCall
from toolgram.conversation.events import Cut, Event, Finish, Unreadable
from toolgram.planning.plan import same_message

ALL = situations()
each_situation = pytest.mark.parametrize("situation", ALL, ids=str)

PARAMETERS: dict[str, Any] = {
    "get": {"maxProperties": 0},
    "get_weather": WEATHER | {"additionalProperties": False},
    'od"d\\näme 𝒻': NESTED
    | {
        "additionalProperties": False,
        "properties": NESTED["properties"] | {"point": NESTED["properties"]["point"] | {"additionalProperties": False}},
    },
}
VALIDATORS = {name: jsonschema_rs.validator_for(schema) for name, schema in PARAMETERS.items()}
ANSWER_VALIDATOR = jsonschema_rs.validator_for(ANSWER | {"additionalProperties": False})


def read(situation: Situation, text: str, cuts: list[int] | None = None) -> list[Event]:
    """The events of a text, fed whole or in pieces of these lengths."""
    return fed(situation.plan.reader(), text, cuts)


def check_allowed(situation: Situation, message: Message) -> None:
    """The message is one that the request allows."""
    calls = message.tool_calls
    if situation.choice in ("required", "named"):
        assert calls
        assert not message.content
    if situation.choice == "none" or not situation.parallel:
        assert len(calls) <= (0 if situation.choice == "none" else 1)
    for call in calls:
        assert call.name in situation.tool_names
        VALIDATORS[call.name].validate(json.loads(call.arguments))
    if situation.answer and not calls:
        assert message.content is not None
        ANSWER_VALIDATOR.validate(json.loads(message.content))
    if situation.answer and calls:
        assert not message.content


@each_situation
def test_every_sentence_reads_back_to_an_allowed_message(situation: Situation) -> None:
    grammar = situation.plan.constraint.grammar
    for seed in range(60):
        text = grammar.sample(seed)
        events = read(situation, text)
        assert not [event for event in events if isinstance(event, Unreadable)], text
        assert isinstance(events[-1], Finish)
        assert events[-1].complete
        message = Message.from_events(events)
        check_allowed(situation, message)
        again = situation.plan.write(message)
        assert again is not None
        assert grammar.accepts(again)
        assert same_message(situation.plan.parse(again), message, json_content=situation.answer)


arguments = {
    "get": st.just({}),
    "get_weather": st.fixed_dictionaries(
        {"city": nasty_text},
        optional={"days": st.integers(1, 14), "unit": st.sampled_from(["C", "F", '"', "</tool_call>"])},
    ),
    'od"d\\näme 𝒻': st.fixed_dictionaries(
        {},
        optional={
            "items": st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=5), max_size=3),
            "point": st.fixed_dictionaries(
                {},
                optional={
                    "x": st.integers(-(10**18), 10**18),
                    "y": st.floats(-1e12, 1e12, allow_nan=False).map(lambda x: round(x, 3)),
                },
            ),
            'k"ey': st.booleans(),
        },
    ),
}


@st.composite
def calls(draw: st.DrawFn, situation: Situation) -> ToolCall:
    name = draw(st.sampled_from(situation.tool_names))
    return ToolCall(name, json.dumps(draw(arguments[name]), ensure_ascii=draw(st.booleans())))


@st.composite
def messages(draw: st.DrawFn, situation: Situation, texts: st.SearchStrategy[str]) -> Message:
    """A message that the request allows, with these texts in its free parts."""
    may_call = situation.choice != "none"
    must_call = situation.choice in ("required", "named")
    made: list[ToolCall] = []
    if must_call or (may_call and draw(st.booleans())):
        made = draw(st.lists(calls(situation), min_size=1, max_size=3 if situation.parallel else 1))
    content = None
    if situation.answer and not made:
        content = json.dumps({"answer": draw(nasty_text)} | draw(st.sampled_from([{}, {"score": 0.5}, {"score": 1}])))
    elif not must_call and not (situation.answer and made):
        content = draw(or_none(texts))
    if situation.style == "thoughtful_steps" and made:
        content = None  # its format has no place for text beside calls, other than the thought
    thought = draw(nasty_text) if situation.style == "thoughtful_steps" else None
    return Message(content or None, thought or None, tuple(made))


@each_situation
@A_FEW
@given(data=st.data())
def test_what_can_be_written_is_admitted(situation: Situation, data: st.DataObject) -> None:
    message = data.draw(messages(situation, nasty_text))
    plan = situation.plan
    if plan.writable(message):
        text = plan.write(message)
        assert text is not None
        assert plan.constraint.grammar.accepts(text), text


@each_situation
@A_FEW
@given(data=st.data())
def test_a_message_without_markers_can_be_written(situation: Situation, data: st.DataObject) -> None:
    message = data.draw(messages(situation, plain_text))
    plan = situation.plan
    assert plan.writable(message), (plan.write(message), plan.parse(plan.write(message) or ""))
    assert plan.constraint.grammar.accepts(plan.write(message) or "")


@each_situation
@A_FEW
@given(data=st.data())
def test_reading_does_not_depend_on_the_chunks(situation: Situation, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        text = data.draw(nasty_text)
    else:
        text = situation.plan.constraint.grammar.sample(data.draw(st.integers(0, 99)))
        cut = data.draw(st.integers(0, len(text)))
        text = text[:cut] + data.draw(nasty_text) + text[cut:]
    whole = read(situation, text)
    by_character = read(situation, text, [1] * len(text))
    cuts = data.draw(st.lists(st.integers(1, 8), max_size=len(text)))
    assert joined(whole) == joined(by_character) == joined(read(situation, text, cuts))
    assert Message.from_events(whole) == situation.plan.parse(text) == Message.from_events(by_character)


@each_situation
def test_all_text_is_kept(situation: Situation) -> None:
    """What is no call is content, to the letter, or the beginning of a frame that was cut off."""
    rng = random.Random(str(situation))
    for _ in range(20):
        text = "".join(rng.choice('abc <>\n\\"{}') for _ in range(rng.randrange(30)))
        events = read(situation, text)
        message = Message.from_events(events)
        cut = "".join(event.text for event in events if isinstance(event, Cut))
        assert not message.tool_calls
        assert ((message.content or "") + cut).strip() == text.strip()
