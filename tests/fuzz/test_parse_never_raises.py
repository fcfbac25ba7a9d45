"""`plan.parse` takes whatever a model may write: random text, and sentences of the grammar cut, joined and garbled."""

from __future__ import annotations

import os
import random

import pytest

from situations import GENERIC, PIECES, TOOL_CHOICES, Situation
from toolgram import Message

OUTPUTS = int(os.environ.get("TOOLGRAM_FUZZ_OUTPUTS", "100000"))
"""How many outputs for each style; the same number in every run, from fixed seeds."""


def garbled(texts: list[str], rng: random.Random) -> str:
    """Random pieces, or sentences with pieces put in, cut out, or one grafted on another."""
    if rng.random() < 0.2:
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


def fuzz(style: str, outputs: int, seed: int) -> int:
    """Parse this many outputs in all situations of a style; how many were read to a call at least."""
    rng = random.Random(seed)
    situations = [Situation(style, choice, parallel, answer) for choice in TOOL_CHOICES for parallel, answer in _FLAGS]
    texts = {each: [each.plan.constraint.grammar.sample(n)[:400] for n in range(40)] for each in situations}
    called = 0
    for count in range(outputs):
        situation = situations[count % len(situations)]
        text = garbled(texts[situation], rng)
        message = situation.plan.parse(text)
        called += bool(message.tool_calls)
        if count % 20 == 0:  # in pieces it must read the same
            reader, events, at = situation.plan.reader(), [], 0
            while at < len(text):
                size = rng.randrange(1, 6)
                events += reader.feed(text[at : at + size])
                at += size
            assert Message.from_events([*events, *reader.finish()]) == message, text
    return called


_FLAGS = [(True, False), (False, True)]


@pytest.mark.parametrize("style", GENERIC)
def test_some_outputs(style: str) -> None:
    assert fuzz(style, 2000, seed=1) > 200


@pytest.mark.fuzz
@pytest.mark.parametrize("style", GENERIC)
def test_many_outputs(style: str) -> None:
    assert fuzz(style, OUTPUTS, seed=2) > OUTPUTS // 10
