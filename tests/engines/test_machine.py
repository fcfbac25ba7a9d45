"""What a process may have of its machine, as Linux tells it of control groups, in a container and outside."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolgram.engines.llama_cpp import machine

GB = 10**9
ENDLESS = "9223372036854771712"  # how version 1 says that there is no limit
V1 = "4:memory:/docker/a1\n3:cpu,cpuacct:/docker/a1\n1:name=systemd:/docker/a1\n"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 cores with 50 GB free, whose files are in this folder."""
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "groups")
    allow(range(64), monkeypatch)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 16_000_000, "SC_PAGE_SIZE": 4000}.__getitem__)
    (tmp_path / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable:   48828125 kB\n")
    return tmp_path


def allow(cores: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a process that may run on these cores alone."""

    def allowed(process: int) -> set[int]:
        assert process == 0
        return set(cores)

    monkeypatch.setattr(os, "sched_getaffinity", allowed)


def told(system: Path, own: str, files: Mapping[str, str]) -> tuple[int, int | None, int | None]:
    """Cores, memory and free memory where the system has these files."""
    (system / "own").write_text(own)
    for name, text in files.items():
        file = system / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return machine.cores(), machine.memory(), machine.free_memory()


def test_without_limits_it_is_all_of_the_machine(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(system, "0::/\n", {}) == (64, 64 * GB, 50 * GB)
    assert told(system, "0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}) == (64, 64 * GB, 50 * GB)
    allow((2, 5), monkeypatch)
    assert machine.cores() == 2


def test_a_container_has_its_own_limits(system: Path) -> None:
    used = {"memory.current": str(3 * GB), "memory.stat": f"anon {GB}\nactive_file 5\ninactive_file {2 * GB}"}
    limits = {"cpu.max": "250000 100000", "memory.max": str(4 * GB)}
    assert told(system, "0::/\n", limits | used) == (2, 4 * GB, 3 * GB + 5)
    assert told(system, "0::/\n", {"cpu.max": "50000 100000", "memory.current": str(9 * GB)})[::2] == (1, 0)


def test_a_group_has_no_more_than_those_around_it(system: Path) -> None:
    files = {"a/cpu.max": "400000 100000", "a/b/cpu.max": "max 100000", "a/b/memory.max": "max"}
    outside = {"a/memory.max": str(8 * GB), "a/memory.current": str(2 * GB), "other/cpu.max": "100000 100000"}
    assert told(system, "0::/a/b\n", files | outside) == (4, 8 * GB, 6 * GB)


@pytest.mark.parametrize("inside", ["", "/docker/a1"])
def test_so_it_is_with_the_groups_of_old(system: Path, inside: str) -> None:
    """Whether the container sees all groups, or its own as the outermost."""
    files = {
        f"cpu{inside}/cpu.cfs_quota_us": "600000",
        f"cpu{inside}/cpu.cfs_period_us": "200000",
        f"memory{inside}/memory.limit_in_bytes": str(2 * GB),
        f"memory{inside}/memory.usage_in_bytes": str(GB),
        f"memory{inside}/memory.stat": "active_file 1\ntotal_active_file 1000\ntotal_inactive_file 0",
    }
    assert told(system, V1, files) == (3, 2 * GB, GB + 1000)
    files = {f"cpu{inside}/cpu.cfs_quota_us": "-1", f"memory{inside}/memory.limit_in_bytes": ENDLESS}
    assert told(system, V1, files) == (64, 64 * GB, 50 * GB)


def test_where_the_system_tells_nothing_nothing_is_known(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (system / "meminfo").unlink()
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert (machine.cores(), machine.memory(), machine.free_memory()) == (8, 64 * GB, 64 * GB)
    monkeypatch.delattr(os, "sysconf")
    assert (machine.memory(), machine.free_memory()) == (None, None)


def test_windows_tells_by_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(status: Any) -> int:
        asked = status._obj
        assert asked.length == 64  # as MEMORYSTATUSEX has
        asked.total, asked.free = 16 * GB, 9 * GB
        return 1

    kernel = SimpleNamespace(GlobalMemoryStatusEx=tell)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    assert (machine.memory(), machine.free_memory()) == (16 * GB, 9 * GB)
    kernel.GlobalMemoryStatusEx = lambda _: 0
    assert machine.memory() != 16 * GB
