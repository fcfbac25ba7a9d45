"""What all tests share: texts kept in `tests/golden`, compared, or rewritten by `pytest --update-golden`."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Generator, Iterator
from difflib import unified_diff
from functools import cache
from pathlib import Path

import httpcore2
import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"
_SHOWN = 60

# Few examples in every run, the same ones each time; many others in a long one: HYPOTHESIS_PROFILE=fuzz. Machines are
# noisy: no deadlines.
settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("fuzz", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Clients trust what those before them trusted: thousands are made, and each would read all certificates for 20 ms.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the texts kept in tests/golden")


def pytest_xdist_auto_num_workers() -> int:
    """How many `-n auto` is: one more than there are cores, since tests wait for servers a fifth of their time.

    Each takes up to 2 GB.
    """
    return min(os.cpu_count() or 1, 7) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Garbage is not looked for among the tests and what they import: two million objects, and a second each time.

    That was a third of the time of collecting, and a quarter of many a test. Then it is looked for as in a server.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        gc.enable()


@pytest.fixture(autouse=True)
def no_log_is_left() -> Iterator[None]:
    """What a command has logged to in one test is closed in the next."""
    yield
    logger = logging.getLogger("toolgram.server")
    logger.handlers.clear()
    logger.propagate = True


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden(path, text)`: the text is the one kept at the path, which is relative to `tests/golden`."""
    updating: bool = request.config.getoption("--update-golden")

    def check(path: str, text: str) -> None:
        file = GOLDEN / path
        if updating:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            return
        if not file.exists():
            pytest.fail(f"{file} is missing; pytest --update-golden writes it")
        kept = file.read_bytes().decode()
        if kept != text:
            lines = list(unified_diff(kept.split("\n"), text.split("\n"), "kept", "now", n=1, lineterm=""))
            more = [f"and {len(lines) - _SHOWN} lines more"] if len(lines) > _SHOWN else []
            pytest.fail("\n".join([f"{file} differs:", *lines[:_SHOWN], *more]))

    return check
