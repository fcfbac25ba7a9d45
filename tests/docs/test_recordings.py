"""The commands of docs/recordings.md, typed: a server that records, a request that is cut off, and its replay."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx2

from toolgram.models.catalog import default_model

ROOT = Path(__file__).resolve().parents[2]
BODY = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 5, "temperature": 0}


def test_the_commands(tmp_path: Path) -> None:
    default_model()
    text = (ROOT / "docs/recordings.md").read_text()
    (block,) = re.findall(r"<!-- run by: \S+ -->\n```sh\n(.*?)```", text, re.DOTALL)
    serve, replay = (shlex.split(line)[1:] for line in block.splitlines())
    line = [sys.executable, "-m", "toolgram"]
    with subprocess.Popen([*line, *serve, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+(?=/v1)", server.stdout.readline())
        try:
            assert found is not None
            answer = httpx2.post(f"{found[0]}/v1/chat/completions", json=BODY, timeout=60).json()
        finally:
            server.terminate()
    assert answer["choices"][0]["finish_reason"] == "length"
    files = [name for word in replay for name in (sorted(map(str, tmp_path.glob(word))) if "*" in word else [word])]
    done = subprocess.run([*line, *files], cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.startswith("recorded: cut, status 200, finish length\nnow: the same\nshrunk: ")
    assert (tmp_path / "smallest.json").exists()
