"""Whether greedy answers depend on how they were made: with jumps and many at once, or token by token and alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import islice, product

import toolgram
from _common import show
from _engine_census import bound
from _tool_tasks import tasks
from toolgram.engines.base import Chunk, Sampling, TokenLogprobs
from toolgram.engines.llama_cpp import LlamaCpp
from toolgram.engines.masks import Guide

_TIE = 0.3  # of two log-probabilities: what is evaluated together changes the logits by some hundredths, at most tenths
_OPTIONS = (
    {},
    {"tool_choice": "auto"},
    {"parallel_tool_calls": True},
    {"tool_choice": "none"},
)


def equality(engine: LlamaCpp, template: toolgram.ChatTemplate, count: int) -> None:
    """Print on so many tasks how answers of the engine as it is differ from answers token by token, one at a time."""
    plans = [task.plan(template, **options) for options, task in islice(product(_OPTIONS, tasks()), count)]
    jumped = asyncio.run(_all(engine, plans))
    forced, Guide.forced = Guide.forced, _nothing
    try:
        stepped = [asyncio.run(_answer(engine, plan)) for plan in plans]
    finally:
        Guide.forced = forced
    found = Counter(map(difference, jumped, stepped))
    show(f"Answers to {len(plans)} tasks, against those token by token", ["", "answers"], sorted(found.items()))


def _nothing(_: Guide) -> list[int]:
    return []


async def _all(engine: LlamaCpp, plans: Sequence[toolgram.Plan]) -> list[list[Chunk]]:
    return await asyncio.gather(*(_answer(engine, plan) for plan in plans))


async def _answer(engine: LlamaCpp, plan: toolgram.Plan) -> list[Chunk]:
    sampling = Sampling(max_tokens=48, logprobs=2)
    return [chunk async for chunk in engine.generate(plan.prompt_parts, bound(engine, plan), sampling)]


def difference(one: Sequence[Chunk], other: Sequence[Chunk]) -> str:
    """How an answer differs from the one token by token."""
    mine, theirs = _told(one), _told(other)
    if [each.chosen.token for each in mine] == [each.chosen.token for each in theirs]:
        return "the same tokens"
    text, wanted = (b"".join(each.chosen.piece for each in told) for told in (mine, theirs))
    size = min(len(text), len(wanted))  # other splits fit more or less text into as many tokens
    if text[:size] == wanted[:size]:
        return "the same text in other tokens"
    return "another text after a tie" if _tied(mine, theirs) else "another text"


def _told(chunks: Sequence[Chunk]) -> list[TokenLogprobs]:
    return [told for chunk in chunks for told in chunk.logprobs]


def _tied(mine: Sequence[TokenLogprobs], theirs: Sequence[TokenLogprobs]) -> bool:
    """Whether the two were about as likely where the texts part; forced text is compared by its bytes."""
    text = b"".join(each.chosen.piece for each in mine)
    at = 0
    for each in theirs:
        end = at + len(each.chosen.piece)
        if text[at:end] != each.chosen.piece:
            return len(each.top) > 1 and each.top[0].logprob - each.top[1].logprob < _TIE
        at = end
    return False
