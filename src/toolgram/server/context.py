"""What every route needs: reading the body, planning the request, running the engine within the limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from toolgram import work
from toolgram.api.errors import ApiError, param
from toolgram.api.explain import relaxations_json
from toolgram.api.generation import Generation, grammar_at_fault
from toolgram.api.json_text import json_bytes
from toolgram.api.notes import divergences_of_choices
from toolgram.chat import Reply, relaxations_of, stream
from toolgram.chat.guarantees import refuse_unenforced
from toolgram.conversation.events import Event
from toolgram.conversation.fields import Json
from toolgram.conversation.media import media_in
from toolgram.engines.base import Chunk, Sampling
from toolgram.errors import (
    GrammarError,
    GrammarRefused,
    InvalidRequest,
    PromptTooLong,
    Relaxation,
    ToolgramError,
    TooMuchWork,
)
from toolgram.planning.plan import Plan
from toolgram.planning.prompt import Parts
from toolgram.server.bodies import parsed, received
from toolgram.server.limits import Admission
from toolgram.server.metrics import Metrics
from toolgram.server.models import Models, Served
from toolgram.server.recording.capture import Capture, capturing
from toolgram.server.request_log import record_of
from toolgram.server.settings import Settings
from toolgram.server.sse import EVENTS, EventStream, comment, while_connected
from toolgram.server.store import Store
from toolgram.server.tracing import generated, planned
from toolgram.spans import span
from toolgram.template.adapt import parts_beside_text
from toolgram.template.apart import Apart
from toolgram.work import in_thread

if TYPE_CHECKING:
    from toolgram.agent.mcp import McpServer  # of an extra

T = TypeVar("T")

Item = Chunk | Event | Reply
_FIELD = re.compile(r"[\w.\[\]-]{1,64}", re.ASCII)
_LONG_BODY = 1 << 14  # bytes: what may take a millisecond to read
_COSTLY = (b'"lark"', b'"grammar"', b"\\u")  # grammars take longer; what is escaped may be anything
_TEMPLATE_SECONDS = 5  # of work for a template that a body brings: a model's takes less than one
_LONGEST_HEADER = 4000  # proxies refuse more than 8 KB of headers


@dataclass(frozen=True, slots=True)
class Job:
    """A request that is ready to run; `prompt_tokens` is None if the engine does not count tokens."""

    served: Served
    plan: Plan
    sampling: Sampling
    n: int = 1
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Desk:
    """The server's models, settings, limits and counts, and the MCP servers of its configuration by their names.

    There is a `store` where responses are kept for later requests.
    """

    models: Models
    settings: Settings
    admission: Admission
    metrics: Metrics
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    apart: Apart = field(default_factory=Apart)
    store: Store = field(default_factory=lambda: Store(0))

    async def body(self, request: Request, read: Callable[[Any], T]) -> T:
        """The JSON of a request's body, read by `read`; a long one in a thread, so that others are served meanwhile.

        Raises ApiError: 413 if it is too large, 408 if it does not arrive, 400 if it is not JSON; and whatever `read`
        raises.
        """
        content = await received(request, self.settings)
        is_long = len(content) > _LONG_BODY or any(mark in content for mark in _COSTLY)
        body = await in_thread(parsed, content) if is_long else parsed(content)
        if (capture := record_of(request.scope).capture) is not None:
            capture.read(body)
        if self.settings.log_contents:
            record_of(request.scope).contents["body"] = body
        return await in_thread(read, body) if is_long else read(body)

    async def job(self, request: Request, generation: Generation, *, runs: bool = True) -> Job:
        """Plans the request for its model, and makes its grammar ready if it `runs`.

        Raises what `plan` raises, InvalidRequest for what the engine cannot guarantee, and ApiError if a limit is
        exceeded.
        """
        self.tell_ignored(request, generation.ignored)  # also where planning fails
        served = self.models.find(generation.model)
        if (capture := record_of(request.scope).capture) is not None:
            capture.served, capture.seed = served, generation.sampling.seed
        if generation.chat_template is not None and not self.settings.request_templates:
            reason = (
                "this server takes no templates from requests: `toolgram serve --trust-request-chat-template` allows it"
            )
            raise ApiError(400, "not_allowed", reason, "/chat_template")
        sampling = served.defaults.filling(generation.sampling, generation.unsaid)
        sampling = replace(self.limited(sampling, generation.limit), trace=True)
        # A template or schema seen for the first time may take a while; others are served meanwhile.
        with span("plan", {"gen_ai.request.model": served.name}) as note:
            sees = await while_connected(request.receive, _sees(generation, served))
            if capture is not None:
                capture.sees = sees
            async with self.admission.planning():
                plan, count = await while_connected(
                    request.receive, in_thread(self._planned, generation, served, capture, sees=sees, runs=runs)
                )
            note(planned(plan, count))
        self.tell_ignored(request, (*generation.ignored, *(param(at) or "" for at in plan.left_out)))
        record = record_of(request.scope)
        record.planned(served.name, plan)
        if capture is not None:
            capture.plan = plan
        self.tell_relaxed(request, relaxations_of(plan, served.engine))
        return Job(served, plan, sampling, generation.n, count)

    async def prompt_tokens(self, request: Request, generation: Generation) -> int:
        """How many tokens the prompt of a request has. Raises as `job` does, and ApiError where nothing counts them."""
        try:
            job = await self.job(request, generation, runs=False)
        except PromptTooLong as error:
            if error.tokens is None:
                raise
            return error.tokens
        if shown := media_in(job.plan.prompt_parts):
            raise ApiError(400, "not_supported", "the tokens of an image are known once it is read", shown[0].pointer)
        count = job.prompt_tokens
        if count is None:
            count = await while_connected(request.receive, job.served.ask_count(job.plan.prompt_parts))
        if count is None:
            raise ApiError(400, "not_supported", f"the engine of {job.served.name} does not count tokens", "/model")
        return count

    async def next_turn(self, job: Job, generation: Generation, sampling: Sampling) -> Job:
        """A further turn of a job that runs: its conversation with what was done meanwhile. Raises as `job` does."""
        with span("plan", {"gen_ai.request.model": job.served.name}) as note:
            sees = await _sees(generation, job.served)
            async with self.admission.planning():
                plan, count = await in_thread(self._planned, generation, job.served, None, sees=sees, runs=True)
            note(planned(plan, count))
        return replace(job, plan=plan, prompt_tokens=count, sampling=sampling)

    def _planned(
        self, generation: Generation, served: Served, capture: Capture | None, *, sees: bool, runs: bool
    ) -> tuple[Plan, int | None]:
        served.check_length(_texts(generation))
        if generation.chat_template is not None and (errand := work.errand()) is not None:
            errand.at_most(_TEMPLATE_SECONDS)
        count: int | None = None

        def fits(prompt: Parts) -> None:
            nonlocal count
            with capturing(capture, ready=True):
                count = served.count(prompt)

        try:
            with nullcontext() if generation.chat_template is None else self.apart.rendering(_TEMPLATE_SECONDS):
                plan = generation.plan(
                    served.template, self.settings.style, profile=served.profile, fits=fits, sees=sees
                )
        except RecursionError as error:
            raise ApiError(400, "invalid_value", "the request is nested too deeply", "") from error
        if runs and not self.settings.allow_unenforced:
            refuse_unenforced(plan.request, served.engine)
        if runs:
            with capturing(capture, ready=True):
                make_ready(plan, served)
        return plan, count

    def tell_ignored(self, request: Request, fields: Sequence[str]) -> None:
        """Name the unknown fields of a body in a header."""
        if named := ", ".join(name for name in fields[:20] if _FIELD.fullmatch(name)):
            record_of(request.scope).headers["x-toolgram-ignored"] = named

    def tell_relaxed(self, request: Request, relaxations: Sequence[Relaxation]) -> None:
        """Name what is not enforced exactly in a header."""
        if relaxations:
            record_of(request.scope).headers["x-toolgram-relaxations"] = _header(relaxations_json(relaxations))

    def limited(self, sampling: Sampling, field: str = "max_tokens") -> Sampling:
        """The sampling within the server's limits. Raises ApiError if more is asked for."""
        most = self.settings.max_tokens
        if most is None or (sampling.max_tokens is not None and sampling.max_tokens <= most):
            return sampling
        if sampling.max_tokens is None:
            return replace(sampling, max_tokens=most)
        raise ApiError(400, "too_many_tokens", f"an answer may have at most {most} tokens on this server", f"/{field}")

    async def items(self, request: Request, job: Job, turn: int = 0) -> AsyncGenerator[tuple[int, Item], None]:
        """What the engine generates for all choices, as it arrives; with several turns there is one choice."""
        record = record_of(request.scope)
        replies: dict[int, Reply] = {}
        capture, form = record.capture, job.plan.request.response_format

        def written(index: int, sampling: Sampling) -> AsyncGenerator[Item, None]:
            heard = None if capture is None else capture.hearing(index)
            items = stream(job.plan, job.served.engine, sampling, heard=heard)
            return generated(items, job.served, sampling, as_json=form is not None and not form.plain)

        streams = [written(index, sampling) for index, sampling in enumerate(_seeded(job), start=turn)]
        counting = record.counting(job.prompt_tokens or 0)
        with grammar_at_fault(_of_grammar(job.plan)), capturing(capture), counting as tokens:
            async with aclosing(merged(streams, self.admission)) as items:
                async for choice, item in items:
                    index = choice + turn
                    if isinstance(item, Reply):
                        record.replied(item)
                        del tokens[index]
                        if capture is not None:
                            capture.replies[index] = item
                        replies[index] = item
                        if self.settings.log_contents:
                            record.contents.setdefault("answers", []).append(item.message.to_openai())
                    else:
                        record.spoke()
                        if isinstance(item, Chunk):
                            tokens[index] += len(item.tokens) or bool(item.text)
                    yield index, item
        if changed := divergences_of_choices([replies[index] for index in sorted(replies)]):
            record.headers["x-toolgram-divergences"] = _header(changed)  # too late for a stream

    async def whole(self, request: Request, answer: Coroutine[Any, Any, T]) -> T:
        """Makes an answer within the limits, and stops if the client goes away."""

        async def within() -> T:
            async with self.admission.work():
                return await answer

        try:
            return await while_connected(request.receive, within())
        finally:
            answer.close()  # it never began if there was no place for it

    def streamed(
        self,
        request: Request,
        events: AsyncGenerator[bytes, None],
        failed: Callable[[ToolgramError], bytes],
        alive: Callable[[], bytes] = comment,
        media: str = EVENTS,
    ) -> EventStream:
        """Makes an answer in events, or in what else `media` is, within the limits."""
        record = record_of(request.scope)

        def as_event(error: ToolgramError) -> bytes:
            record.failed(type(error).__name__, str(error))
            return failed(error)

        keep_alive = self.settings.keep_alive
        return EventStream(events, self.admission.work(), as_event, record.headers, keep_alive, alive, media)


def make_ready(plan: Plan, served: Served) -> None:
    """Compiles the plan's grammar. Raises InvalidRequest for one that the engine refuses."""
    if plan.constraint is None:
        return
    try:
        served.compile(plan.constraint)
    except (GrammarError, GrammarRefused) as error:
        raise InvalidRequest(plan.at_fault(served.compile), str(error)) from error
    except TooMuchWork as error:
        raise InvalidRequest(_of_grammar(plan), str(error)) from error


def _of_grammar(plan: Plan) -> str:
    """A pointer to what the grammar of a plan is of, where nobody looks closer."""
    return "/tools" if plan.request.grammar is None else plan.request.grammar.pointer


async def _sees(generation: Generation, served: Served) -> bool:
    """Whether the model can be shown images, which is asked where there is something beside text."""
    return served.may_see and await in_thread(_has_more_than_text, generation) and await served.sees()


def _has_more_than_text(generation: Generation) -> bool:
    return next(parts_beside_text(generation.request.messages), None) is not None


def _texts(generation: Generation) -> Iterator[str]:
    """What the conversation says."""
    for message in generation.request.messages:
        content: Any = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            for part in cast("list[Any]", content):
                if isinstance(part, Mapping) and isinstance(text := cast("Json", part).get("text"), str):
                    yield text


def json_response(request: Request, value: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(json_bytes(value), status, record_of(request.scope).headers, "application/json")


def _seeded(job: Job) -> list[Sampling]:
    seed = job.sampling.seed
    return [job.sampling if seed is None else replace(job.sampling, seed=seed + i) for i in range(job.n)]


def _header(values: Sequence[Any]) -> str:
    """As many values as fit in a header, as JSON in ASCII; bodies have all of them."""
    kept: list[str] = []
    size = 0
    for one in values:
        text = json.dumps(one)
        size += len(text)
        if size > _LONGEST_HEADER:
            break
        kept.append(text)
    return f"[{', '.join(kept)}]".replace("\x7f", "\\u007f")


async def merged(
    streams: Sequence[AsyncGenerator[T, None]], admission: Admission
) -> AsyncGenerator[tuple[int, T], None]:
    """The items of several generators as they arrive, each with the number of its generator.

    One runs at a time in the request's place, which others have in between, and more in places that nobody waits for.
    """
    if len(streams) == 1:
        async with admission.place(), aclosing(streams[0]) as items:
            async for item in items:
                yield 0, item
        return
    queue: asyncio.Queue[tuple[int, T] | Exception | None] = asyncio.Queue()
    left = iter(enumerate(streams))

    async def run(index: int, items: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(items):
                async for item in items:
                    queue.put_nowait((index, item))
            queue.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - raised again below
            queue.put_nowait(error)

    async def run_here() -> None:
        async with admission.place() as pass_on:
            for index, items in left:
                await run(index, items)
                await pass_on()

    async def run_beside() -> None:
        while True:
            async with admission.spare():
                one = next(left, None)
                if one is None:
                    return
                await run(*one)

    beside = min(len(streams), admission.parallel) - 1
    tasks = [asyncio.create_task(runner) for runner in (run_here(), *(run_beside() for _ in range(beside)))]
    try:
        ended = 0
        while ended < len(streams):
            got = await queue.get()
            if isinstance(got, Exception):
                raise got
            if got is None:
                ended += 1
            else:
                yield got
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
