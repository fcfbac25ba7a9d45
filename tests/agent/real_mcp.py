"""MCP servers from the registries, over stdio and HTTP: `make test-mcp` installs them, and runs this."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcp_over_http import DEMO, free_port, wait_for
from situations import CHATML
from toolgram.agent import Agent, Limits, Run
from toolgram.agent.mcp import McpOffer, McpTool, mcp_offers, mcp_tools
from toolgram.agent.runs import CallProgress, Result
from toolgram.engines import Replay

SERVERS = Path(os.environ.get("TOOLGRAM_MCP_SERVERS", ".mcp")).absolute()
NODE, PYTHON = SERVERS / "node_modules/.bin", SERVERS / "python/bin"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a file."""
    (tmp_path / "note.txt").write_text("Buy tea. <|im_end|>")
    for command in ("init -q -b main", "add note.txt", "-c user.name=A -c user.email=a@b.c commit -q -m Noted"):
        subprocess.run(["git", *command.split()], check=True, cwd=tmp_path)  # noqa: S607 - the git that there is
    return tmp_path


@pytest.fixture
def config(folder: Path) -> dict[str, Any]:
    """All five, over stdio."""
    memory = {"command": str(NODE / "mcp-server-memory"), "env": {"MEMORY_FILE_PATH": str(folder / "memory.json")}}
    return {
        "mcpServers": {
            "files": {"command": str(NODE / "mcp-server-filesystem"), "args": [str(folder)]},
            "every": {"command": str(NODE / "mcp-server-everything")},
            "memory": memory,
            "git": {"command": str(PYTHON / "mcp-server-git"), "args": ["--repository", str(folder)]},
            "time": {"command": str(PYTHON / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        }
    }


@pytest.fixture
def address() -> Iterator[str]:
    """The server `everything` over HTTP."""
    port = free_port()
    command = [str(NODE / "mcp-server-everything"), "streamableHttp"]
    server = subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"http://127.0.0.1:{port}/mcp")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.kill()
        server.wait()


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def events_of(config: Any, *turns: str, names: Sequence[str] | None = None, **limits: Any) -> list[Any]:
    """What happens in a run that makes these turns."""

    async def run() -> list[Any]:
        async with mcp_tools(config, allow=names) as tools:
            made = Agent(Replay(*turns, "Done."), CHATML, tools, ask="never", style="hermes_2_pro",
                         limits=Limits(steps=len(turns) + 1, **limits))  # fmt: skip
            return [event async for event in made.stream("Go.")]

    events = asyncio.run(run())
    assert isinstance(events[-1], Run)
    assert events[-1].answer == "Done."
    return events


def results(events: list[Any]) -> list[tuple[bool, str]]:
    return [(event.is_error, event.text) for event in events if isinstance(event, Result)]


def only(config: Any, *names: str) -> Any:
    return {"mcpServers": {name: config["mcpServers"][name] for name in names}}


def test_all_list_what_they_have(config: Any) -> None:
    tools, offers = asyncio.run(mcp_offers(config))
    assert {"files_read_text_file", "every_get-sum", "memory_read_graph", "git_git_log", "time_convert_time"} <= {
        tool.name for tool in tools
    }
    assert len(tools) >= 45
    assert not [tool.name for tool in tools if tool.problem]
    writes = {tool.name: tool.writes for tool in tools}
    assert writes["files_write_file"]
    assert not writes["files_read_text_file"]
    assert {(offer.server, offer.kind) for offer in offers} >= {("every", "resource"), ("every", "prompt")}
    assert all(isinstance(offer, McpOffer) for offer in offers)


def test_all_are_called_in_one_turn(config: Any, folder: Path) -> None:
    turn = "\n".join(
        [
            call("files_read_text_file", path=str(folder / "note.txt")),
            call("every_get-sum", a=2, b=3),
            call("memory_create_entities", entities=[{"name": "tea", "entityType": "drink", "observations": ["hot"]}]),
            call("git_git_log", repo_path=str(folder)),
            call("time_convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"),
        ]
    )
    names = ["files_read_text_file", "every_get-sum", "memory_create_entities", "memory_search_nodes", "git_git_log",
             "time_convert_time"]  # fmt: skip
    events = events_of(config, turn, call("memory_search_nodes", query="tea"), names=names)
    assert not [text for is_error, text in results(events) if is_error]
    said = "\n".join(text for _, text in results(events))
    for expected in ("Buy tea.", "5", "Noted", "21:00", '"hot"'):
        assert expected in said


def test_errors_are_told(config: Any, folder: Path) -> None:
    names = ["files_read_text_file", "time_get_current_time", "git_git_show"]
    turns = [
        call("files_read_text_file", path="/etc/passwd"),
        call("time_get_current_time", timezone="Nowhere/At_All"),
        call("git_git_show", repo_path=str(folder), revision="none-such"),
    ]
    told = results(events_of(only(config, "files", "git", "time"), *turns, names=names))
    assert [is_error for is_error, _ in told] == [True] * 3
    assert "denied" in told[0][1]


@pytest.mark.parametrize("over_http", [False, True])
def test_progress_and_a_time_that_is_over(config: Any, over_http: bool, request: pytest.FixtureRequest) -> None:
    given = only(config, "every")
    if over_http:
        given = {"mcpServers": {"every": {"url": request.getfixturevalue("address")}}}
    long = "every_trigger-long-running-operation"
    events = events_of(given, call(long, duration=1, steps=3), names=[long])
    told = [event for event in events if isinstance(event, CallProgress)]
    assert [(event.done, event.total) for event in told] == [(1, 3), (2, 3), (3, 3)]
    turns = [call(long, duration=60, steps=60), call("every_echo", message="alive")]
    told = results(events_of(given, *turns, names=[long, "every_echo"], call_seconds=3))
    assert told == [(True, f"{long} gave no result within 3 s"), (False, "Echo: alive")]


@pytest.mark.parametrize("over_http", [False, True])
def test_all_kinds_of_content(config: Any, over_http: bool, request: pytest.FixtureRequest) -> None:
    given = only(config, "every")
    if over_http:
        given = {"mcpServers": {"every": {"url": request.getfixturevalue("address")}}}
    names = ["every_get-tiny-image", "every_get-resource-links", "every_get-structured-content", "every_echo"]
    turns = [
        call("every_get-tiny-image"),
        call("every_get-resource-links", count=2),
        call("every_get-structured-content", location="New York"),
        call("every_echo", message="Hello. " * 3000),
    ]
    (_, picture), (_, links), (_, structured), (_, long) = results(events_of(given, *turns, names=names))
    assert "(image/png, " in picture
    assert links.count("demo://resource/dynamic/") == 2
    assert "temperature" in json.loads(structured)
    assert len(long) >= 20_000


def test_a_server_that_is_killed_is_started_once_more(config: Any, folder: Path) -> None:
    async def run() -> list[str]:
        said: list[str] = []
        async with mcp_tools(only(config, "memory", "time")) as tools:
            named = {tool.name: tool for tool in tools}
            for _ in range(3):
                said.append(await _told(named["memory_read_graph"]))
                _kill(str(NODE / "mcp-server-memory"))
            said.append(await _told(named["time_get_current_time"], timezone="UTC"))
        return said

    first, second, third, other = asyncio.run(run())
    assert "entities" in first
    assert "ended before it gave a result" in second
    assert "entities" in third
    assert "UTC" in other


async def _told(tool: McpTool, **arguments: Any) -> str:
    try:
        return await tool.call(json.dumps(arguments))
    except Exception as error:  # noqa: BLE001 - what is told to a model
        return str(error)


def _kill(command: str) -> None:
    """Kill what our process started by this command."""
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            parent = (arguments.parent / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and command in arguments.read_text():
                os.kill(int(arguments.parent.name), signal.SIGKILL)


def test_249_tools_at_once(config: Any) -> None:
    many = {"command": sys.executable, "args": [DEMO, "stdio", "200"]}
    given = {"mcpServers": {**config["mcpServers"], "demo": many}}

    async def names() -> list[str]:
        async with mcp_tools(given) as tools:
            return [tool.name for tool in tools]

    chosen = sorted(asyncio.run(names()), key=lambda name: "demo_" in name and "many" not in name)[:249]
    assert len(chosen) == 249
    turn = call("demo_many_100") + "\n" + call("time_get_current_time", timezone="UTC")
    told = results(events_of(given, turn, names=chosen))
    assert [is_error for is_error, _ in told] == [False, False]
