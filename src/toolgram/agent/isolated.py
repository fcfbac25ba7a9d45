"""Tools of a Python file that run in processes of their own: each call in one, within limits, without our environment.

What holds them back is in `isolated_worker`, which is what such a process runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from toolgram.agent.calls import CallFailed, in_thread
from toolgram.agent.results import shortened
from toolgram.agent.runs import Limits
from toolgram.agent.tools import InvalidTool

_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV")
_WORKER = "toolgram.agent.isolated_worker"
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a process with a call may have.

    `seconds` until it is ended, bytes of `memory` for each process, bytes of a file that it writes, `processes` at
    once, and the variables of the `environment`, by name.
    """

    seconds: float = 60.0
    memory: int = 1024 * _MEGABYTE
    file_size: int = 64 * _MEGABYTE
    processes: int = 64
    environment: tuple[str, ...] = _ENVIRONMENT


@dataclass(frozen=True, slots=True)
class IsolatedTool:
    """A function of a Python file, called in a process of its own."""

    name: str
    writes: bool
    _offer: Mapping[str, Any]
    _file: Path
    _isolation: Isolation
    _most: int

    def to_openai(self) -> dict[str, Any]:
        """The tool in the shape of a chat-completions request."""
        return dict(self._offer)

    async def call(self, arguments: str) -> str:
        """The result as text. Raises CallFailed with what the function raised, and where its process was ended."""
        asked = {"call": self.name, "arguments": arguments, "most": self._most}
        said = await _asked(self._file, asked, self._isolation, 8 * self._most + _MEGABYTE)
        if isinstance(text := said.get("text"), str):
            return shortened(text, self._most + 100)  # which it has kept to, and says so
        raise CallFailed(shortened(str(said.get("error")), self._most))


@dataclass(frozen=True, slots=True)
class Isolated:
    """The tools of a file, and whether processes and network are held back too, which not every system allows."""

    tools: tuple[IsolatedTool, ...]
    in_namespaces: bool


async def isolated_schema(file: Path, name: str, isolation: Isolation | None = None) -> Mapping[str, Any]:
    """The JSON Schema of a type of a Python file, which is run in a process of its own. Raises InvalidTool."""
    said = await _loaded(file, {"type": name}, isolation or Isolation())
    if not isinstance(schema := said.get("schema"), dict):
        raise InvalidTool(str(said.get("error")))
    return cast("dict[str, Any]", schema)


async def isolated_tools(file: Path, isolation: Isolation | None = None, limits: Limits | None = None) -> Isolated:
    """The public functions of a Python file as tools; the file is run only in processes of its own.

    Raises InvalidTool where it cannot be loaded, or the system has no limits of processes (Windows).
    """
    limits = limits or Limits()
    isolation = isolation or Isolation(limits.call_seconds)
    said = await _loaded(file, {"list": True}, isolation)
    if not isinstance(listed := said.get("tools"), list):
        raise InvalidTool(str(said.get("error")))
    made = (_tool(each, file.absolute(), isolation, limits) for each in cast("list[Any]", listed))
    return Isolated(tuple(made), said.get("namespaces") is True)


def _tool(said: Any, file: Path, isolation: Isolation, limits: Limits) -> IsolatedTool:
    match said:
        case {"name": str(name), "writes": bool(writes), "offer": {"function": {"parameters": dict()}} as offer}:
            return IsolatedTool(name, writes, offer, file, isolation, limits.result_characters)
        case _:
            raise InvalidTool(f"{file}: it offers what is no tool")


async def _loaded(file: Path, asked: Mapping[str, Any], isolation: Isolation) -> Mapping[str, Any]:
    if os.name != "posix":
        raise InvalidTool("tools are isolated by limits that this system does not have: it needs Linux or macOS")
    if not file.is_file():
        raise InvalidTool(f"{file}: no such file")
    try:
        return await _asked(file.absolute(), asked, isolation, 16 * _MEGABYTE)
    except CallFailed as error:
        raise InvalidTool(f"{file}: it cannot be loaded: {error}") from error


async def _asked(file: Path, asked: Mapping[str, Any], isolation: Isolation, most: int) -> Mapping[str, Any]:
    """What a process answers, which is ended then with all that it began. Raises CallFailed where it has no answer."""
    given = {
        "file": str(file),
        "memory": isolation.memory,
        "file_size": isolation.file_size,
        "processes": isolation.processes,
        **asked,
    }
    process = subprocess.Popen(  # noqa: S603 - our own interpreter; the file is what it is to hold back
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; import {_WORKER} as w; w.main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in isolation.environment if name in os.environ},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(isolation.seconds):
            answer = await in_thread(partial(_answer, process, json.dumps(given).encode(), most))
    except TimeoutError as error:
        raise CallFailed(f"It gave no result within {isolation.seconds:g} s, and was ended.") from error
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):  # the file can write there too
        said = None
    if not isinstance(said, dict):
        raise CallFailed(_ending(process.returncode, len(answer) >= most))
    return cast("dict[str, Any]", said)


def _answer(process: subprocess.Popen[bytes], given: bytes, most: int) -> bytes:
    """The line that it writes, as far as it may; in a thread, whose reading ends with the process."""
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(given)
    with process.stdout:
        return process.stdout.readline(most)


def _ending(code: int | None, too_long: bool) -> str:
    if too_long:
        return "It wrote more than it may, and was ended."
    return f"Its process ended without a result (exit code {code}), perhaps for want of memory."
