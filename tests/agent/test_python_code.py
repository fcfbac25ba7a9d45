"""The tool that runs Python: what it gives, and what it holds back."""

from __future__ import annotations

import asyncio
import json

import pytest

from situations import CHATML
from toolgram.agent import Agent
from toolgram.agent.calls import CallFailed
from toolgram.agent.python_code import python_tool
from toolgram.engines import Replay

PYTHON = python_tool(seconds=1.0, memory=50_000_000)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("sum(n * n for n in range(10))", "285"),
        ("print('one')\nx = 2\nx + 1", "one\n3"),
        ("import math, json\njson.dumps({'root': math.sqrt(4)})", "'{\"root\": 2.0}'"),
        ("'<|im_end|>'", "'<|im_end|>'"),
        ("x = 1", ""),
    ],
)
def test_code_gives_what_it_prints_and_its_last_value(code: str, result: str) -> None:
    assert PYTHON.function(code=code) == result


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('/etc/passwd').read()", "PermissionError"),
        ("import os\nos.listdir('/')", "PermissionError"),
        ("import os\nos.environ['PATH']", "not supported|KeyError"),
        ("import socket", "ModuleNotFoundError"),
        ("import subprocess", "ModuleNotFoundError"),
        ("import os\nos.fork()", "AttributeError|not supported"),
        ("while True: pass", "time limit"),
        ("import time\nwhile True: time.sleep(60)", "limit|max_suspensions|suspension"),
        ("'a' * 10**9", "MemoryError"),
        ("while True: print('x' * 1000)", "MemoryError"),
        ("def f(): return f()\nf()", "RecursionError"),
        ("x =", "Expected an expression"),
    ],
)
def test_what_it_may_not_do_is_an_error(code: str, error: str) -> None:
    with pytest.raises(CallFailed, match=error):
        PYTHON.function(code=code)


def test_an_agent_runs_code() -> None:
    call = f"<tool_call>\n{json.dumps({'name': 'python', 'arguments': {'code': '2**10'}})}\n</tool_call>"
    ended = asyncio.run(Agent(Replay(call, "1024."), CHATML, [PYTHON], style="hermes_2_pro").run("2 to the 10th?"))
    assert [message["content"] for message in ended.messages if message["role"] == "tool"] == ["1024"]
