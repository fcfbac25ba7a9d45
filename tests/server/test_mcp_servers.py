"""Which MCP servers a server has, and how those of a long-lived one are started, kept and ended."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from live_server import serving
from situations import CHATML
from toolgram.agent import InvalidTool
from toolgram.agent.calls import CallFailed
from toolgram.agent.mcp import McpServer, mcp_servers
from toolgram.engines.replay import Replay
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings

DEMO = str(Path(__file__).parents[1] / "agent" / "mcp_demo.py")
CONFIG: Any = {
    "mcpServers": {"demo": {"command": sys.executable, "args": [DEMO]}, "gone": {"command": "there-is-none"}}
}


def test_the_servers_and_their_tools_are_listed() -> None:
    with serving(Replay("x"), Settings(mcp=CONFIG)) as address:
        demo, gone = httpx2.get(f"{address}/v1/mcp/servers", timeout=60).json()["data"]
    tools = {tool["name"]: tool for tool in demo.pop("tools")}
    assert demo == {"object": "mcp.server", "server_label": "demo", "transport": "stdio", "error": None}
    assert tools["add"]["description"] == "Add two numbers."
    assert tools["add"]["input_schema"]["required"] == ["a", "b"]
    assert tools["add"]["annotations"] == {"readOnlyHint": True}
    assert tools["fail"]["annotations"] is None
    assert gone["tools"] == []
    assert "the MCP server 'gone' does not start" in gone["error"]


def test_a_server_without_any_has_none() -> None:
    with serving(Replay("x")) as address:
        assert httpx2.get(f"{address}/v1/mcp/servers").json() == {"object": "list", "data": []}


def test_the_list_needs_a_key() -> None:
    with serving(Replay("x"), Settings(api_keys=("right",), mcp=CONFIG)) as address:
        assert httpx2.get(f"{address}/v1/mcp/servers").status_code == 401


def test_a_configuration_of_none_is_told_before_anything_is_served() -> None:
    wrong = Settings(mcp={"servers": {"x": {}}})
    with pytest.raises(InvalidTool, match="the MCP server 'x' must be"):
        create_app([Served("recorded", CHATML, Replay("x"))], wrong)


def with_demo(use: Callable[[McpServer], Awaitable[None]]) -> None:
    async def run() -> None:
        server = mcp_servers(CONFIG, rest=60.0)["demo"]
        try:
            await use(server)
        finally:
            await server.stop()

    asyncio.run(run())


async def die(server: McpServer) -> None:
    [end] = [tool for tool in await server.tools() if tool.own_name == "die"]
    with pytest.raises(CallFailed, match="ended before it gave a result"):
        await end.call("{}")


def test_a_server_that_ends_twice_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(server: McpServer) -> None:
        await die(server)
        await die(server)
        with pytest.raises(InvalidTool, match="not started any more"):
            await server.tools()
        later = time.monotonic() + 61
        monkeypatch.setattr("toolgram.agent.mcp.time", SimpleNamespace(monotonic=lambda: later))
        assert await server.call("add", {"a": 1, "b": 2}) == "3"

    with_demo(use)


def test_a_server_that_never_starts_is_told_as_such_again_and_again() -> None:
    async def ask() -> list[str]:
        server = mcp_servers({"servers": {"x": {"url": "http://127.0.0.1:9/mcp?key=secret"}}}, rest=60.0)["x"]
        told: list[str] = []
        for _ in range(3):
            with pytest.raises(InvalidTool) as raised:
                await server.tools()
            told.append(str(raised.value))
        return told

    told = asyncio.run(ask())
    assert len(set(told)) == 1
    assert "the MCP server 'x' does not start: " in told[0]
    assert "secret" not in told[0]


def test_a_server_that_ended_unnoticed_is_started_again_for_its_list() -> None:
    async def use(server: McpServer) -> None:
        await server.tools()
        client = await server._connected()
        with pytest.raises(MCPError):
            await client.call_tool("die", {})
        assert await server.tools()

    with_demo(use)


def test_who_leaves_while_a_server_starts_ends_no_start() -> None:
    async def use(server: McpServer) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await server.tools()
        assert await server.tools()
        assert len(server._starts) == 1

    with_demo(use)
