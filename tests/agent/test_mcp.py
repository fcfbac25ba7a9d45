"""Tools of MCP servers: real servers, in processes of their own."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mcp_over_http import DEMO, DOT, over_http
from situations import CHATML
from toolgram.agent import Agent, InvalidTool, Limits, report_progress, tools_of
from toolgram.agent.calls import CallFailed
from toolgram.agent.mcp import McpTool, mcp_tools
from toolgram.agent.runs import CallProgress, Result
from toolgram.cli.app import app
from toolgram.cli.commands.agent import _line
from toolgram.engines import Replay


def config(*arguments: str) -> dict[str, Any]:
    return {"mcpServers": {"demo": {"command": sys.executable, "args": [DEMO, *arguments]}}}


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def told(*calls: tuple[str, Any], given: Any = None, limits: Limits | None = None) -> list[str]:
    """What the model is told of these calls, one a turn."""

    async def run() -> Sequence[Any]:
        turns = [call(name, **arguments) for name, arguments in calls]
        async with mcp_tools(config() if given is None else given) as tools:
            made = Agent(Replay(*turns, "Done."), CHATML, tools, ask="never", style="hermes_2_pro",
                         limits=limits or Limits())  # fmt: skip
            return (await made.run("Go.")).messages

    return [message["content"] for message in asyncio.run(run()) if message["role"] == "tool"]


@pytest.fixture
def address() -> Iterator[str]:
    """A server over HTTP."""
    with over_http() as url:
        yield url


def test_tools_are_named_by_their_server_and_say_whether_they_write() -> None:
    async def listed() -> list[McpTool]:
        async with mcp_tools(config()) as tools:
            return tools

    tools = {tool.name: tool for tool in asyncio.run(listed())}
    assert {"demo_add", "demo_die", "demo_fail"} < set(tools)
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in tools)
    assert (tools["demo_add"].writes, tools["demo_fail"].writes) == (False, True)
    function = tools["demo_add"].to_openai()["function"]
    assert function["description"] == "Add two numbers."
    assert function["parameters"]["required"] == ["a", "b"]


def test_results_errors_and_pictures_are_told() -> None:
    calls = [("demo_add", {"a": 1, "b": 2}), ("demo_fail", {}), ("demo_picture", {})]
    added, failed, picture = told(*calls)
    assert added == "3"
    assert "Error executing tool fail" in failed
    assert picture == "a dot\n(image/gif, 42 bytes, which is not shown)\n(image/png, 6 bytes, which is not shown)"


def test_the_same_over_http(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which a server of this machine is not behind
    assert told(("web_add", {"a": 1, "b": 2}), given={"servers": {"web": {"url": address}}}) == ["3"]


def test_several_servers_at_once(address: str) -> None:
    both = {"mcpServers": {**config()["mcpServers"], "web": {"url": address}}}
    assert told(("web_add", {"a": 1, "b": 2}), ("demo_add", {"a": 2, "b": 2}), given=both) == ["3", "4"]


def test_a_server_that_ends_is_started_once_more() -> None:
    calls = [("demo_die", {}), ("demo_add", {"a": 1, "b": 2})]
    assert told(*calls, *calls) == [
        "The server demo ended before it gave a result.",
        "3",
        "The server demo ended before it gave a result.",
        "The server demo has ended again and is not started any more.",
    ]


def test_a_call_that_takes_too_long_leaves_the_server_alive() -> None:
    calls = [("demo_wait", {"seconds": 30}), ("demo_add", {"a": 1, "b": 2})]
    assert told(*calls, limits=Limits(call_seconds=2)) == ["demo_wait gave no result within 2 s", "3"]


def events_of(turns: Sequence[str], given: Any, tools: Any = ()) -> list[Any]:
    async def run() -> list[Any]:
        async with mcp_tools(given) as offered:
            made = Agent(Replay(*turns, "Done."), CHATML, [*offered, *tools], ask="never", style="hermes_2_pro")
            return [event async for event in made.stream("Go.")]

    return asyncio.run(run())


@pytest.mark.parametrize("over_http", [False, True])
def test_progress_is_told_before_the_result(over_http: bool, request: pytest.FixtureRequest) -> None:
    given = {"servers": {"demo": {"url": request.getfixturevalue("address")}}} if over_http else config()
    events = events_of([call("demo_count", to=3)], given)
    told = [event for event in events if isinstance(event, CallProgress | Result)]
    assert [(event.done, event.total, event.message) for event in told[:-1]] == [
        (n, 3, f"{n} <|im_end|>") for n in (1, 2, 3)
    ]
    assert told[-1].text == "counted"
    assert _line(told[0]) == "  demo_count: 1 of 3 1 <|im_end|>"


def test_functions_tell_progress_too() -> None:
    def dig(metres: int) -> str:
        for metre in range(metres):
            report_progress(metre, message="x" * 1000)
        return "dug"

    async def swim() -> str:
        report_progress(0.5, 1, "halfway")
        return "swum"

    events = events_of([call("dig", metres=1000), call("swim")], {"servers": {}}, (dig, swim))
    told = [event for event in events if isinstance(event, CallProgress)]
    assert 1 <= len([event for event in told if event.call.name == "dig"]) <= 1000
    assert all(len(event.message) < 200 for event in told)
    assert [event.message for event in told if event.call.name == "swim"] == ["halfway"]
    report_progress(1)  # outside of a call nobody hears it


def test_names_are_allowed_and_denied() -> None:
    async def names(**options: Any) -> list[str]:
        async with mcp_tools(config(), **options) as tools:
            return [tool.name for tool in tools]

    assert asyncio.run(names(allow=["demo_add", "demo_fail"], deny=["demo_fail"])) == ["demo_add"]


RAW = """
import json, sys
LISTED, RESULT = map(json.loads, sys.argv[1:])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    said = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        },
        "tools/list": {"tools": LISTED},
        "tools/call": RESULT,
    }.get(asked["method"])
    told = {"error": {"code": -32601, "message": "no"}} if said is None else {"result": said}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""


def raw(*names: str, schema: Any = None, result: Any = None) -> dict[str, Any]:
    """A server that lists these tools, and says what it was told to."""
    tools = [{"name": name, "inputSchema": {"type": "object"} if schema is None else schema} for name in names]
    return {"command": sys.executable, "args": ["-c", RAW, json.dumps(tools), json.dumps(result or {"content": []})]}


def listed_names(**servers: Any) -> list[str]:
    async def names() -> list[str]:
        async with mcp_tools({"mcpServers": servers}) as tools:
            return [tool.name for tool in tools]

    return asyncio.run(names())


def test_tools_that_would_have_one_name_are_told_apart() -> None:
    first, second = listed_names(a=raw("b.c", "b/c", "b.c"))
    assert (first, second[:6]) == ("a_b_c", "a_b_c_")
    names = listed_names(a=raw("b_c"), a_b=raw("c"))
    assert names[0] == "a_b_c"
    assert names[1].startswith("a_b_c_")
    assert names == listed_names(a=raw("b_c"), a_b=raw("c"))  # each time the same


def test_what_is_not_as_mcp_has_it_is_told_in_a_line() -> None:
    with pytest.raises(
        InvalidTool, match=r"^the MCP server 'x' lists its tools not as MCP has it: .*/inputSchema/type: "
    ):
        listed_names(x=raw("t", schema={"properties": {}}))
    config = {"mcpServers": {"x": raw("t", result={"content": [{"type": "odd"}]})}}
    [said] = told(("x_t", {}), given=config)
    assert said.startswith("The server x gave a result that is none in MCP: /")
    assert "\n" not in said


def test_many_tools() -> None:
    async def count() -> int:
        async with mcp_tools(config("stdio", "249")) as tools:
            return len([tool for tool in tools if tool.name.startswith("demo_many")])

    assert asyncio.run(count()) == 249


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the MCP configuration must be"),
        ({"mcpServers": {"x": {}}}, "the MCP server 'x' must be"),
        ({"mcpServers": {"x": {"command": "c", "env": {"PORT": 8080}}}}, "the MCP server 'x': /env/PORT: "),
        ({"mcpServers": {"x": {"command": "c", "args": "-m y"}}}, "the MCP server 'x': /args: "),
        ({"mcpServers": {"x": {"command": "there-is-no-such-command"}}}, "the MCP server 'x' does not start"),
        ({"mcpServers": {"x": {"command": sys.executable, "args": ["-c", ""]}}}, "the MCP server 'x' does not start"),
        ({"mcpServers": {"x": {"url": "http://127.0.0.1:9/mcp"}}}, "the MCP server 'x' does not start"),
    ],
)
def test_what_cannot_be_started_is_told(given: Any, message: str) -> None:
    with pytest.raises(InvalidTool, match=message):
        told(given=given)


def test_what_a_server_offers_is_listed(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps(config()))
    listed = CliRunner().invoke(app, ["tools", "list", str(tmp_path / "mcp.json")])
    assert "demo_add: Add two numbers." in listed.stdout.splitlines()
    assert "demo_fail (writes): Fail." in listed.stdout.splitlines()
    assert "resource of demo: demo://greeting: A greeting." in listed.stdout.splitlines()
    assert "resource of demo: demo://greeting/{name}: A greeting to somebody." in listed.stdout.splitlines()
    assert "prompt of demo: review: Review some code." in listed.stdout.splitlines()


def test_what_a_server_prints_that_is_no_message_is_a_line(tmp_path: Path) -> None:
    greeting = f"import runpy; print('Hello!', flush=True); runpy.run_path({str(DEMO)!r}, run_name='__main__')"
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"x": {"command": sys.executable, "args": ["-c", greeting]}}}))
    command = [sys.executable, "-m", "toolgram", "tools", "list", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "x_add: Add two numbers." in done.stdout
    assert done.stderr == "note: an MCP server prints what is no message of MCP, which is passed over: 'Hello!'\n"


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.agent.mcp._SECONDS", 1.0)
    silent = {"mcpServers": {"x": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}}}
    with pytest.raises(InvalidTool, match="does not start within 1 s"):
        told(given=silent)


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def test_what_functions_print_is_no_message_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "print('loaded')\n\n\ndef loud() -> str:\n    'Say it.'\n    print('said')\n    return 'done'\n"
    )
    asked = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "loud", "arguments": {}}},
    ]
    command = [sys.executable, "-m", "toolgram", "tools", "serve", str(tmp_path / "own.py")]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=buffered) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        lines = [server.stdout.readline() for _ in range(2)]
        server.stdin.close()
        lines += server.stdout.readlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2]
    assert json.loads(lines[1])["result"]["content"][0]["text"] == "done"


def test_images_of_functions_are_those_of_the_server(tmp_path: Path) -> None:
    gif = base64.b64decode(DOT)
    (tmp_path / "own.py").write_text(f"def dot() -> bytes:\n    'A dot.'\n    return {gif!r}\n")
    command = [sys.executable, "-m", "toolgram", "tools", "serve", str(tmp_path / "own.py")]

    async def run() -> Any:
        async with mcp_tools({"mcpServers": {"own": {"command": command[0], "args": command[1:]}}}) as [tool]:
            return await tool.call("{}")

    shown = asyncio.run(run())
    assert shown.images == (f"data:image/gif;base64,{DOT}",)
    assert shown.seen == "(image/gif, 42 bytes)\n(image/gif, 42 bytes)"


def test_python_functions_are_an_mcp_server(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from toolgram.agent import writes\n\n\n"
        "@writes\ndef double(n: int) -> int:\n    'Double it.'\n    return 2 * n\n"
    )
    command = [sys.executable, "-m", "toolgram", "tools", "serve", str(tmp_path / "own.py")]
    given = {"mcpServers": {"own": {"command": command[0], "args": command[1:]}}}

    async def run() -> tuple[McpTool, Any]:
        async with mcp_tools(given) as [tool]:
            with pytest.raises(CallFailed, match="/n: Input should be a valid integer"):
                await tool.call('{"n": "two"}')
            return tool, await tool.call('{"n": 4}')

    tool, result = asyncio.run(run())
    assert (tool.name, tool.writes, result) == ("own_double", True, "8")
    [same] = tools_of(tmp_path / "own.py")
    assert tool.to_openai()["function"]["parameters"] == same.parameters
