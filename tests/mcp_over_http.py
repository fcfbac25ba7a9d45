"""The MCP server of the tests in a process of its own, over HTTP."""

from __future__ import annotations

import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

DEMO = str(Path(__file__).parent / "agent" / "mcp_demo.py")
DOT: str = runpy.run_path(DEMO)["DOT"]
"""The image that it gives, in base64."""


@contextmanager
def over_http(port: int | None = None) -> Iterator[str]:
    """Its address, while it runs; at a port of its own if need be."""
    port = port or free_port()
    server = subprocess.Popen([sys.executable, DEMO, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(url: str) -> None:
    """Wait until a server answers, whatever it says."""
    for _ in range(600):
        try:
            httpx2.get(url, trust_env=False)
        except httpx2.TransportError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(url)
