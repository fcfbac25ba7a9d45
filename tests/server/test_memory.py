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

from toolgram.caching import TOGETHER, Document
from toolgram.cli.main import MEMORY
from toolgram.server import memory
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


def test_what_was_left_while_somebody_waited_is_done_when_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    idle: list[bool] = []
    looked_at: list[int] = []
    times = iter([0.0])
    monkeypatch.setattr(gc, "collect", lambda: looked_at.append(len(idle)))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=lambda _: 0))
    monkeypatch.setattr(memory, "time", SimpleNamespace(process_time=lambda: next(times, 1.0)))

    def is_idle() -> bool:
        idle.append(len(idle) == 2)
        return idle[-1]

    async def run() -> None:
        giving = asyncio.create_task(give_back(is_idle, 0.001, 1.0))
        while not looked_at:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)  # in which nothing is worked
        giving.cancel()

    asyncio.run(asyncio.wait_for(run(), 30))
    assert idle == [False, False, True]
    assert looked_at == [3]


@pytest.mark.parametrize(("unused", "kept"), [(0, True), (1 << 40, False)])
def test_what_lies_among_much_that_is_free_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, unused: int, *, kept: bool
) -> None:
    given: list[int] = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=given.append))
    monkeypatch.setattr(memory, "unused", lambda: unused)
    Document.of("remembered")

    async def run() -> None:
        giving = asyncio.create_task(give_back(lambda: True, 0.001, 0.0))
        while len(given) < 2:
            await asyncio.sleep(0.001)
        giving.cancel()

    asyncio.run(run())
    assert bool(TOGETHER.held) == kept


UNUSED = """
from toolgram.server.memory import unused
before = unused()
many = [b"%d" % number * 99 for number in range(200_000)]
used = unused()
kept, many[:] = many[::50], []
print(before >> 20, used >> 20, unused() >> 20)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc tells what is in use, since 2.33")
def test_pages_with_little_on_them_are_unused() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **MEMORY}
    done = subprocess.run([sys.executable, "-c", UNUSED], env=environment, capture_output=True, text=True, check=True)
    before, used, at_last = map(int, done.stdout.split())
    assert max(before, used) < 24 < 64 < at_last


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    asyncio.run(asyncio.wait_for(give_back(lambda: True, 0.0, 0.0), 30))
