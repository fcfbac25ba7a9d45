"""Cores that others want are left to them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import pytest

from toolgram.engines.llama_cpp.threads import Cores, busy

SMALL, LARGE = 10**8, 10**10


def of_machine(cores: int, monkeypatch: pytest.MonkeyPatch, allowed: int = 0) -> None:
    """Have a machine with so many cores, of which this process may use some alone, if that is said."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr("toolgram.engines.llama_cpp.threads.cores", lambda: allowed or cores)


def threads(
    others: Sequence[float],
    cores: int,
    monkeypatch: pytest.MonkeyPatch,
    tokens: int = 2,
    size: int = SMALL,
    pause: float = 1,
    allowed: int = 0,
) -> list[int]:
    """What each pass has, seconds after the one before, in which others used so many cores and this process one."""
    of_machine(cores, monkeypatch, allowed)
    now, used = 0.0, 100.0
    counter = Cores(None, size, lambda: used, lambda: now, lambda: now)
    found: list[int] = []
    for other in others:
        now, used = now + pause, used + (1 + other) * pause
        found.append(counter.of_pass(tokens))
    return found


def test_free_cores_are_taken_half_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([0, 0.1, 0], 2, monkeypatch) == [2, 2, 2]
    assert threads([0, 2], 16, monkeypatch) == [8, 8]
    assert threads([0, 0], 1, monkeypatch) == [1, 1]


def test_one_that_is_wanted_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([0, 1, 0.4, 0], 2, monkeypatch) == [2, 1, 1, 2]
    assert threads([5, 99], 8, monkeypatch) == [3, 1]


def test_many_tokens_take_one_that_others_use_half(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([0.5, 1], 2, monkeypatch, tokens=16) == [2, 1]


def test_one_token_has_as_many_threads_whatever_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another number would add up otherwise what the token attends to, and could give another answer."""
    assert threads([0, 6], 8, monkeypatch, tokens=1) == [1, 1]
    assert threads([0, 6], 8, monkeypatch, tokens=1, size=LARGE) == [4, 4]


def test_a_container_has_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """And others may use the rest of the machine's."""
    for tokens, size, expected in ((16, SMALL, 2), (512, SMALL, 4), (1, LARGE, 2)):
        assert threads([0, 50, 63], 64, monkeypatch, tokens, size, allowed=4)[:2] == [expected, expected]
    assert threads([0, 62.5], 64, monkeypatch, allowed=4) == [2, 1]


def test_what_others_did_long_ago_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([2, 2], 2, monkeypatch) == [1, 1]
    assert threads([2, 2], 2, monkeypatch, pause=3) == [2, 2]


def test_where_nobody_tells_half_of_the_cores_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    of_machine(8, monkeypatch)
    counter = Cores(None, SMALL, lambda: None)
    assert counter.of_pass(2) == 4
    time.sleep(0.11)
    assert counter.of_pass(2) == 4


def test_prompts_are_read_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    of_machine(8, monkeypatch)
    assert Cores(None, SMALL, lambda: 99.0).of_pass(512) == 8
    assert [Cores(3, LARGE, lambda: 99.0).of_pass(count) for count in (1, 512)] == [3, 3]


def test_linux_tells() -> None:
    seconds = busy()
    assert seconds is None or seconds > 0
