"""`plan.parse` takes whatever a model may write: turns of every style and recorded outputs, cut, joined and garbled.

Nothing is raised, it reads the same in pieces, and a word that is put in anywhere is found again in the message.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import toolgram
from conformance.test_chat_cases import body, cases, template
from situations import ANSWER, CHATML, GENERIC, NESTED, PIECES, TOOL_CHOICES, TOOLS, tool
from toolgram import Message
from toolgram.conversation.events import Cut
from toolgram.styles.native import NATIVE
from toolgram.wire.reader import Reader
from toolgram.wire.reader.json_object import ShapeReader
from toolgram.wire.reader.states import InBody
from toolgram.wire.reader.unconstrained import LenientReader

OUTPUTS = int(os.environ.get("TOOLGRAM_FUZZ_OUTPUTS", "1000000"))
"""How many outputs there are of all styles and templates together; the same ones in every run, from fixed seeds."""

STYLES = (*GENERIC, *(style.name for style in NATIVE))
TEMPLATES = tuple(dict.fromkeys(case["template"] for case in cases()))
EACH = OUTPUTS // len((*STYLES, *TEMPLATES)) + 1
CHOICES = (("auto", True, False), ("required", True, False), ("auto", False, True), ("none", True, False))
PLAIN = {key: schema for key, schema in NESTED["properties"].items() if key.isalpha()}
# Not every family can write any name and any key.
PLAIN_TOOLS = [*TOOLS[:2], tool("nested", {"type": "object", "properties": PLAIN})]
LONGEST = 1500
WORD = "ᚠᚢᚦ"  # in no seed and no piece, and written in JSON as it is


@dataclass(frozen=True)
class Source:
    """A plan, and outputs to begin with."""

    plan: toolgram.Plan
    texts: tuple[str, ...]


def sources_of_style(style: str) -> list[Source]:
    """Sentences of a style's grammars, for several tool choices, with and without the schema of an answer."""
    made: list[Source] = []
    for choice, parallel, answer in CHOICES:
        request = {
            "messages": [{"role": "user", "content": "What is the weather?"}],
            "tools": TOOLS if style in GENERIC else PLAIN_TOOLS,
            "tool_choice": TOOL_CHOICES[choice],
            "parallel_tool_calls": parallel,
        }
        if answer:
            request["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}}
        plan = toolgram.plan(request, CHATML, style=style)
        assert plan.constraint is not None
        made.append(Source(plan, tuple(plan.constraint.grammar.sample(seed)[:400] for seed in range(30))))
    return made


def sources_of_template(name: str) -> list[Source]:
    """The recorded outputs of a template, and the same turns as they are written here."""
    made: list[Source] = []
    for case in cases():
        if case["template"] == name:
            plan = toolgram.plan(body(case["request"]), template(name))
            written = plan.write(plan.parse(case["output"]))
            texts = (case["output"],) if written is None else (case["output"], written)
            made.append(Source(plan, tuple(text[:LONGEST] for text in texts)))
    return made


def garbled(texts: Sequence[str], rng: random.Random) -> str:
    """Random pieces, or outputs with pieces put in, cut out, or one grafted on another."""
    if rng.random() < 0.1:
        return "".join(rng.choice(PIECES) for _ in range(rng.randrange(12)))
    text = rng.choice(texts)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randrange(9) :]
            case 2:
                text = text[:at]
            case 3:
                other = rng.choice(texts)
                text = text[:at] + other[rng.randrange(len(other) + 1) :]
            case _:
                text = text[:at] + chr(rng.choice((rng.randrange(0x20), rng.randrange(0xD800), 0x1F600))) + text[at:]
    return text


def read_in_pieces(reader: Reader | LenientReader, text: str, rng: random.Random) -> Message:
    """The message of a text that comes in pieces, now of single characters, now of many."""
    longest = rng.choice((1, 4, 16, 64))
    events, at = [], 0
    while at < len(text):
        size = rng.randint(1, longest)
        events += reader.feed(text[at : at + size])
        at += size
    return Message.from_events([*events, *reader.finish()])


def check_nothing_is_lost(plan: toolgram.Plan, text: str, at: int) -> None:
    """A word put in here is part of the message, or of a turn's end that was cut off before it said anything.

    But for a JSON object that frames a call: the members that the format does not know are read past, as documented.
    """
    reader = plan.reader()
    assert isinstance(reader, Reader)
    events = reader.feed(text[:at])
    state = reader._reading.state
    if isinstance(state, InBody) and isinstance(state.body, ShapeReader):
        return
    events = [*events, *reader.feed(WORD + text[at:]), *reader.finish()]
    message = Message.from_events(events)
    said = [message.content, message.reasoning, *(event.text for event in events if isinstance(event, Cut))]
    said += [part for call in message.tool_calls for part in (call.name, call.arguments, call.id)]
    assert any(WORD in part for part in said if part), (text[:at] + WORD + text[at:], message)


def fuzz(sources: Sequence[Source], outputs: int, seed: int) -> int:
    """Read this many outputs; how many were read to a call at least."""
    rng = random.Random(seed)
    called = 0
    for count in range(outputs):
        source = sources[count % len(sources)]
        plan, text = source.plan, garbled(source.texts, rng)
        lenient = count % 5 == 0
        message = plan.parse(text, lenient=lenient)
        called += bool(message.tool_calls)
        assert read_in_pieces(plan.reader(lenient=lenient), text, rng) == message, text
        if count % 5 == 1:
            check_nothing_is_lost(plan, text, rng.randrange(len(text) + 1))
    return called


@pytest.mark.parametrize("style", STYLES)
def test_some_outputs_of_a_style(style: str) -> None:
    assert fuzz(sources_of_style(style), 300, seed=1) > 15  # where calls are rarest, 35 in the mean


@pytest.mark.parametrize("name", TEMPLATES)
def test_some_outputs_of_a_template(name: str) -> None:
    fuzz(sources_of_template(name), 100, seed=1)


@pytest.mark.fuzz
@pytest.mark.parametrize("style", STYLES)
def test_many_outputs_of_a_style(style: str) -> None:
    assert fuzz(sources_of_style(style), EACH, seed=2) > EACH // 10


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TEMPLATES)
def test_many_outputs_of_a_template(name: str) -> None:
    fuzz(sources_of_template(name), EACH, seed=2)
