"""Which MCP servers there are, for pages and programs that let somebody choose."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.agent.tools import InvalidTool
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
