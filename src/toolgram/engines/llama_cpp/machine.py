"""What this process may have of its machine: cores and memory, in a container no more than that is given.

macOS tells how much memory there is, Windows also how much is free
(https://learn.microsoft.com/windows/win32/api/sysinfoapi/ns-sysinfoapi-memorystatusex). Linux tells the limits of
control groups in files, of version 2 (https://docs.kernel.org/admin-guide/cgroup-v2.html) or 1
(https://docs.kernel.org/admin-guide/cgroup-v1/). A group has no more than those around it.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_CACHE = ("active_file", "inactive_file")  # what is remembered of files, which goes where programs want the memory


class _Status(ctypes.Structure):
    """What Windows tells of memory, in bytes."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("free", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )
    length: int
    total: int
    free: int


def cores() -> int:
    """How many cores this process may use, one at least."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(int(min([allowed, *_quotas()])), 1)


def memory() -> int | None:
    """The bytes of memory of this machine, or of the container, where the system tells."""
    if windows := _windows():
        return windows.total
    limits = [limit for _, limit in _limited()]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def free_memory() -> int | None:
    """The bytes of memory that this process can still have, or else all there are, where the system tells."""
    if windows := _windows():
        return windows.free
    free = [limit - _used(group) for group, limit in _limited()]
    if available := re.search(r"^MemAvailable:\s*(\d+) kB", _text(_MEMINFO), re.MULTILINE):
        free.append(1024 * int(available[1]))
    return max(min(free), 0) if free else memory()


def _windows() -> _Status | None:
    """What Windows tells; None elsewhere."""
    system = getattr(ctypes, "windll", None)
    status = _Status(length=ctypes.sizeof(_Status))
    return status if system is not None and system.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def _quotas() -> Iterator[float]:
    """The cores that each group may have at most."""
    for group in _groups("cpu"):
        told = _text(group / "cpu.max") or f"{_text(group / 'cpu.cfs_quota_us')} {_text(group / 'cpu.cfs_period_us')}"
        match told.split():
            case [quota, period] if quota.isdecimal():  # "max" or -1 where there is none
                yield int(quota) / int(period)
            case _:
                pass


def _limited() -> Iterator[tuple[Path, int]]:
    """The groups that have a limit of memory, with that in bytes."""
    for group in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            if (limit := _text(group / name).strip()).isdecimal():
                yield group, int(limit)


def _used(group: Path) -> int:
    """The bytes of memory that a group has and cannot do without."""
    used = _text(group / "memory.current") or _text(group / "memory.usage_in_bytes")
    of = dict(re.findall(r"^(\w+) (\d+)$", _text(group / "memory.stat"), re.MULTILINE))
    return int(used or 0) - sum(int(of.get(f"total_{name}") or of.get(name) or 0) for name in _CACHE)


def _groups(controller: str) -> Iterator[Path]:
    """The folders of the groups that this process is in, from the inside; of a container its own is the last."""
    for line in _text(_OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            top = _GROUPS / controller if controllers else _GROUPS
            inside = top / path.lstrip("/")
            yield from (inside, *(group for group in inside.parents if group.is_relative_to(top)))


def _text(file: Path) -> str:
    """What stands in a file of the system; "" where there is none."""
    try:
        return file.read_text(encoding="ascii")
    except OSError:
        return ""
