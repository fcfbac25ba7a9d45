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
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

import httpx2
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

from toolgram.agent.calls import CallFailed
from toolgram.agent.results import shortened
from toolgram.agent.tools import InvalidTool
from toolgram.errors import ToolgramError
from toolgram.schema import schema_grammar

_MAX_NAME = 64  # characters of a name that every API takes
_MAX_ABOUT = 10_000  # characters of a description
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_STARTS = 2  # of a server: the first, and one more when it has ended
_SECONDS = 30.0  # that a server has to start, and to list its tools


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server; it writes unless the server says that it only reads.

    Where the schema of its arguments cannot be read there is a `problem`: then it takes any object.
    """

    name: str
    writes: bool
    problem: str
    _server: _Server = field(repr=False)
    _tool: types.Tool = field(repr=False)

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        about = shortened(self._tool.description or self._tool.title or "", _MAX_ABOUT)
        parameters = {"type": "object"} if self.problem else self._tool.input_schema
        function = {"name": self.name, "description": about, "parameters": parameters}
        return {"type": "function", "function": function}

    async def call(self, arguments: str) -> str:
        """What the server answers, as text. Raises CallFailed with the server's own words, or where it has ended."""
        return await self._server.call(self._tool.name, json.loads(arguments))


@asynccontextmanager
async def mcp_tools(
    config: Mapping[str, Any], *, allow: Collection[str] | None = None, deny: Collection[str] = ()
) -> AsyncGenerator[list[McpTool], None]:
    """The tools of all servers of a configuration, named `server_tool`, while the context is open.

    `allow` and `deny` are names in that form. Raises InvalidTool for a configuration, and for a server that does not
    start within half a minute or does not list its tools.
    """
    servers = [_Server(name, _Target.of(name, given)) for name, given in _listed(config).items()]
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.stop)
        listed = await asyncio.gather(*(server.tools() for server in servers), return_exceptions=True)
        for one in listed:
            if isinstance(one, BaseException):
                raise one
        tools = [tool for one in listed if not isinstance(one, BaseException) for tool in one]
        yield [tool for tool in tools if (allow is None or tool.name in allow) and tool.name not in deny]


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
                return _Target(StdioServerParameters.model_validate(fields))
            if isinstance(said.get("url"), str):
                return _Target(url=said["url"], headers=said.get("headers") or {})
        raise InvalidTool(f'the MCP server {name!r} must be {{"command": …, "args": […]}} or {{"url": …}}')

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Client, None]:
        if self.stdio is not None:
            async with Client(self.stdio, raise_exceptions=False) as client:
                yield client
            return
        async with (
            httpx2.AsyncClient(headers=dict(self.headers), timeout=None) as http,  # calls have their own time
            Client(streamable_http_client(self.url, http_client=http)) as client,
        ):
            yield client


class _Server:
    """One server, kept by a task of its own: what opens a connection must close it."""

    def __init__(self, name: str, target: _Target) -> None:
        self._name, self._target = name, target
        self._starts = 0
        self._lock = asyncio.Lock()
        self._client: Client | None = None
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def tools(self) -> Sequence[McpTool]:
        """All tools of the server, started if need be."""
        try:
            async with asyncio.timeout(_SECONDS):
                client = await self._connected()
                found: list[types.Tool] = []
                cursor: str | None = None
                while True:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    if (cursor := page.next_cursor) is None:
                        break
        except TimeoutError as error:
            raise InvalidTool(f"the MCP server {self._name!r} did not list its tools within {_SECONDS:g} s") from error
        except MCPError as error:
            raise InvalidTool(f"the MCP server {self._name!r} does not list its tools: {error}") from error
        problems = await asyncio.to_thread(lambda: [_problem(tool.input_schema) for tool in found])
        return [
            McpTool(_tool_name(self._name, tool.name), _writes(tool), problem, self, tool)
            for tool, problem in zip(found, problems, strict=True)
        ]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        client = await self._connected()
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED:
                raise CallFailed(str(error)) from error
            await self._ended(client)
            raise CallFailed(f"The server {self._name} ended before it gave a result.") from error
        text = "\n".join(map(_text, result.content))
        if not text and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)
        if result.is_error:
            raise CallFailed(text or "The call failed.")
        return text

    async def stop(self) -> None:
        """End the connection, and the server where it was started here."""
        self._leave.set()
        if self._task is not None:
            if self._client is None:  # it has not answered yet, and may never do
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _connected(self) -> Client:
        async with self._lock:
            if self._client is None:
                if self._starts == _STARTS:
                    raise CallFailed(f"The server {self._name} has ended again and is not started any more.")
                self._starts += 1
                self._leave = asyncio.Event()
                ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
                self._task = asyncio.create_task(self._kept(ready, self._leave))
                self._client = await ready
            return self._client

    async def _ended(self, client: Client) -> None:
        async with self._lock:
            if self._client is client:
                await self.stop()
                self._client = None

    async def _kept(self, ready: asyncio.Future[Client], leave: asyncio.Event) -> None:
        try:
            async with self._target.connected() as client:
                if not ready.done():
                    ready.set_result(client)
                await leave.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(InvalidTool(f"the MCP server {self._name!r} does not start: {_cause(error)}"))


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


def _tool_name(server: str, tool: str) -> str:
    """`server_tool`, in characters that every API takes; one that is too long ends in a digest of the whole."""
    name = _NOT_IN_NAMES.sub("_", f"{server}_{tool}")
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def _problem(schema: Mapping[str, Any]) -> str:
    """Why no tool can have this schema, which one tool among many must not tell all others' users; else ""."""
    try:
        schema_grammar(schema, mode="relaxed")
    except (ToolgramError, RecursionError) as error:
        return str(error)
    return ""


def _writes(tool: types.Tool) -> bool:
    return tool.annotations is None or tool.annotations.read_only_hint is not True


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case types.ResourceLink():
            return f"({block.name}: {block.uri})"
        case types.ImageContent() | types.AudioContent():
            return f"({block.mime_type}, {len(block.data) * 3 // 4} bytes, which is not shown)"
        case _:
            return "(binary data, which is not shown)"
