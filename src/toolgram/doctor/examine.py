"""Putting the probes to an engine, one after the other."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from toolgram.chat import Reply, stream
from toolgram.conversation.events import Event
from toolgram.doctor.probe import TURN_END, Ask, Finding, Judgement, Probe, Seen
from toolgram.engines.base import Chunk, Engine
from toolgram.errors import PromptTooLong, ToolgramError
from toolgram.planning.plan import Plan, plan
from toolgram.planning.profile import Profile
from toolgram.styles.base import ToolStyle
from toolgram.template.chat_template import ChatTemplate


async def examine(
    probes: Sequence[Probe],
    engine: Engine,
    template: ChatTemplate,
    style: str | ToolStyle | None = None,
    profile: Profile | None = None,
) -> AsyncGenerator[Finding, None]:
    """The answer to each probe. A request that several of them need is put once; style and profile are as in `plan`."""
    known: dict[str, Seen] = {}
    plans = partial(planned, template=template, style=style, profile=profile)
    for probe in probes:
        began = time.perf_counter()
        outcome, evidence = await _judged(probe, engine, plans, known)
        yield Finding(probe, outcome, evidence, time.perf_counter() - began)


async def _judged(probe: Probe, engine: Engine, made: Callable[[Ask], Plan], known: dict[str, Seen]) -> Judgement:
    try:
        plans = [made(ask) for ask in probe.asks]
    except ToolgramError as error:  # the template does not take it
        return "untried", str(error)
    if missing := next((why for each in plans if (why := probe.needs(each))), ""):
        return "untried", missing
    if probe.at_once:
        tried = await asyncio.gather(*(_seen(*each, engine) for each in zip(plans, probe.asks, strict=True)))
    else:
        tried = [await _known(known, n, *each, engine) for n, each in enumerate(zip(plans, probe.asks, strict=True))]
    if failed := next((each for each in tried if each.error), None):
        return ("untried" if failed.too_long else "no"), failed.error
    return probe.judge(tuple(tried))


def planned(
    ask: Ask, template: ChatTemplate, style: str | ToolStyle | None = None, profile: Profile | None = None
) -> Plan:
    """The plan of a request. What is hidden is in its grammar alone. Raises as `plan` does."""
    end = next(iter(template.capabilities.stop), template.eos_token)
    body = json.loads(json.dumps(ask.body).replace(json.dumps(TURN_END)[1:-1], json.dumps(end)[1:-1]))
    shown = plan(body, template, style, profile=profile)
    if ask.hidden is None:
        return shown
    hidden = plan({**body, "response_format": ask.hidden}, template, style, profile=profile)
    return replace(shown, constraint=hidden.constraint)


async def _known(known: dict[str, Seen], nth: int, plan: Plan, ask: Ask, engine: Engine) -> Seen:
    key = json.dumps([nth, ask.body, ask.max_tokens, ask.stop, ask.hidden, ask.leave])
    if key not in known:
        known[key] = await _seen(plan, ask, engine)
    return known[key]


async def _seen(plan: Plan, ask: Ask, engine: Engine) -> Seen:
    """What comes of a request; what is no fault of the request is seen too."""
    events: list[Event] = []
    reply: Reply | None = None
    pieces = 0
    error: ToolgramError | None = None
    began = time.perf_counter()
    try:
        async with aclosing(stream(plan, engine, ask.sampling)) as items:
            async for item in items:
                match item:
                    case Chunk(text):
                        pieces += bool(text)
                    case Reply():
                        reply = item
                    case _:
                        events.append(item)
                if ask.leave is not None and pieces >= ask.leave:
                    break
    except ToolgramError as failed:
        error = failed
    seconds, free = time.perf_counter() - began, engine.capabilities.unenforced
    too_long = isinstance(error, PromptTooLong)
    return Seen(plan, reply, tuple(events), pieces, seconds, free, str(error or ""), too_long)
