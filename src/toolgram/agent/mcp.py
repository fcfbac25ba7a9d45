"""Tools of MCP servers: over stdio or streamable HTTP, several servers at once, each started again once if it ends.

The configuration is the one that editors use (modelcontextprotocol.io, "Connect to local MCP servers")::

    {"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]},
        "search": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer …"}}
    }}
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any, Literal, TypeVar, cast

from pydantic import ValidationError

from toolgram.errors import needing

with needing("mcp", "an MCP server"):
    import httpx2
    from mcp import Client, MCPError, StdioServerParameters, types
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.dispatcher import ProgressFnT

from toolgram.agent.calls import CallFailed, in_thread, object_of, report_progress
from toolgram.agent.illustrated import Illustrated
from toolgram.agent.mcp_values import MAX_NAME, problem_of, result_of, tool_name, writes, wrong_at
from toolgram.agent.results import shortened
from toolgram.agent.tools import InvalidTool
from toolgram.engines.remote.http import takes_proxies, trusted

_Item = TypeVar("_Item")


_MAX_ABOUT = 10_000  # characters of a description

_STARTS = 2  # of a server: the first, and one more when it has ended
_SECONDS = 30.0  # that a server has to start, and that it has to list its tools


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server; it writes unless the server says that it only reads.

    Where the schema of its arguments cannot be read there is a `problem`: then it takes any object.
    """

    name: str
    writes: bool
    problem: str
    _server: McpServer = field(repr=False)
    _tool: types.Tool = field(repr=False)

    @property
    def own_name(self) -> str:
        """The name that its server has for it."""
        return self._tool.name

    @property
    def origin(self) -> tuple[str, str]:
        """Its server, and its name there."""
        return self._server.name, self._tool.name

    def listed(self) -> dict[str, Any]:
        """The tool as its server lists it, in the shape of OpenAI's responses."""
        about = self._tool.annotations
        return {
            "name": self._tool.name,
            "description": shortened(self._tool.description or self._tool.title or "", _MAX_ABOUT),
            "input_schema": self._tool.input_schema,
            "annotations": None if about is None else about.model_dump(mode="json", by_alias=True, exclude_none=True),
        }

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        about = shortened(self._tool.description or self._tool.title or "", _MAX_ABOUT)
        parameters = {"type": "object"} if self.problem else self._tool.input_schema
        function = {"name": self.name, "description": about, "parameters": parameters}
        return {"type": "function", "function": function}

    async def call(self, arguments: str) -> str | Illustrated:
        """What the server answers. Raises CallFailed with the server's own words, or where it has ended."""
        return await self._server.call(self._tool.name, object_of(arguments))


@dataclass(frozen=True, slots=True)
class McpOffer:
    """What an MCP server has beside tools: a resource, by its address or a pattern of addresses, or a prompt."""

    server: str
    kind: Literal["resource", "prompt"]
    name: str
    description: str


@asynccontextmanager
async def mcp_tools(
    config: Mapping[str, Any], *, allow: Collection[str] | None = None, deny: Collection[str] = ()
) -> AsyncGenerator[list[McpTool], None]:
    """The tools of all servers of a configuration, named `server_tool`, while the context is open.

    `allow` and `deny` are names in that form. Raises InvalidTool for a configuration, and for a server that does not
    start within half a minute or does not list its tools.
    """
    async with _running(config) as servers:
        tools = _apart(await _of_each(server.tools() for server in servers))
        yield [tool for tool in tools if (allow is None or tool.name in allow) and tool.name not in deny]


async def mcp_offers(config: Mapping[str, Any]) -> tuple[list[McpTool], list[McpOffer]]:
    """The tools of all servers of a configuration, to look at, and their resources and prompts.

    Raises InvalidTool as `mcp_tools` does.
    """
    async with _running(config) as servers:
        tools = await _of_each(server.tools() for server in servers)
        offers = await _of_each(server.offers() for server in servers)
        return _apart(tools), [offer for listed in offers for offer in listed]


def mcp_servers(config: Mapping[str, Any], rest: float = math.inf) -> dict[str, McpServer]:
    """The servers of a configuration by their names, none of them started; whoever uses one stops it in the end.

    One that ends is started again once, and once more in every `rest` seconds. Raises InvalidTool.
    """
    return {name: McpServer(name, _Target.of(name, given), rest) for name, given in _listed(config).items()}


@asynccontextmanager
async def _running(config: Mapping[str, Any]) -> AsyncGenerator[list[McpServer], None]:
    """The servers of a configuration, which are started when they are asked, and stopped in the end."""
    servers = list(mcp_servers(config).values())
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.stop)
        yield servers


async def _of_each(asked: Iterable[Coroutine[Any, Any, _Item]]) -> list[_Item]:
    """What all give, side by side; raised is the first error, when all have ended."""
    made = await asyncio.gather(*asked, return_exceptions=True)
    for one in made:
        if isinstance(one, BaseException):
            raise one
    return [one for one in made if not isinstance(one, BaseException)]


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a server is: what starts it, or its address."""

    stdio: StdioServerParameters | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def of(name: str, given: Any) -> _Target:
        if isinstance(given, Mapping):
            said = cast("Mapping[str, Any]", given)
            if isinstance(said.get("command"), str):
                fields = {key: said[key] for key in ("command", "args", "env", "cwd") if said.get(key) is not None}
                try:
                    return _Target(StdioServerParameters.model_validate(fields))
                except ValidationError as error:
                    raise InvalidTool(f"the MCP server {name!r}: {wrong_at(error)}") from error
            if isinstance(said.get("url"), str):
                return _Target(url=said["url"], headers=said.get("headers") or {})
        raise InvalidTool(f'the MCP server {name!r} must be {{"command": …, "args": […]}} or {{"url": …}}')

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Client, None]:
        if self.stdio is not None:
            async with Client(self.stdio, raise_exceptions=False) as client:
                yield client
            return
        trust = takes_proxies(self.url)
        async with (
            # Calls have their own time.
            httpx2.AsyncClient(headers=dict(self.headers), timeout=None, verify=trusted(), trust_env=trust) as http,
            Client(streamable_http_client(self.url, http_client=http)) as client,
        ):
            yield client


class McpServer:
    """One server, kept by a task of its own: what opens a connection must close it.

    It is started when it is first asked. Who asks meanwhile waits for the same start, which goes on when they leave.
    """

    def __init__(self, name: str, target: _Target, rest: float = math.inf) -> None:
        self.name, self.url = name, target.url
        self.known: Sequence[McpTool] = ()  # the tools that it listed last
        self._target, self._rest = target, rest
        self._starts: list[float] = []  # when
        self._failure = ""  # why the last start was none
        self._ready: asyncio.Future[Client] | None = None
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def tools(self) -> Sequence[McpTool]:
        """All tools of the server, started if need be. Raises InvalidTool."""
        found = await self._listed("tools", lambda client: _pages(client.list_tools, lambda page: page.tools))
        problems = await asyncio.to_thread(lambda: [problem_of(tool.input_schema) for tool in found])
        listed = zip(found, problems, strict=True)
        self.known = _apart(
            [[McpTool(tool_name(self.name, tool.name), writes(tool), problem, self, tool) for tool, problem in listed]]
        )
        return self.known

    async def offers(self) -> Sequence[McpOffer]:
        """Its resources and prompts, where it has some. Raises InvalidTool."""
        return await self._listed("resources and prompts", self._offers)

    async def _listed(self, what: str, ask: Callable[[Client], Awaitable[_Item]]) -> _Item:
        """What it lists, in time. One that has ended meanwhile is started again: no call is lost by that."""
        try:
            while True:
                client = await self._connected()
                try:
                    async with asyncio.timeout(_SECONDS):
                        return await ask(client)
                except MCPError as error:
                    if error.code != types.CONNECTION_CLOSED:
                        raise
                    await self._ended(client)
        except TimeoutError as error:
            raise InvalidTool(f"the MCP server {self.name!r} did not list its {what} within {_SECONDS:g} s") from error
        except (MCPError, CallFailed) as error:
            raise InvalidTool(f"the MCP server {self.name!r} does not list its {what}: {error}") from error
        except ValidationError as error:
            raise InvalidTool(
                f"the MCP server {self.name!r} lists its {what} not as MCP has it: {wrong_at(error)}"
            ) from error

    async def _offers(self, client: Client) -> Sequence[McpOffer]:
        found: list[McpOffer] = []
        has = client.server_capabilities
        if has.resources is not None:
            resources = await _pages(client.list_resources, lambda page: page.resources)
            found += [self._offer("resource", each.uri, each.description or each.name) for each in resources]
            patterns = await _pages(client.list_resource_templates, lambda page: page.resource_templates)
            found += [self._offer("resource", each.uri_template, each.description) for each in patterns]
        if has.prompts is not None:
            prompts = await _pages(client.list_prompts, lambda page: page.prompts)
            found += [self._offer("prompt", each.name, each.description) for each in prompts]
        return found

    def _offer(self, kind: Literal["resource", "prompt"], name: Any, about: str | None) -> McpOffer:
        return McpOffer(self.name, kind, str(name), shortened(about or "", _MAX_ABOUT))

    async def call(self, tool: str, arguments: dict[str, Any]) -> str | Illustrated:
        """What it answers. Raises CallFailed with its own words, or where it has ended; InvalidTool."""
        client = await self._connected()
        try:
            result = await client.call_tool(tool, arguments, progress_callback=_progress(copy_context()))
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED:
                raise CallFailed(str(error)) from error
            await self._ended(client)
            raise CallFailed(f"The server {self.name} ended before it gave a result.") from error
        except ValidationError as error:
            raise CallFailed(f"The server {self.name} gave a result that is none in MCP: {wrong_at(error)}") from error
        # Large images take a while.
        shown = await in_thread(partial(result_of, result.content))
        if not shown and result.structured_content is not None:
            shown = json.dumps(result.structured_content, ensure_ascii=False)
        if result.is_error:
            raise CallFailed((shown if isinstance(shown, str) else shown.text) or "The call failed.")
        return shown

    async def stop(self) -> None:
        """End the connection, and the server where it was started here."""
        ready, task, self._ready, self._task = self._ready, self._task, None, None
        self._leave.set()
        if task is not None:
            if ready is not None and not ready.done():  # it has not answered yet, and may never do
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _connected(self) -> Client:
        if self._ready is None:
            self._start()
        return await asyncio.shield(cast("asyncio.Future[Client]", self._ready))

    def _start(self) -> None:
        now = time.monotonic()
        self._starts = [at for at in self._starts if now - at < self._rest]
        if len(self._starts) == _STARTS:
            if self._failure:
                raise InvalidTool(self._failure)
            raise CallFailed(f"The server {self.name} has ended again and is not started any more.")
        self._starts.append(now)
        self._leave = asyncio.Event()
        self._ready = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(lambda made: made.cancelled() or made.exception())  # nobody may wait any more
        self._task = asyncio.create_task(self._kept(self._ready, self._leave))

    async def _ended(self, client: Client) -> None:
        if self._ready is not None and self._ready.done() and self._ready.result() is client:
            await self.stop()

    async def _kept(self, ready: asyncio.Future[Client], leave: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(_SECONDS) as limit, self._target.connected() as client:
                limit.reschedule(None)
                self._failure = ""
                ready.set_result(client)
                await leave.wait()
        except BaseException as error:
            if ready.done():
                raise
            why = f" within {_SECONDS:g} s" if isinstance(error, TimeoutError) else f": {_cause(error)}"
            if self.url:
                why = why.replace(self.url, self.url.partition("?")[0])  # behind it some have their keys
            self._failure = f"the MCP server {self.name!r} does not start{why}"
            ready.set_exception(InvalidTool(self._failure))
        finally:
            if self._ready is ready:
                self._ready = None


async def _pages(ask: Callable[..., Awaitable[Any]], listed: Callable[[Any], Sequence[_Item]]) -> list[_Item]:
    """What all pages of a list have; none where the server has no such list."""
    found: list[_Item] = []
    cursor: str | None = None
    while True:
        try:
            page = await ask(cursor=cursor)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            return found
        found += listed(page)
        if (cursor := page.next_cursor) is None:
            return found


def _progress(called: Context) -> ProgressFnT:
    """What tells progress to those that wait for the call, in whose context it was made."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        called.run(report_progress, progress, total, message or "")

    return told


def _cause(error: BaseException) -> BaseException:
    """The first of what a group of tasks raised."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _listed(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in ("mcpServers", "servers"):
        if isinstance(config.get(key), Mapping):
            return cast("Mapping[str, Any]", config[key])
    raise InvalidTool('the MCP configuration must be {"mcpServers": {NAME: {"command": …} or {"url": …}}}')


def _apart(listings: Iterable[Iterable[McpTool]]) -> list[McpTool]:
    """The tools of several lists: what one server lists twice is one, and where others would have one name, later ones
    end in a digest."""
    found: dict[str, McpTool] = {}
    for tool in chain.from_iterable(listings):
        other, name = found.get(tool.name), tool.name
        if other is not None and other.origin == tool.origin:
            continue
        if other is not None:
            digest = sha256("\0".join(tool.origin).encode(errors="surrogatepass")).hexdigest()[:8]
            name = f"{name[: MAX_NAME - 9]}_{digest}"
        found[name] = replace(tool, name=name)
    return list(found.values())
