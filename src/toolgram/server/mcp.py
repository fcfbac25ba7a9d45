"""Tools of MCP servers in a response: the servers of the configuration list them, and the calls of a turn are run here.

A response goes on, turn by turn, until the model calls nothing that is run here, or something that the client is to
run, or to allow::

    listings ─► approved calls ─► a turn ─► its calls ─► a turn ─► … ─► a message, calls for the client, approvals asked
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from toolgram.agent.calls import results
from toolgram.agent.progress import Progress, helped, with_own_ids
from toolgram.agent.runs import Limits, Result
from toolgram.agent.tools import InvalidTool
from toolgram.api.responses.mcp import ApprovedCall, Asked, CallResult, Listing
from toolgram.api.responses.request import CheckedBody, ResponsesRequest
from toolgram.chat import Reply
from toolgram.chat.bounds import BrokenBound
from toolgram.chat.divergences import Divergence
from toolgram.chat.runaways import EndedRepetition
from toolgram.conversation.message import ToolCall
from toolgram.conversation.request import ToolChoice
from toolgram.engines.remote.http import Refused
from toolgram.errors import PromptTooLong, TooManyPixels
from toolgram.server.context import Desk, Item, Job
from toolgram.server.sse import while_connected
from toolgram.work import in_thread

if TYPE_CHECKING:
    from toolgram.agent.mcp import McpServer  # of an extra

_LIMITS = Limits()  # of a response: turns, seconds of a call, characters of a result, repetitions of the same calls
_REST = 60.0  # seconds in which a server that ends again is not started once more
_TOO_MANY = "This call was not run: the request allows no more of them."


def servers_of(config: Mapping[str, Any] | None) -> dict[str, McpServer]:
    """The servers of a configuration by their names, none of them started. Raises InvalidTool."""
    if config is None:
        return {}
    from toolgram.agent.mcp import mcp_servers

    return mcp_servers(config, _REST)


async def request_of(desk: Desk, request: Request, body: CheckedBody) -> ResponsesRequest:
    """The request that a body makes when the servers that it asks have listed their tools, side by side."""
    listings = await while_connected(request.receive, _listings(desk, body.asked))
    return await in_thread(body.request, listings)


async def _listings(desk: Desk, asked: Sequence[Asked]) -> list[Listing]:
    return list(await asyncio.gather(*(_listing(desk.mcp[each.server], each) for each in asked)))


async def _listing(server: McpServer, asked: Asked) -> Listing:
    """What a server lists of what it is asked for; of a list that the client has, what it listed last."""
    try:
        tools = (server.known if asked.replayed else None) or await server.tools()
    except InvalidTool as error:
        return Listing(asked, error=str(error))
    return Listing(asked, [tool for tool in tools if asked.tools.takes(tool.own_name, writes=tool.writes)])


async def turns(
    desk: Desk, request: Request, job: Job, read: ResponsesRequest
) -> AsyncGenerator[Item | Listing | ApprovedCall | CallResult, None]:
    """What happens in a response, as it happens; the reply at its end is that of the last turn, with the cost of all.

    Closing the generator stops the engine and the calls. Raises as `Desk.items` does.
    """
    for listing in read.listings:
        yield listing
    run = _Run(desk, request, job, read)
    if read.approved:
        async with aclosing(run.approved()) as items:
            async for item in items:
                yield item
        await run.plan(read.generation.request.tool_choice)
    while True:
        async with aclosing(run.turn()) as items:
            async for item in items:
                yield item
        if run.is_over:
            yield run.reply
            return
        await run.plan(run.next_choice)


class _Run:
    """A response that is being made, until it `is_over`."""

    def __init__(self, desk: Desk, request: Request, job: Job, read: ResponsesRequest) -> None:
        self.is_over = False
        self._desk, self._request, self._job, self._read = desk, request, job, read
        self._sampling = job.sampling
        self._so_far = Progress(list(read.generation.request.messages), {}, number=1)
        self._replies: list[Reply] = []
        self._calls = 0  # of servers
        self._choice = read.generation.request.tool_choice
        self._is_cut = False  # whether there were no tokens left for a turn after the last calls

    @property
    def reply(self) -> Reply:
        """The last turn's, with the cost of all and what is noted of them; calls are counted over all turns."""
        before, divergences, ended, broken = 0, list[Divergence](), list[EndedRepetition](), list[BrokenBound]()
        for each in self._replies:
            divergences += [replace(one, call=_counted(one.call, before)) for one in each.divergences]
            ended += [replace(one, call=_counted(one.call, before)) for one in each.ended_repetitions]
            broken += [replace(one, call=one.call + before) for one in each.broken_bounds]
            before += len(each.message.tool_calls)
        return replace(
            self._replies[-1],
            usage=self._so_far.usage,
            finish_reason="length" if self._is_cut else self._replies[-1].finish_reason,
            divergences=tuple(divergences),
            ended_repetitions=tuple(ended),
            broken_bounds=tuple(broken),
        )

    @property
    def next_choice(self) -> ToolChoice:
        """What the next turn may call: what was demanded has been done by the first, and the last calls no server."""
        request, most = self._read.generation.request, self._read.max_tool_calls
        if self._so_far.is_over(_LIMITS) or (most is not None and self._calls >= most):
            own = tuple(tool.name for tool in request.callable_tools if tool.name not in self._read.mcp)
            return ToolChoice("auto", own) if own else ToolChoice("none")
        return ToolChoice("auto", request.tool_choice.only)

    @property
    def _left(self) -> int | None:
        """How many tokens may still be written."""
        most = self._sampling.max_tokens
        return None if most is None else max(0, most - self._so_far.usage.completion_tokens)

    async def approved(self) -> AsyncGenerator[ApprovedCall | CallResult, None]:
        """The calls of earlier responses that may run now; their results are put in their places."""
        calls = self._read.approved
        for call in calls:
            yield call
        run = {call.index: ToolCall(call.name, call.arguments, call.approval) for call in calls}
        async with aclosing(self._results(run)) as made:
            async for index, result in made:
                at = calls[index].at
                message = self._so_far.messages[at]
                self._so_far.messages[at] = {**message, "content": result.content}
                self._so_far.given.add(message.get("tool_call_id"))
                yield CallResult(index, result.text, result.is_error)
        self._so_far.limit_images()

    async def turn(self) -> AsyncGenerator[Item | CallResult, None]:
        """A turn of the model, and the results of its calls that are run here."""
        so_far = self._so_far
        async with aclosing(self._items()) as items:
            async for item in items:
                if isinstance(item, Reply):
                    self._replies.append(item)
                else:
                    yield item
        so_far.number += 1
        reply = self._replies[-1]
        so_far.count(reply)
        calls = with_own_ids(reply.message.tool_calls, so_far.messages)
        run = {i: call for i, call in enumerate(calls) if self._runs(call)}
        if reply.finish_reason == "length" or not run:
            self.is_over = True
            return
        so_far.called(calls)
        so_far.messages.append(replace(reply.message, tool_calls=calls).to_openai())
        made: list[Result] = []
        async with aclosing(self._results(run)) as told:
            async for index, result in told:
                made.append(result)
                yield CallResult(index, result.text, result.is_error)
        so_far.add_results(made)
        self._is_cut = len(run) == len(calls) and self._left == 0
        self.is_over = len(run) < len(calls) or self._is_cut

    async def _items(self) -> AsyncGenerator[Item, None]:
        """What the engine generates; where it says before that the prompt is too much, and results of ours are why, of
        one that has less."""
        while True:
            began = False
            try:
                async with aclosing(self._desk.items(self._request, self._job, self._so_far.number - 1)) as items:
                    async for _, item in items:
                        began = True
                        yield item
            except (PromptTooLong, Refused) as error:
                if began or not self._so_far.given or not helped(self._so_far, error):
                    raise
                await self.plan(self._choice)
            else:
                return

    async def plan(self, choice: ToolChoice) -> None:
        """Make the next turn ready, with room in its prompt for what was done."""
        self._choice = choice
        generation, left = self._read.generation, replace(self._sampling, max_tokens=self._left)
        while True:
            messages = tuple(self._so_far.messages)
            asked = replace(generation.request, messages=messages, tool_choice=choice)
            try:
                self._job = await self._desk.next_turn(self._job, replace(generation, request=asked), left)
            except (PromptTooLong, TooManyPixels) as error:
                if not helped(self._so_far, error):
                    raise
            else:
                return

    def _runs(self, call: ToolCall) -> bool:
        """Whether a call is run here and now: it is whole, and needs no approval."""
        place = self._read.mcp.get(call.name)
        return place is not None and not place.asks and not call.incomplete

    async def _results(self, calls: Mapping[int, ToolCall]) -> AsyncGenerator[tuple[int, Result], None]:
        """The results of calls, as they come, by the numbers of the calls; those that are too many are not run."""
        most = self._read.max_tool_calls
        left = len(calls) if most is None else max(0, most - self._calls)
        self._calls += len(calls)
        for index in list(calls)[left:]:
            yield index, Result(calls[index], _TOO_MANY, is_error=True, seconds=0.0)
        numbers = {id(call): index for index, call in calls.items()}
        tools = {name: place.tool for name, place in self._read.mcp.items()}
        async with aclosing(results(list(calls.values())[:left], tools, _LIMITS)) as made:
            async for told in made:
                if isinstance(told, Result):
                    sees = told.illustrated is not None and await self._job.served.sees()
                    yield numbers[id(told.call)], told.told(sees=sees)


def _counted(call: int | None, before: int) -> int | None:
    return None if call is None else call + before
