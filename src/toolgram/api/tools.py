"""Tools as others write them, in the shape of a chat-completions request; bodies of the routes of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, WithJsonSchema

from toolgram.conversation.fields import Fields, Filled, json_of, validated, wrong


def _document(value: Any) -> Any:
    if not isinstance(value, Mapping | list):
        raise wrong("must be an object or an array")
    return cast("Any", value)


class ImportBody(Fields):
    """A document with tools: OpenAPI 3, what an MCP server answers to `tools/list`, or tools of any API."""

    document: Annotated[
        Any, AfterValidator(_document), WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "array"}]})
    ]


class McpCallBody(Fields):
    """A call of a tool of a configured MCP server; `arguments` are JSON text, and `approve` says that it was asked."""

    server_label: Filled
    name: Filled
    arguments: str
    approve: bool | None = None


def read_mcp_call(body: Any) -> McpCallBody:
    """A call. Raises InvalidRequest."""
    return validated(McpCallBody, json_of(body))


def read_import_request(body: Any) -> Any:
    """The document. Raises InvalidRequest."""
    return validated(ImportBody, json_of(body)).document


def openai_tools(given: Any) -> list[Any] | None:
    """One tool, a list of them, or `{"tools": […]}`, each as OpenAI, Anthropic or MCP writes it, as in a chat.

    None where it is neither. What is in a list is left as it is where it is no tool of these.
    """
    if isinstance(given, Mapping):
        held = cast("Mapping[str, Any]", given)
        if isinstance(listed := held.get("tools"), list):
            given = cast("list[Any]", listed)
        elif {"name", "function", "type"} & held.keys():
            given = [held]
    return [_openai_tool(tool) for tool in cast("list[Any]", given)] if isinstance(given, list) else None


def _openai_tool(tool: Any) -> Any:
    """A tool of Anthropic's (`input_schema`), MCP's (`inputSchema`) or OpenAI's responses' shape as in a chat."""
    if not isinstance(tool, Mapping) or "name" not in tool:
        return cast("Any", tool)
    given = cast("Mapping[str, Any]", tool)
    function = {key: given[key] for key in ("name", "description", "strict") if given.get(key) is not None}
    for key in ("parameters", "input_schema", "inputSchema"):
        if key in given:
            return {"type": "function", "function": {**function, "parameters": given[key]}}
    return {"type": "function", "function": function} if given.get("type", "function") == "function" else given
