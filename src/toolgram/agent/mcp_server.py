"""Python functions as an MCP server, over stdio."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from toolgram.errors import needing

with needing("mcp", "an MCP server"):
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

from toolgram.agent.calls import Called, Tool, result_of
from toolgram.agent.runs import Limits, Result
from toolgram.agent.tools import FunctionTool
from toolgram.conversation.message import ToolCall


def mcp_server(name: str, tools: Sequence[FunctionTool | Tool], limits: Limits | None = None) -> Server[Any]:
    """A server that offers these tools; what they raise is a result that is an error."""
    limits = limits or Limits()
    most = limits.result_characters
    named = {tool.name: Called(tool, most) if isinstance(tool, FunctionTool) else tool for tool in tools}

    async def on_list(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_offered(tool) for tool in tools])

    async def on_call(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = ToolCall(params.name, json.dumps(params.arguments or {}))
        result = await result_of(call, named, limits)
        return types.CallToolResult(content=_content(result), is_error=result.is_error)

    return Server(name, on_list_tools=on_list, on_call_tool=on_call)


async def serve(name: str, tools: Sequence[FunctionTool | Tool], limits: Limits | None = None) -> None:
    """Answer on stdin and stdout, until stdin ends."""
    server = mcp_server(name, tools, limits)
    async with stdio_server() as (reading, writing):
        # What functions print is no message of the protocol, and none that is written when all has ended.
        with redirect_stdout(sys.stderr):
            await server.run(reading, writing, server.create_initialization_options())


def _content(result: Result) -> list[types.ContentBlock]:
    """A text, and images where there are some."""
    told = result.told(sees=True)
    urls = () if told.illustrated is None else told.illustrated.images
    images = (url.removeprefix("data:").partition(";base64,") for url in urls)
    shown = (types.ImageContent(type="image", data=data, mime_type=kind) for kind, _, data in images)
    return [types.TextContent(type="text", text=told.text), *shown]


def _offered(tool: FunctionTool | Tool) -> types.Tool:
    function = tool.to_openai()["function"]
    return types.Tool(
        name=tool.name,
        description=function["description"],
        input_schema=dict(function["parameters"]),
        annotations=types.ToolAnnotations(read_only_hint=False) if tool.writes else None,
    )
