"""`/v1/tools/import`: the tools of a document, as a chat-completions request has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from starlette.requests import Request
from starlette.types import ASGIApp

from toolgram.agent.openapi import openapi_tools
from toolgram.agent.tools import InvalidTool
from toolgram.api.tools import openai_tools, read_import_request
from toolgram.errors import InvalidRequest
from toolgram.server.context import Desk, json_response
from toolgram.server.sse import while_connected
from toolgram.work import MAX_WORK, TooLarge, in_thread, limited

_NOWHERE = "http://localhost/"  # where a document without an address of its own would be: nothing is called
_NONE = "neither an OpenAPI document, nor what an MCP server answers to tools/list, nor a list of tools"
_CONFIGURATION = (
    "this is the configuration of MCP servers, and this server starts nothing that a request names: "
    "`toolgram tools list FILE --json` prints their tools, which can be given here"
)


async def import_tools(desk: Desk, request: Request) -> ASGIApp:
    """The tools of an OpenAPI document, of an answer of MCP's, or of another API; nothing is run or fetched."""
    document = await desk.body(request, read_import_request)
    async with desk.admission.planning():
        tools = await while_connected(request.receive, in_thread(_tools, document))
    return json_response(request, {"tools": tools})


def _tools(document: Any) -> list[Any]:
    if isinstance(document, Mapping):
        given = cast("Mapping[str, Any]", document)
        if "openapi" in given or "swagger" in given:
            return _operations(given)
        if "mcpServers" in given or "servers" in given:
            raise InvalidRequest("/document", _CONFIGURATION)
        document = given.get("result", given)  # an answer in JSON-RPC
    found = openai_tools(document)
    if found is None:
        raise InvalidRequest("/document", _NONE)
    if odd := [at for at, tool in enumerate(found) if not _is_tool(tool)]:
        raise InvalidRequest("/document", f"number {odd[0] + 1} of its list is no tool")
    return found


def _operations(document: Mapping[str, Any]) -> list[Any]:
    try:
        with limited(MAX_WORK):
            return [tool.to_openai() for tool in openapi_tools(document, _NOWHERE)]
    except InvalidTool as error:
        raise InvalidRequest("/document", str(error)) from error
    except TooLarge as error:
        reason = "its tools are too large together: give a document with fewer operations"
        raise InvalidRequest("/document", reason) from error


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, Mapping) and any(
        isinstance(cast("Mapping[str, Any]", tool).get(kind), Mapping) for kind in ("function", "custom")
    )
