"""A task through litellm's proxy: python through_litellm.py SCRIPT TASK; the script asks the proxy."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

_SECONDS = 120


def main(script: str, task: str) -> int:
    """Starts the proxy, runs the script, and ends the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    here = {"model": "openai/recorded", "api_base": f"{os.environ['ADDRESS']}/v1", "api_key": "any"}
    config = Path(tempfile.mkdtemp()) / "config.yaml"
    config.write_text(json.dumps({"model_list": [{"model_name": "recorded", "litellm_params": here}]}), "utf-8")
    command = [str(Path(sys.executable).parent / "litellm"), "--config", str(config), "--port", str(port)]
    key = f"sk-{secrets.token_hex(32)}"  # without one the proxy does not start
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": key}
    proxy = subprocess.Popen([*command, "--host", "127.0.0.1"], env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/health/liveliness", proxy)
        asking = {**os.environ, "ADDRESS": f"http://127.0.0.1:{port}", "KEY": key}
        return subprocess.run([sys.executable, script, task], env=asking, check=False).returncode
    finally:
        proxy.terminate()
        proxy.wait()


def _wait(url: str, proxy: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _SECONDS
    while proxy.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(url).close()  # noqa: S310 - our own address
        except OSError:
            time.sleep(0.2)
        else:
            return
    sys.exit("litellm's proxy does not answer")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
