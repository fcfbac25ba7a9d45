"""openai-agents asks the server for tools of an MCP server, and approves their calls: run by `make test-agents`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from clients.test_hosted_mcp import ASK, RESULT, TURNS, running

PYTHON = Path(os.environ["TOOLGRAM_AGENTS"]).absolute() / "python" / "bin" / "python"
TASK = Path(__file__).parent / "tasks" / "with_hosted_mcp.py"


def test_calls_are_approved_and_run_whole_and_streamed() -> None:
    with running(*TURNS, *TURNS) as (url, engine):
        done = subprocess.run(
            [PYTHON, TASK, ASK],
            env={"PATH": os.environ["PATH"], "ADDRESS": url.removesuffix("/v1")},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    assert done.stdout.splitlines() == ["add", "It is 3."] * 2, done.stderr
    assert [RESULT in call.text for call in engine.calls] == [False, True] * 2
