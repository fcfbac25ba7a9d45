"""The benchmark of the server on few streams: they come whole, and it tells those that do not. No time is asserted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.append(str(BENCHMARKS))
spec: Any = spec_from_file_location("server_benchmark", BENCHMARKS / "server.py")  # "server" are the tests of that name
benchmark: Any = module_from_spec(spec)
sys.modules[spec.name] = benchmark
spec.loader.exec_module(benchmark)


@pytest.fixture
def server() -> Iterator[Any]:
    server = benchmark.Server()
    yield server
    server.stop()


def test_streams_come_whole_and_uncrossed(server: Any) -> None:
    right, seconds, token = asyncio.run(benchmark.crowd(server, 30, 5))
    assert right == 30
    assert min(seconds, token) > 0


def test_the_tables_are_printed(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.tell(server, streams=5, tokens=3, memory=1.0, rounds=1)
    told = capsys.readouterr().out
    assert "Processor time of the server, median" in told
    assert "| of them whole and uncrossed" in told


def test_the_memory_of_streams_that_wait(server: Any) -> None:
    asyncio.run(benchmark.idle(server, 20))
    _, kilobytes = server.state()
    assert kilobytes > 10_000  # of the whole process: it is that of the server, not of nobody


def test_what_is_not_whole_is_told() -> None:
    whole = b'HTTP/1.1 200 OK\r\n\r\ndata: {"choices": [{"delta": {"content": "a "}}]}\n\n'
    assert benchmark.said(whole + b"data: [DONE]\n\n") == "a "
    for broken in (whole, b"HTTP/1.1 503 no\r\n\r\n"):
        with pytest.raises(AssertionError):
            benchmark.said(broken)
