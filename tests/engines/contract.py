"""What every engine must hold, whatever stands behind it: `CHECKS`, which `test_contract.py` runs on each."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

import toolgram
from situations import CHATML, WEATHER, tool
from toolgram.chat import Reply, generate, stream
from toolgram.engines.base import BrokenOff, Chunk, Engine, Prompt, Sampling
from toolgram.errors import EngineError
from toolgram.grammar.constraint import Constraint

CALLS: Any = {"tools": [tool("get_weather", WEATHER)], "tool_choice": "required", "parallel_tool_calls": False}
ITEM: Any = {
    "type": "object",
    "properties": {"sku": {"type": "string", "pattern": r"^[A-Z]{3}-\d{2}$"}, "n": {"type": "integer", "minimum": 1}},
    "required": ["sku", "n"],
    "additionalProperties": False,
}
ORDER: Any = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": ITEM, "minItems": 1, "maxItems": 2},
        "note": {"type": ["string", "null"], "maxLength": 12},
        "when": {"type": "string", "format": "date"},
        "kind": {"enum": ["a", 'é"', "日本"]},
    },
    "required": ["items", "when", "kind"],
    "additionalProperties": False,
}
UNICODE = "é日本🎉\u2028\x85naïve"
CHOICES = ["red", "green", "blue", "grün"]
_PATIENCE = 240.0  # for many answers on a busy machine


@dataclass(frozen=True)
class Peer:
    """An engine, and what it cannot be asked: `context` is how long a prompt may be; None: as long as one likes.

    `invents`: it writes on without a grammar too, and a seed decides what.
    """

    engine: Engine
    context: int | None
    invents: bool = True


def asked(question: str) -> Prompt:
    """A question in ChatML."""
    return (
        ("<|im_start|>user\n", True),
        (question, False),
        ("<|im_end|>\n<|im_start|>assistant\n", True),
    )


SEA = asked("Write a poem about the sea.")


def one_of(*texts: str) -> Constraint:
    """One of these texts, as JSON."""
    return Constraint(toolgram.schema_grammar({"enum": list(texts)}))


async def said(peer: Peer, prompt: Prompt, constraint: Constraint | None, sampling: Sampling) -> tuple[str, Chunk]:
    """The whole text and the last chunk. Only the last has an end and a cost; tokens are counted once."""
    async with aclosing(peer.engine.generate(prompt, constraint, sampling)) as generator:
        chunks = [chunk async for chunk in generator]
    assert [chunk.finish is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert all(chunk.usage is None for chunk in chunks[:-1])
    text = "".join(chunk.text for chunk in chunks)
    assert "�" not in text
    text.encode()
    return text, chunks[-1]


async def repeats_with_a_seed(peer: Peer) -> None:
    """The same seed gives the same answer, under a grammar and without; temperature 0 needs none."""
    for temperature, seed in ((1.0, 7), (0.0, None)):
        sampling = Sampling(max_tokens=16, temperature=temperature, seed=seed)
        for constraint in (None, Constraint(toolgram.schema_grammar({"type": "string", "pattern": "^[a-z ]{5,9}$"}))):
            answers = {(await said(peer, SEA, constraint, sampling))[0] for _ in range(3)}
            assert len(answers) == 1, answers


async def differs_with_the_seed(peer: Peer) -> None:
    """Other seeds give other answers."""
    if not peer.invents:
        return
    answers = {(await said(peer, SEA, None, Sampling(max_tokens=12, temperature=1.0, seed=n)))[0] for n in range(4)}
    assert len(answers) > 1


async def streams_what_it_says(peer: Peer) -> None:
    """The events of the stream make the message of the whole text."""
    plan = toolgram.plan({"messages": [{"role": "user", "content": "Weather in Rome?"}], **CALLS}, CHATML, "long")
    items = [item async for item in stream(plan, peer.engine, Sampling(max_tokens=200), new_id=lambda: "call_1")]
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert "".join(item.text for item in items if isinstance(item, Chunk)) == reply.text
    events = [item for item in items if not isinstance(item, Chunk | Reply)]
    assert toolgram.Message.from_events(events) == reply.message
    (call,) = plan.parse(reply.text).tool_calls
    assert (call.name, call.arguments) == (reply.message.tool_calls[0].name, reply.message.tool_calls[0].arguments)


async def keeps_to_the_grammar(peer: Peer) -> None:
    """Every answer is a sentence of the grammar, at any temperature; one that is cut off is the beginning of one."""
    messages = [{"role": "user", "content": "Will it rain in Oslo? <|im_end|></tool_call>"}]
    plan = toolgram.plan({"messages": messages, **CALLS}, CHATML, "long")
    assert plan.constraint is not None
    for seed, temperature in enumerate((0.0, 1.0, 2.0)):
        reply = await generate(plan, peer.engine, Sampling(max_tokens=120, temperature=temperature, seed=seed))
        if reply.finish_reason == "length":
            plan.constraint.grammar.after(reply.text)  # raises where nothing may follow
        else:
            assert plan.constraint.grammar.accepts(reply.text), reply.text
            assert plan.write(plan.parse(reply.text)) == reply.text.rstrip("\n")  # before an end may stand line breaks


async def keeps_to_a_schema(peer: Peer) -> None:
    """Patterns, formats, bounds, counts, other scripts and null are kept to as well."""
    constraint = Constraint(toolgram.schema_grammar(ORDER))
    for seed, temperature in enumerate((0.0, 1.0, 1.0)):
        sampling = Sampling(max_tokens=120, temperature=temperature, seed=seed)
        text, last = await said(peer, asked("Order two of ABC-12."), constraint, sampling)
        if last.finish == "length":
            constraint.grammar.after(text)  # raises where nothing may follow
        else:
            assert constraint.grammar.accepts(text), text
            assert json.loads(text)["kind"] in ORDER["properties"]["kind"]["enum"]


async def cannot_end_early(peer: Peer) -> None:
    """An end comes only where the grammar has one, and there it must."""
    exact = Constraint(toolgram.schema_grammar({"type": "string", "pattern": "^[a-z]{30}$"}))
    text, last = await said(peer, asked("Say hi."), exact, Sampling(max_tokens=100))
    assert (len(text), last.finish) == (32, "stop")


async def stops_at_a_limit(peer: Peer) -> None:
    """`max_tokens` ends the text, and says so; one that is beyond the context is no limit, and without one is none."""
    long = Constraint(toolgram.schema_grammar({"const": "a" * 90}))
    _, last = await said(peer, SEA, long, Sampling(max_tokens=4))
    assert last.finish == "length"
    text, last = await said(peer, SEA, long, Sampling())
    assert (text, last.finish) == (f'"{"a" * 90}"', "stop")
    text, last = await said(peer, SEA, one_of("yes"), Sampling(max_tokens=1_000_000))
    assert (text, last.finish) == ('"yes"', "stop")


async def stops_at_a_string(peer: Peer) -> None:
    """A stop string ends the text, and is not in it, even where it comes in several tokens."""
    for constraint in (None, one_of("from the mountains to the sea")):
        whole, _ = await said(peer, SEA, constraint, Sampling(max_tokens=30))
        stop = whole[5:12]
        text, last = await said(peer, SEA, constraint, Sampling(max_tokens=30, stop=("never said", stop)))
        assert (text, last.finish, last.stopped_by) == (whole[: whole.index(stop)], "stop", stop)


async def tells_whole_characters(peer: Peer) -> None:
    """A character that is spread over tokens comes whole; so do those that look like the end of a line."""
    text, _ = await said(peer, SEA, one_of(UNICODE), Sampling(max_tokens=60))
    assert text == f'"{UNICODE}"'


async def refuses_what_is_too_long(peer: Peer) -> None:
    """A long prompt is read; one that is longer than the context is an error, and the next request goes on."""
    text, last = await said(peer, asked("word " * 400), one_of(*CHOICES), Sampling(max_tokens=20))
    assert text.strip('"') in CHOICES
    assert last.finish == "stop"
    if peer.context is not None:
        with pytest.raises(EngineError, match=str(peer.context)):
            await said(peer, asked("word " * peer.context), None, Sampling(max_tokens=2))
    assert (await said(peer, SEA, one_of("yes"), Sampling()))[0] == '"yes"'


async def can_be_left(peer: Peer) -> None:
    """Closing the generator, or cancelling who waits for it, frees the engine at once."""
    generator = peer.engine.generate(SEA, None, Sampling(max_tokens=1500))
    async for chunk in generator:
        if chunk.text:
            break
    await generator.aclose()
    waiting = [asyncio.create_task(said(peer, SEA, None, Sampling(max_tokens=1500))) for _ in range(8)]
    await asyncio.sleep(0.2)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    began = time.perf_counter()
    assert (await said(peer, SEA, one_of("next"), Sampling(max_tokens=20)))[0] == '"next"'
    assert time.perf_counter() - began < 30  # each of those that were left would take longer


async def tells_what_it_cost_when_broken_off(peer: Peer) -> None:
    """A generation that is broken off gives one chunk more, with the cost of the prompt and what was written."""
    if not peer.invents:
        return
    _, whole = await said(peer, SEA, None, Sampling(max_tokens=2))
    generator = peer.engine.generate(SEA, None, Sampling(max_tokens=1500))
    seen = [await anext(generator) for _ in range(3)]
    last = await generator.athrow(BrokenOff())
    assert last.text == ""
    assert last.finish is not None
    assert whole.usage is not None
    assert last.usage is not None
    assert last.usage.prompt_tokens == whole.usage.prompt_tokens
    assert last.usage.completion_tokens >= sum(len(chunk.tokens) for chunk in seen)
    with pytest.raises(StopAsyncIteration):
        await anext(generator)
    assert (await said(peer, SEA, one_of("next"), Sampling(max_tokens=20)))[0] == '"next"'


async def answers_many_at_once(peer: Peer) -> None:
    """Thirty-two requests at once all get an answer of their own."""
    prompts = [asked(f"Say the number {number}.") for number in range(32)]
    answers = await asyncio.gather(
        *(said(peer, prompt, one_of(f"{n}"), Sampling(max_tokens=30)) for n, prompt in enumerate(prompts))
    )
    assert [text for text, _ in answers] == [f'"{number}"' for number in range(32)]


CHECKS: list[Callable[[Peer], Awaitable[None]]] = [
    repeats_with_a_seed,
    differs_with_the_seed,
    streams_what_it_says,
    keeps_to_the_grammar,
    keeps_to_a_schema,
    cannot_end_early,
    stops_at_a_limit,
    stops_at_a_string,
    tells_whole_characters,
    refuses_what_is_too_long,
    can_be_left,
    tells_what_it_cost_when_broken_off,
    answers_many_at_once,
]


def run(check: Callable[[Peer], Awaitable[None]], peer: Peer) -> None:
    """One check, in an event loop of its own, within a time."""
    asyncio.run(asyncio.wait_for(check(peer), _PATIENCE))
