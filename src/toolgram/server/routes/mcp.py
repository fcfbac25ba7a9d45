"""Which MCP servers there are, and a call of one of their tools: for pages and programs that let somebody choose."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.agent.calls import result_of
from toolgram.agent.runs import Limits
from toolgram.agent.tools import InvalidTool
from toolgram.api.tools import McpCallBody, read_mcp_call
from toolgram.conversation.message import ToolCall
from toolgram.errors import InvalidRequest
from toolgram.server.context import Desk, json_response
from toolgram.server.sse import while_connected

if TYPE_CHECKING:
    from toolgram.agent.mcp import McpServer  # of an extra


async def mcp_servers(desk: Desk, request: Request) -> ASGIApp:
    """The MCP servers of the configuration with their tools; none without `toolgram serve --mcp`.

    The tools are as a `mcp_list_tools` item of `/v1/responses` has them, whose tools of `{"type": "mcp"}` name a server
    by its `server_label`. A server that does not start, or does not list its tools, has an `error` and no tools::

        {"object": "list", "data": [{"object": "mcp.server", "server_label": "files", "transport": "stdio",
            "error": null, "tools": [{"name": "read", "description": "…", "input_schema": {…}, "annotations": {…}}]}]}

    Each is asked anew, and started if need be, side by side and for half a minute at most.
    """
    listed = await while_connected(request.receive, _all(desk))
    return json_response(request, {"object": "list", "data": listed})


async def mcp_call(desk: Desk, request: Request) -> ASGIApp:
    """What a tool of a configured server answers, within an agent's limits of time and size.

    A tool that writes is called only with `approve`: whoever sends that has asked.
    """
    body = await desk.body(request, read_mcp_call)
    return json_response(request, await desk.whole(request, _called(desk, body)))


async def _called(desk: Desk, body: McpCallBody) -> dict[str, Any]:
    if (server := desk.mcp.get(body.server_label)) is None:
        raise InvalidRequest("/server_label", f"there is no MCP server {body.server_label!r}")
    try:
        tool = {tool.own_name: tool for tool in await server.tools()}.get(body.name)
    except InvalidTool as error:
        raise InvalidRequest("/server_label", str(error)) from error
    if tool is None:
        raise InvalidRequest("/name", f"the MCP server {body.server_label!r} has no tool {body.name!r}")
    if tool.writes and not body.approve:
        raise InvalidRequest("/approve", f"{body.name} may change something: ask, then send true")
    result = await result_of(ToolCall(body.name, body.arguments), {body.name: tool}, Limits())
    output, error = (None, result.text) if result.is_error else (result.text, None)
    told = {"server_label": body.server_label, "name": body.name, "arguments": body.arguments}
    return {"object": "mcp.call", **told, "output": output, "error": error}


async def _all(desk: Desk) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*(_told(server) for server in desk.mcp.values())))


async def _told(server: McpServer) -> dict[str, Any]:
    error, tools = None, list[dict[str, Any]]()
    try:
        tools = [tool.listed() for tool in await server.tools()]
    except InvalidTool as raised:
        error = str(raised)
    transport = "http" if server.url else "stdio"
    told = {"server_label": server.name, "transport": transport, "error": error, "tools": tools}
    return {"object": "mcp.server", **told}
