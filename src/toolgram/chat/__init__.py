"""A plan and an engine together: from raw text to events and a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, Protocol, runtime_checkable

from toolgram.chat.bounds import BrokenBound, broken_bounds
from toolgram.chat.call_ids import Ids
from toolgram.chat.divergences import Divergence, divergences
from toolgram.chat.equal_calls import EqualCalls
from toolgram.chat.guarantees import refuse_parts
from toolgram.chat.reasoning_budget import ReasoningBudget, most_reasoning
from toolgram.chat.runaways import EndedRepetition, Runaways
from toolgram.chat.written import Written
from toolgram.conversation.events import Cut, Event, Finish, Unreadable
from toolgram.conversation.json_text import is_json
from toolgram.conversation.media import media_in
from toolgram.conversation.message import Message
from toolgram.engines.base import (
    BrokenOff,
    Choice,
    Chunk,
    Engine,
    FinishReason,
    Sampling,
    ShowsImages,
    TracePoint,
    Usage,
)
from toolgram.engines.forgery import broken
from toolgram.errors import EngineError, InvalidOutput, Relaxation
from toolgram.grammar.constraint import Constraint
from toolgram.planning.plan import Plan
from toolgram.wire.reader import Reader
from toolgram.wire.reader.unconstrained import LenientReader

IdFactory = Callable[[], str]
Heard = Callable[[int, Chunk], None]

_NOTHING_ENFORCED = Relaxation("", "grammar", "nothing while it was written: this engine takes no grammar")
_NO_BIAS = Relaxation("/tool_bias", "tool_bias", "none: it needs the embedded engine, and a choice at the first token")
_NO_PARALLEL_BIAS = Relaxation(
    "/parallel_tool_bias", "parallel_tool_bias", "none: it needs the embedded engine, and calls that a text ends"
)
_RETRY_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request: the message, the raw text that it was read from, why it ended, and what it cost.

    `finish_reason` is "stop" where a stop string of the request cut a call off, though the message has what came of it.
    `dropped_calls` counts the calls, one at most, that were cut off before their name was whole.
    `call_log_odds` is the natural logarithm of the odds that the model would call, where it chose and the engine tells
    them; the request's `tool_bias` is not in it. `another_call_log_odds` are those of another call behind the first
    one, without the `parallel_tool_bias`.
    `stopped_by` is the stop string of the request that ended it, where the engine tells.
    `relaxations` are the plan's, and one more where the engine enforced nothing. Only then may the message be other
    than was asked for: `valid` says whether it is complete, and of the form and the schema of the request. Where the
    response format is a type an answer is valid if `plan.value` takes it, whatever the engine enforced.
    `trace` says what the model alone would have written, if that was asked for and the engine records it, and
    `divergences` where the grammar made a number or a bounded string another one than that. `ended_repetitions` are
    the values that only repeated themselves, and were ended, and the last call of a turn that was ended since its calls
    did. `broken_bounds` are the strings in calls that break a bound which the grammar enforced roughly, as a relaxation
    says.
    """

    message: Message
    text: str
    finish_reason: Literal["stop", "tool_calls", "length"]
    usage: Usage
    relaxations: tuple[Relaxation, ...] = ()
    valid: bool = True
    stopped_by: str | None = None
    dropped_calls: int = 0
    trace: tuple[TracePoint, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    ended_repetitions: tuple[EndedRepetition, ...] = ()
    call_log_odds: float | None = None
    broken_bounds: tuple[BrokenBound, ...] = ()
    another_call_log_odds: float | None = None


@runtime_checkable
class HasVocabulary(Protocol):
    """An engine that tells its special tokens: text to id."""

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The text of each special token, and its id."""
        ...


@runtime_checkable
class HasTokens(Protocol):
    """An engine that tells its tokens: text to id."""

    @property
    def tokens(self) -> Mapping[str, int]:
        """The text of each token, but for parts of characters, and its id."""
        ...


async def stream(
    plan: Plan,
    engine: Engine,
    sampling: Sampling | None = None,
    *,
    new_id: IdFactory | None = None,
    heard: Heard | None = None,
) -> AsyncGenerator[Chunk | Event | Reply, None]:
    """Each chunk of raw text as the engine gives it, then the events that were read from it; at last the reply.

    The events are those of `plan.reader()`, but that every call has an id: the wire's own, else one from `new_id`, or
    one in the family's form (the same again for the same `sampling.seed` and prompt), which comes with the call's start
    unless the format might still carry one. Closing the generator stops the engine. `heard` is told each chunk as the
    engine gave it, before anything is made of it, and of which call of the engine it is: there is more than one where
    reasoning was closed or a repetition ended.
    Raises EngineError where the engine fails, cannot constrain, is stopped by another hand, or shows none of the plan's
    images, and InvalidRequest where the request has what is not text and the plan does not show.
    """
    refuse_parts(plan.request, plan.left_out)
    if media_in(plan.prompt_parts) and not isinstance(engine, ShowsImages):
        raise EngineError("this engine shows its model no images, and the plan is one for a model that sees")
    sampling = sampling or Sampling()
    free = _free(plan, engine)
    reader = plan.reader(lenient=free)
    ids = Ids.of(plan, plan.call_ids(sampling.seed) if new_id is None else lambda _name, _index: new_id())
    events: list[Event] = []
    text: list[str] = []
    trace: list[TracePoint] = []
    finish: FinishReason | None = None
    stopped_by: str | None = None
    log_odds: float | None = None
    another: float | None = None
    usage = Usage()
    runaways = Runaways(plan) if plan.request.end_repetitions and plan.constraint is not None and not free else None
    equal = EqualCalls() if plan.request.end_repetitions else None
    chunks = _chunks(plan, engine, sampling, reader, runaways, equal, heard or _nobody)
    async with aclosing(chunks):
        async for chunk in chunks:
            finish, usage, stopped_by = chunk.finish, chunk.usage or usage, chunk.stopped_by
            log_odds = chunk.log_odds if log_odds is None else log_odds
            another = chunk.later_log_odds if another is None else another
            text.append(chunk.text)
            trace += chunk.trace
            yield chunk
            new = list(ids.filled(reader.feed(chunk.text)))
            if runaways is not None:
                runaways.take(chunk, new)
            if equal is not None:
                equal.take(new)
            for event in new:
                events.append(event)
                yield event
    if finish is None or finish == "cancelled":
        raise EngineError("the engine stopped before the answer was complete")
    asked = stopped_by if stopped_by in sampling.stop else None  # else it is the turn's own end
    # What nothing constrained may end anywhere by the model's own will: then it is text.
    ended = finish == "stop" and asked is None and (free or plan.constraint is None)
    rest = reader.finish(cut=finish == "length" or asked is not None)
    for event in ids.filled(map(_as_text, rest) if ended else rest):
        events.append(event)
        yield event
    message = ids.complete(Message.from_events(events))
    reason = "length" if finish == "length" else "tool_calls" if _calls(message, ended=ended) else "stop"
    valid = not free or (reason != "length" and allows(plan, message))
    valid = valid and refused_by_type(plan, message) is None
    dropped = events[-1].dropped_calls if isinstance(events[-1], Finish) else 0
    raw = "".join(text)
    yield Reply(
        message,
        raw,
        reason,
        usage,
        relaxations_of(plan, engine),
        valid,
        asked,
        dropped,
        tuple(trace),
        divergences(plan, message, raw, trace),
        (*(runaways.ended if runaways else ()), *([equal.ended] if equal and equal.ended else ())),
        log_odds,
        broken_bounds(plan, message),
        another,
    )


def _calls(message: Message, *, ended: bool) -> bool:
    """Whether the turn is calls to be run: the last one may lack its end where the model has `ended`, but none of its
    arguments."""
    if not message.tool_calls:
        return False
    last = message.tool_calls[-1]
    return not last.incomplete or (ended and is_json(last.arguments))


def _nobody(_call: int, _chunk: Chunk) -> None:
    pass


def _as_text(event: Event) -> Event:
    """The event for a model that ended by itself where a tag or a call had begun: these are its words."""
    match event:
        case Cut(text, reason):
            return Unreadable(text, reason)
        case Finish():
            return replace(event, dropped_calls=0)
        case _:
            return event


async def _chunks(
    plan: Plan,
    engine: Engine,
    sampling: Sampling,
    reader: Reader | LenientReader,
    runaways: Runaways | None,
    equal: EqualCalls | None,
    heard: Heard,
) -> AsyncGenerator[Chunk, None]:
    """What the engine writes, and what closes reasoning that is too long and values that only repeat themselves.

    Each chunk is read before the next one. It ends where calls only repeat themselves.
    """
    # Under a grammar the turn's end is a token: a string that only spells it may stand in an argument.
    stops = sampling.stop if plan.constraint else tuple(dict.fromkeys((*plan.stop, *sampling.stop)))
    sampling = replace(sampling, stop=stops, ends=plan.stop, choice=_choice(plan, engine), later=_later(plan, engine))
    written, budget = Written(plan), ReasoningBudget(plan, reader, most_reasoning(plan, sampling))
    prompt, constraint = plan.prompt_parts, plan.constraint
    closer = budget.closer(written)
    for call in count():
        if closer is not None:
            yield Chunk(closer)
            written.take(Chunk(closer))
            rest = plan.constraint_after_reasoning if budget.closed else plan.constraint_after
            prompt, constraint, closer = written.prompt(), rest(written.text), None
        if not engine.capabilities.token_ids:  # whatever spells a control token there becomes one
            prompt = broken(prompt, plan.control_strings)
        chunks = engine.generate(prompt, bound(constraint, engine), written.left(sampling))
        async with aclosing(chunks):
            async for chunk in chunks:
                heard(call, chunk)
                chunk = written.of_turn(chunk)
                yield chunk if chunk.usage is None else replace(chunk, usage=budget.noted(chunk.usage))
                written.take(chunk)
                budget.take(chunk)
                if chunk.finish is None and equal is not None and equal.end():
                    written.broke_off(await _broken_off(chunks))
                    last, usage = written.ended()
                    yield replace(last, usage=budget.noted(usage))
                    return
                if chunk.finish is None:
                    closer = budget.closer(written) or (runaways and runaways.closer(written))
                if closer is not None:
                    written.broke_off(await _broken_off(chunks))
                    break
            else:
                return


async def _broken_off(chunks: AsyncGenerator[Chunk, None]) -> Chunk | None:
    """What a generation tells of itself that is broken off; None where its engine does not do so."""
    try:
        return await chunks.athrow(BrokenOff())
    except (BrokenOff, StopAsyncIteration, EngineError):
        return None


async def generate(
    plan: Plan,
    engine: Engine,
    sampling: Sampling | None = None,
    *,
    new_id: IdFactory | None = None,
    retries: int = 0,
) -> Reply:
    """The reply to a plan, when it is complete. Raises as `stream` does.

    An engine that cannot enforce the format, or a type that refuses an answer, has it asked up to `retries` times more,
    each time with another seed and at a temperature above 0, until the reply is valid; the last one is given even if it
    is not.
    """
    sampling = sampling or Sampling()
    for attempt in range(retries + 1):
        reply = await _reply(plan, engine, sampling if attempt == 0 else _again(sampling, attempt), new_id)
        if reply.valid or attempt == retries:
            return reply
    raise EngineError(f"retries must be at least 0, not {retries}")


async def _reply(plan: Plan, engine: Engine, sampling: Sampling, new_id: IdFactory | None) -> Reply:
    async with aclosing(stream(plan, engine, sampling, new_id=new_id)) as items:
        async for item in items:
            if isinstance(item, Reply):
                return item
    raise AssertionError("a stream ends with a reply or raises")


def _again(sampling: Sampling, attempt: int) -> Sampling:
    seed = None if sampling.seed is None else sampling.seed + attempt
    return replace(sampling, seed=seed, temperature=sampling.temperature or _RETRY_TEMPERATURE)


def generate_sync(
    plan: Plan,
    engine: Engine,
    sampling: Sampling | None = None,
    *,
    new_id: IdFactory | None = None,
    retries: int = 0,
) -> Reply:
    """As `generate`, for scripts: it runs an event loop of its own, so that no other may run in this thread.

    Raises EngineError where one runs, as in a notebook.
    """
    if _runs_a_loop():
        raise EngineError("an event loop runs here already, as in a notebook: await toolgram.generate(…) in its place")
    return asyncio.run(generate(plan, engine, sampling, new_id=new_id, retries=retries))


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def allows(plan: Plan, message: Message) -> bool:
    """Whether the format and the schemas of the request allow the message; ids count where the format has them."""
    if plan.format.call_id is None:
        message = replace(message, tool_calls=tuple(replace(call, id=None) for call in message.tool_calls))
    return plan.write(message) is not None


def refused_by_type(plan: Plan, message: Message) -> InvalidOutput | None:
    """What the type of the answer refuses of it; a type may want more than its schema says. A call is no answer."""
    if plan.answer_type is None or message.tool_calls:
        return None
    try:
        plan.value(message)
    except InvalidOutput as error:
        return error
    return None


def relaxations_of(plan: Plan, engine: Engine) -> tuple[Relaxation, ...]:
    """The plan's relaxations, after what the engine leaves undone: all of the format, or the bias towards calls."""
    nothing = (_NOTHING_ENFORCED,) if _free(plan, engine) else ()
    no_bias = (_NO_BIAS,) if plan.request.tool_bias and _choice(plan, engine) is None else ()
    no_other = (_NO_PARALLEL_BIAS,) if plan.request.parallel_tool_bias and _later(plan, engine) is None else ()
    return (*nothing, *no_bias, *no_other, *plan.relaxations)


def _free(plan: Plan, engine: Engine) -> bool:
    return plan.constraint is not None and engine.capabilities.unenforced


def _choice(plan: Plan, engine: Engine) -> Choice | None:
    """The choice between a call and text as tokens of the engine; None where it is not at the first of them."""
    if not (engine.capabilities.choice and isinstance(engine, HasTokens)):
        return None
    decision = plan.decision
    tokens = decision.bind(engine.tokens) if decision is not None and decision.at_once else ()
    return Choice(tokens, plan.request.tool_bias or 0.0) if tokens else None


def _later(plan: Plan, engine: Engine) -> Choice | None:
    """The choice between another call and the end; None where the engine or the format has no such place."""
    if not (engine.capabilities.choice and isinstance(engine, HasTokens)) or (another := plan.another_call) is None:
        return None
    tokens = another.bind(engine.tokens)
    return Choice(tokens, plan.request.parallel_tool_bias or 0.0, another.after) if tokens else None


def bound(constraint: Constraint | None, engine: Engine) -> Constraint | None:
    """The constraint as the engine takes it: with token ids where it has them."""
    if constraint is None:
        return None
    if engine.capabilities.unenforced:
        return None
    if not engine.capabilities.dialects:
        raise EngineError("this engine cannot constrain its output, which the request needs")
    if engine.capabilities.special_tokens and isinstance(engine, HasVocabulary):
        return constraint.bind(engine.vocabulary)
    return constraint
