"""Cores that others want are left to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from toolgram.engines.cores import Cores, run_elsewhere


def threads(elsewhere: Sequence[int | None], cores: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    told: Iterator[int | None] = iter(elsewhere)
    counter = Cores(None, lambda: next(told))
    return [counter.of_pass(1) for _ in elsewhere]


def test_a_core_must_be_free_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([0] * 8, 2, monkeypatch) == [1] * 4 + [2] * 4
    assert threads([0] * 8, 16, monkeypatch) == [1] * 4 + [8] * 4
    assert threads([0] * 8, 1, monkeypatch) == [1] * 8


def test_one_that_is_wanted_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([0] * 8 + [1] * 3 + [0], 2, monkeypatch)[7:] == [2] * 5
    assert threads([0] * 8 + [1] * 4 + [0] * 5, 2, monkeypatch)[7:] == [2] * 4 + [1] * 5 + [2]
    assert threads([5] * 9, 8, monkeypatch)[-1] == 3
    assert threads([99] * 9, 8, monkeypatch)[-1] == 1


def test_where_nobody_tells_one_core_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads([None] * 9, 8, monkeypatch) == [1] * 9


def test_prompts_are_read_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert Cores(None, lambda: 99).of_pass(512) == 8
    assert [Cores(3, lambda: 99).of_pass(count) for count in (1, 512)] == [3, 3]


def test_linux_tells() -> None:
    others = run_elsewhere()
    assert others is None or others >= 0
