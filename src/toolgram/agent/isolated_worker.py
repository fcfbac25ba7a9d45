"""What a process with one call of a tool runs: it gives up what it does not need, and only then runs the file.

Everywhere: bytes of memory and of files that are written are limited. On Linux, where the system lets users have
namespaces: there is no network, not even to this machine; other processes cannot be seen into; and whatever it starts
ends with it. Files can be read and written as before.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolgram.process_limits import lower

_CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main() -> None:
    """Answer one request, JSON on stdin, with a line of it on what was stdout."""
    asked = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the file prints is no answer
    in_namespaces = _left_alone()
    for limit, most in ((resource.RLIMIT_AS, asked["memory"]), (resource.RLIMIT_FSIZE, asked["file_size"]),
                        (resource.RLIMIT_CORE, 0)):  # fmt: skip
        lower(limit, most)
    if in_namespaces:  # elsewhere all processes of the user count
        lower(resource.RLIMIT_NPROC, asked["processes"])
    json.dump({**_said(asked), "namespaces": in_namespaces}, answer)
    answer.write("\n")
    answer.flush()
    os._exit(0)  # threads that do not end are not waited for


def _said(asked: dict[str, Any]) -> dict[str, Any]:
    from toolgram.agent.tools import InvalidTool, module_of, tools_of
    from toolgram.errors import InvalidOutput
    from toolgram.schema.python_types import NoSchema, python_type

    try:
        if "type" in asked:
            kind = getattr(module_of(Path(asked["file"])), asked["type"])
            return {"schema": python_type(kind).schema}
        tools = tools_of(Path(asked["file"]))
    except (AttributeError, NoSchema):
        return {"error": f"{asked['file']}: {asked.get('type')!r} is not a type in it"}
    except InvalidTool as error:
        return {"error": str(error)}
    except BaseException as error:  # noqa: BLE001 - the file may raise anything
        return {"error": f"{asked['file']}: it cannot be loaded: {type(error).__name__}: {error}"}
    if "list" in asked:
        listed = [{"name": tool.name, "writes": tool.writes, "offer": tool.to_openai()} for tool in tools]
        return {"tools": listed}
    from toolgram.agent.results import is_awaited, text_of, text_of_async

    [tool] = [tool for tool in tools if tool.name == asked["call"]]
    try:
        given = tool.arguments(asked["arguments"])
    except InvalidOutput as error:
        return {"error": f"The arguments are not what {tool.name} takes: {error}"}
    try:
        value, most = tool.function(**given), asked["most"]
        return {"text": _awaited(text_of_async(value, most)) if is_awaited(value) else text_of(value, most)}
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, and the model is to know
        return {"error": f"{type(error).__name__}: {error}"}


def _awaited(value: Coroutine[Any, Any, Any]) -> Any:
    import asyncio

    return asyncio.run(value)


def _left_alone() -> bool:
    """Go on in namespaces of our own, as their first process, with whose end all others end; False where that is not
    allowed."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC) != 0:
        return False
    for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError):
            Path(f"/proc/self/{name}").write_text(line)
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return True
