"""What docs/running-tools.md says of MCP servers behind `toolgram serve`, typed: the file, the command, the program."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from toolgram.models.catalog import default_model

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- run by: tests/docs/test_mcp_guide.py -->"


def test_the_server_runs_the_tools(tmp_path: Path) -> None:
    default_model()
    text = (ROOT / "docs/running-tools.md").read_text()
    blocks = dict(re.findall(rf"{MARK}\n```(\w+)\n(.*?)```", text, re.DOTALL))
    (shown,) = re.findall(rf"{MARK}\n```python\n.*?```\n\n```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mcp.json").write_text(blocks["json"])
    bin_ = Path(sys.executable).parent  # where `toolgram` is
    environment = {
        **os.environ,
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }
    serve = [word.replace("mcp.json", str(tmp_path / "mcp.json")) for word in shlex.split(blocks["sh"])[1:]]
    line = [sys.executable, "-m", "toolgram", *serve, "--port", "0"]
    with subprocess.Popen(line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+(?=/v1)", server.stdout.readline())
        try:
            assert found is not None
            program = blocks["python"].replace("http://127.0.0.1:9000", found[0])
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        finally:
            server.terminate()
    assert done.stdout == shown
