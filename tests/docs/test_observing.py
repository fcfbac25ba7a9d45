"""What docs/guides/observing.md tells to type: the server sends its spans to the collector that the command names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx2

from collector import collecting
from toolgram.models.catalog import default_model

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- run by: tests/docs/test_observing.py -->"


def test_the_command_sends_spans_to_the_collector_that_it_names() -> None:
    default_model()
    (line,) = re.findall(rf"{MARK}\n```sh\n(.*?)\n```", (ROOT / "docs/guides/observing.md").read_text(), re.DOTALL)
    variable, program, *words = shlex.split(line)
    name, _, endpoint = variable.partition("=")
    assert (program, endpoint) == ("toolgram", "http://127.0.0.1:4318")
    with collecting() as (url, names):
        command = [sys.executable, "-m", "toolgram", *words, "--port", "0", "--ctx-size", "512"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), name: url}
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            found = re.search(r"http://[\d.:]+(?=/v1)", server.stdout.readline())
            try:
                assert found is not None
                body = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 2}
                httpx2.post(f"{found[0]}/v1/chat/completions", json=body, timeout=60).raise_for_status()
            finally:
                server.terminate()
    assert names() == [
        "toolgram: plan",
        "toolgram: queue",
        "toolgram: chat smollm2",
        "toolgram: POST /v1/chat/completions",
    ]
