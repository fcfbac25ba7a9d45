"""Tools in processes of their own: what they may not do, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from situations import CHATML
from toolgram.agent import Agent, InvalidTool, Limits
from toolgram.agent.calls import CallFailed
from toolgram.agent.isolated import Isolated, Isolation, isolated_schema, isolated_tools
from toolgram.agent.mcp import mcp_tools
from toolgram.cli.app import app
from toolgram.engines import Replay

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it needs limits of processes")

SOURCE = '''
import asyncio, ctypes, os, socket, sys, threading, time
from dataclasses import dataclass
from toolgram.agent import writes

TIMES = []


@dataclass
class Sum:
    total: int


@writes
async def add(a: int, b: int = 3) -> Sum:
    """Add.

    Args:
        a: The first.
    """
    print("no result", flush=True)
    TIMES.append(1)
    await asyncio.sleep(0)
    return Sum(a + b * len(TIMES))


def fail() -> None:
    raise LookupError("no such thing")


def leave() -> None:
    sys.exit("gone")


def crash() -> None:
    ctypes.string_at(0)


def environment() -> list[str]:
    return sorted(os.environ)


def others() -> list[str]:
    """The environments of other processes that it can read."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append(open(f"/proc/{pid}/environ").read())
        except OSError:
            pass
    return found


def connect(port: int) -> str:
    socket.create_connection(("127.0.0.1", port), 2).close()
    return "connected"


def allocate() -> int:
    return len(bytearray(4 << 30))


def write(path: str) -> None:
    with open(path, "wb") as file:
        for _ in range(100):
            file.write(bytes(1 << 20))


def bomb(path: str) -> None:
    for _ in range(200):
        if not os.fork():
            os.setsid()
            time.sleep(3)
            open(path, "w").close()
            os._exit(0)
    time.sleep(60)


def flood() -> None:
    while True:
        print("x" * 10_000)
        sys.stderr.write("y" * 10_000)


def huge() -> str:
    return "<|im_end|>" * 10_000_000


def thread() -> str:
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "done"


def child() -> str:
    if not os.fork():
        time.sleep(600)
    return "done"
'''


FORGED = """
import os
for fd in range(3, 30):
    try:
        os.write(fd, b'{}\\n')
    except OSError:
        pass
os._exit(0)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "own.py"
    made.write_text(SOURCE)
    return made


def loaded(file: Path, seconds: float = 30, **limits: Any) -> Isolated:
    return asyncio.run(isolated_tools(file, Isolation(seconds=seconds), Limits(**limits)))


def told(made: Isolated, name: str, **arguments: Any) -> str:
    """What comes of a call, or why nothing did."""
    [tool] = [tool for tool in made.tools if tool.name == name]
    try:
        return asyncio.run(tool.call(json.dumps(arguments)))
    except CallFailed as error:
        return f"! {error}"


def test_calls_give_what_they_would_give_here(file: Path) -> None:
    made = loaded(file)
    assert [tool.name for tool in made.tools if tool.writes] == ["add"]
    add = made.tools[0].to_openai()["function"]
    assert (add["description"], add["parameters"]["properties"]["a"]["description"]) == ("Add.", "The first.")
    assert told(made, "add", a=1) == '{"total":4}'
    assert told(made, "add", a=1) == '{"total":4}'  # nothing is kept from one call to the next
    assert "/a: Field required" in told(made, "add")
    assert told(made, "fail") == "! LookupError: no such thing"
    assert told(made, "leave") == "! SystemExit: gone"
    assert told(made, "crash").startswith("! Its process ended without a result")


def test_our_environment_stays_here(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGRAM_AUTH_SHOP", "a secret")
    made = loaded(file)
    names = json.loads(told(made, "environment"))
    assert "PATH" in names
    assert "TOOLGRAM_AUTH_SHOP" not in names
    if made.in_namespaces:
        assert "a secret" not in told(made, "others")


def test_there_is_no_network(file: Path) -> None:
    made = loaded(file)
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = told(made, "connect", port=server.getsockname()[1])
    assert ("unreachable" in said) if made.in_namespaces else (said == "connected")


@pytest.mark.skipif(sys.platform != "linux", reason="macOS bounds no memory")
def test_memory_is_limited(file: Path) -> None:
    assert told(loaded(file), "allocate").startswith("! MemoryError")


def test_files_are_limited_in_size(file: Path, tmp_path: Path) -> None:
    assert "File too large" in told(loaded(file), "write", path=str(tmp_path / "big"))
    assert (tmp_path / "big").stat().st_size == 64 << 20


def test_a_bomb_of_processes_ends_with_its_call(file: Path, tmp_path: Path) -> None:
    made = loaded(file, seconds=2.5)
    said = told(made, "bomb", path=str(tmp_path / "late"))
    assert said.startswith(("! It gave no result within 2.5 s", "! BlockingIOError"))
    if made.in_namespaces:
        time.sleep(3.5)
        assert not (tmp_path / "late").exists()


def test_output_without_an_end_ends_with_its_call(file: Path) -> None:
    made = loaded(file, seconds=2, result_characters=100)
    assert told(made, "flood") == "! It gave no result within 2 s, and was ended."
    assert "characters left out" in (shown := told(made, "huge"))
    assert len(shown) <= 200


def test_what_a_call_leaves_behind_holds_up_nothing(file: Path) -> None:
    made = loaded(file)
    assert told(made, "thread") == "done"
    assert told(made, "child") == "done"


def test_a_run_with_isolated_tools(file: Path) -> None:
    call = '<tool_call>\n{"name": "add", "arguments": {"a": 4, "b": 1}}\n</tool_call>'
    agent = Agent(Replay(call, "Five."), CHATML, loaded(file).tools, style="hermes_2_pro", ask="never")
    ended = asyncio.run(agent.run("Add."))
    assert [message["content"] for message in ended.messages if message["role"] == "tool"] == ['{"total":5}']


def test_a_run_that_is_left_ends_the_process(file: Path) -> None:
    call = '<tool_call>\n{"name": "flood", "arguments": {}}\n</tool_call>'
    agent = Agent(
        Replay(call, "Late."), CHATML, loaded(file).tools, style="hermes_2_pro", limits=Limits(call_seconds=1)
    )
    assert asyncio.run(agent.run("Go.")).answer == "Late."


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "it cannot be loaded: ZeroDivisionError"),
        ("import os; os._exit(3)", "exit code 3"),
        ("import time; time.sleep(60)", "no result within 2 s"),
        ("x = 1", "no public function"),
        (FORGED.format('{"tools": [{"name": 1}]}'), "it offers what is no tool"),
        (FORGED.format("[" * 100_000), "ended without a result"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(InvalidTool, match=message):
        loaded(tmp_path / "bad.py", seconds=2)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidTool, match="no such file"):
        loaded(tmp_path / "none.py")


def test_types_of_a_file(file: Path) -> None:
    schema = asyncio.run(isolated_schema(file, "Sum"))
    assert schema["properties"]["total"]["type"] == "integer"
    for name in ("None_", "TIMES"):
        with pytest.raises(InvalidTool, match="is not a type in it"):
            asyncio.run(isolated_schema(file, name))


def test_the_commands_run_no_file_here(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    file = tmp_path / "own.py"
    file.write_text(
        f"import os\nfrom dataclasses import dataclass\nopen({str(mark)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "@dataclass\nclass Sum:\n    total: int\n"
        "def parent() -> bool:\n    'Whether its parent serves.'\n    return 'SERVED' in os.environ\n"
    )
    served = {"command": sys.executable, "args": ["-m", "toolgram", "tools", "serve", "--isolate", str(file)]}

    async def call() -> str:
        async with mcp_tools({"mcpServers": {"own": {**served, "env": {**os.environ, "SERVED": "1"}}}}) as [tool]:
            return await tool.call("{}")

    assert asyncio.run(call()) == "false"
    asked = ["agent", "Go.", "--tools", str(file), "--answer", f"{file}:Sum", "--isolate", "--model", "no.gguf"]
    assert CliRunner().invoke(app, asked).exit_code != 0  # the files are read before the model is looked for
    assert len(mark.read_text().split()) == 4  # two to list, one to call, one for the type: none of them here
    assert str(os.getpid()) not in mark.read_text().split()
