"""Whether greedy answers depend on how they were computed: in batches, with jumps, drafts and shared prompts, or not.

What is evaluated in one batch changes the last digits of the logits. By how much is measured in the same run, where
both have the same tokens. Where two answers diverge, the two most likely tokens must have been as close to each other
as both together may have moved: then it is a tie.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, cycle, islice, product

import toolgram
from _common import show
from _engine_census import bound
from _tool_tasks import tasks
from toolgram.engines.base import Chunk, Sampling, TokenLogprobs
from toolgram.engines.llama_cpp.engine import LlamaCpp
from toolgram.engines.llama_cpp.generation import Generation
from toolgram.engines.llama_cpp.guide import Guide

_STYLES = ("short", "functionary_v2", "short")  # an odd number, so that each meets each of the options
_LONGEST = 40  # tokens of an answer
_OPTIONS = (
    {},
    {"tool_choice": "auto"},
    {"parallel_tool_calls": True},
    {"tool_choice": "none"},
)

Pair = tuple[Sequence[Chunk], Sequence[Chunk]]


def equality(engine: LlamaCpp, template: toolgram.ChatTemplate, count: int) -> None:
    """Print on so many tasks how answers of the engine as it is differ from answers token by token, one at a time."""
    report(answers(engine, plans(template, count)))


def plans(template: toolgram.ChatTemplate, count: int) -> Sequence[toolgram.Plan]:
    """So many requests, with calls and without, in styles whose prompts are short."""
    some = islice(product(tasks(), _OPTIONS), count)
    return [
        toolgram.plan(replace(task, tools=task.tools[:1]).request(**options), template, style=style)
        for (task, options), style in zip(some, cycle(_STYLES), strict=False)
    ]


def answers(engine: LlamaCpp, plans: Sequence[toolgram.Plan]) -> list[Pair]:
    """What the engine says as it is, and plainly."""
    return list(zip(asyncio.run(_all(engine, plans)), plainly(engine, plans), strict=True))


def report(pairs: Sequence[Pair]) -> None:
    """Print how many answers differ, and by how much the model was undecided there."""
    noise = [each for one, other in pairs for each in _noise(_told(one), _told(other))]
    kinds = [difference(*pair, 2 * max(noise)) for pair in pairs]
    show(f"{len(pairs)} answers, against those token by token", ["", "answers"], sorted(Counter(kinds).items()))
    rare = statistics.quantiles(noise, n=100, method="inclusive")[-1]
    print(f"\nThe log-probability of the same token differs by {statistics.median(noise):.3f} in the median", end="")
    print(f", in one of a hundred by {rare:.3f} or more, at most by {max(noise):.3f}.")
    parted = [pair for pair, kind in zip(pairs, kinds, strict=True) if kind.startswith("another text")]
    margins = sorted(doubt(_told(one), _told(other)) for one, other in parted)
    print(f"Where texts part, the best two tokens differed by: {', '.join(f'{each:.3f}' for each in margins) or '–'}.")


def plainly(engine: LlamaCpp, plans: Sequence[toolgram.Plan]) -> list[list[Chunk]]:
    """The answers without jumps and drafts, without anything kept from other requests, one at a time."""
    forced, Guide.forced = Guide.forced, _nothing
    draft, Generation.draft = Generation.draft, _nothing
    shares, engine._model.shares = engine._model.shares, False
    try:
        return [asyncio.run(_answer(engine, plan)) for plan in plans]
    finally:
        Guide.forced, Generation.draft, engine._model.shares = forced, draft, shares


def _nothing(_: object) -> list[int]:
    return []


async def _all(engine: LlamaCpp, plans: Sequence[toolgram.Plan]) -> list[list[Chunk]]:
    """The first half as many at once as the engine runs, the others in pairs, among which drafts are tried too."""
    half = len(plans) // 2
    answers = await asyncio.gather(*(_answer(engine, plan) for plan in plans[:half]))
    for at in range(half, len(plans), 2):
        answers += await asyncio.gather(*(_answer(engine, plan) for plan in plans[at : at + 2]))
    return answers


async def _answer(engine: LlamaCpp, plan: toolgram.Plan) -> list[Chunk]:
    sampling = Sampling(max_tokens=_LONGEST, logprobs=2)
    return [chunk async for chunk in engine.generate(plan.prompt_parts, bound(engine, plan), sampling)]


def difference(one: Sequence[Chunk], other: Sequence[Chunk], tie: float) -> str:
    """How an answer differs from the one token by token; log-probabilities that are nearer than `tie` are a tie."""
    mine, theirs = _told(one), _told(other)
    if [each.chosen.token for each in mine] == [each.chosen.token for each in theirs]:
        return "the same tokens"
    text, wanted = _text(mine), _text(theirs)
    size = min(len(text), len(wanted))  # other splits fit more or less text into as many tokens
    if text[:size] == wanted[:size]:
        return "the same text in other tokens"
    return "another text after a tie" if doubt(mine, theirs) < tie else "another text"


def _told(chunks: Sequence[Chunk]) -> list[TokenLogprobs]:
    return [told for chunk in chunks for told in chunk.logprobs]


def _text(told: Sequence[TokenLogprobs]) -> bytes:
    return b"".join(each.chosen.piece for each in told)


def doubt(mine: Sequence[TokenLogprobs], theirs: Sequence[TokenLogprobs]) -> float:
    """By how much the token was likelier than the next one where two texts part.

    That is where both chose, and chose otherwise; one token may begin with another one. What was forced goes by its
    bytes, which may be split otherwise.
    """
    text = _text(mine)
    chosen = {end - len(each.chosen.piece): each for end, each in _ends(mine) if len(each.top) > 1}
    for end, each in _ends(theirs):
        at = end - len(each.chosen.piece)
        other = chosen.get(at, each).chosen
        if other.token != each.chosen.token or text[at:end] != each.chosen.piece:
            return each.top[0].logprob - each.top[1].logprob if len(each.top) > 1 else float("inf")
    return float("inf")


def _ends(told: Sequence[TokenLogprobs]) -> Iterator[tuple[int, TokenLogprobs]]:
    """The tokens, each with the place in the text where it ends."""
    return zip(accumulate(len(each.chosen.piece) for each in told), told, strict=True)


def _noise(mine: Sequence[TokenLogprobs], theirs: Sequence[TokenLogprobs]) -> list[float]:
    """How much log-probabilities of the same tokens after the same tokens differ, of those that were not forced."""
    found: list[float] = []
    for one, other in zip(mine, theirs, strict=False):
        if one.chosen.token != other.chosen.token:
            break
        if len(one.top) > 1:
            found.append(abs(one.chosen.logprob - other.chosen.logprob))
    return found
