"""The MCP servers of the configuration: what they list, for requests that ask for their tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgram.agent.mcp import McpServer  # of an extra

_REST = 60.0  # seconds in which a server that ends again is not started once more


def servers_of(config: Mapping[str, Any] | None) -> dict[str, McpServer]:
    """The servers of a configuration by their names, none of them started. Raises InvalidTool."""
    if config is None:
        return {}
    from toolgram.agent.mcp import mcp_servers

    return mcp_servers(config, _REST)
