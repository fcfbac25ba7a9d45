"""Memory goes back to the system, where its C library can do that."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from toolgram.server.memory import give_back

SERVES = """
import os, sys
sys.argv = ["toolgram", "serve", "--help"]
print("memory from", os.environ.get("PYTHONMALLOC"), flush=True)
from toolgram.cli.main import run
run()
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc alone gives back what is free")
@pytest.mark.parametrize("asked", [None, "pymalloc"])
def test_a_server_has_its_memory_from_the_c_library_unless_something_else_was_asked_for(asked: str | None) -> None:
    others = {key: value for key, value in os.environ.items() if key != "PYTHONMALLOC"}
    environment = {**others, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "100"}
    if asked is not None:
        environment["PYTHONMALLOC"] = asked
    done = subprocess.run([sys.executable, "-c", SERVES], env=environment, capture_output=True, text=True, check=True)
    began = [line for line in done.stdout.splitlines() if line.startswith("memory from")]
    assert began == (["memory from None", "memory from malloc"] if asked is None else ["memory from pymalloc"])
    assert "--parallel" in done.stdout


@pytest.mark.parametrize("worked", [0.0, 1e9])
@pytest.mark.parametrize("idle", [True, False])
def test_what_is_free_is_given_back_after_work_alone(
    monkeypatch: pytest.MonkeyPatch, worked: float, *, idle: bool
) -> None:
    given: list[int] = []
    looked: list[bool] = []
    monkeypatch.setattr(gc, "collect", lambda: looked.append(True))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=given.append))

    async def run() -> None:
        giving = asyncio.create_task(give_back(lambda: idle, 0.001, worked))
        for _ in range(1000):
            await asyncio.sleep(0.001)
            if given:
                break
        giving.cancel()

    asyncio.run(run())
    assert given[:1] == ([] if worked else [0])
    assert bool(looked) == (idle and not worked)


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    asyncio.run(asyncio.wait_for(give_back(lambda: True, 0.0, 0.0), 30))
