"""`/v1/mcp/call`: tools of configured servers are called, those that write only where somebody was asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

DEMO = str(Path(__file__).parents[1] / "agent" / "mcp_demo.py")
CONFIG: Any = {
    "mcpServers": {"demo": {"command": sys.executable, "args": [DEMO]}, "gone": {"command": "there-is-none"}}
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Replay(), Settings(api_keys=("right",), mcp=CONFIG)) as at:
        yield at


def called(address: str, name: str, arguments: str = "{}", key: str = "right", **fields: Any) -> httpx2.Response:
    body = {"server_label": "demo", "name": name, "arguments": arguments, **fields}
    return httpx2.post(f"{address}/v1/mcp/call", json=body, headers={"x-api-key": key}, timeout=60)


def test_a_tool_that_reads_is_called(address: str) -> None:
    assert called(address, "add", '{"a": 2, "b": 3}').json() == {
        "object": "mcp.call",
        "server_label": "demo",
        "name": "add",
        "arguments": '{"a": 2, "b": 3}',
        "output": "5",
        "error": None,
    }


def test_a_tool_that_may_write_needs_an_approval(address: str) -> None:
    refused = called(address, "count", '{"to": 2}')
    assert refused.status_code == 400
    assert refused.json()["error"]["pointer"] == "/approve"
    assert called(address, "count", '{"to": 2}', approve=False).status_code == 400
    assert called(address, "count", '{"to": 2}', approve=True).json()["output"] == "counted"


@pytest.mark.parametrize("arguments", ["{", "[]", '{"a": "x", "b": 1}'])
def test_what_a_tool_says_is_wrong_is_no_error_of_the_server(address: str, arguments: str) -> None:
    answer = called(address, "add", arguments)
    assert answer.status_code == 200
    assert answer.json()["output"] is None
    assert answer.json()["error"]


def test_a_call_that_fails_says_why(address: str) -> None:
    assert "Error executing tool fail" in called(address, "fail", approve=True).json()["error"]


@pytest.mark.parametrize(
    ("fields", "pointer", "told"),
    [
        ({"server_label": "other"}, "/server_label", "there is no MCP server 'other'"),
        ({"server_label": "gone"}, "/server_label", "does not start"),
        ({"name": "demo_add"}, "/name", "has no tool 'demo_add'"),
    ],
)
def test_what_there_is_not_is_told(address: str, fields: dict[str, str], pointer: str, told: str) -> None:
    answer = called(address, **{"name": "add", **fields})
    assert answer.status_code == 400
    assert answer.json()["error"]["pointer"] == pointer
    assert told in answer.json()["error"]["message"]


def test_a_key_is_needed(address: str) -> None:
    assert called(address, "add", key="wrong").status_code == 401
