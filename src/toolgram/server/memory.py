"""Memory that requests had and have no more goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from toolgram.caching import MEGABYTE, TOGETHER

_EVERY = 10.0  # seconds
_WORKED = 0.1  # seconds of the processor: one large body leaves thirty megabytes in a second
_MOST_UNUSED = 24 * MEGABYTE  # the tools of agents leave five at most, however many
_STATM = Path("/proc/self/statm")


class _Allocated(ctypes.Structure):
    """What glibc's `mallinfo2` tells, in bytes."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = tuple((name, ctypes.c_size_t) for name in _names.split())
    hblkhd: int  # in blocks of their own
    uordblks: int  # in use, of all others


async def give_back(is_idle: Callable[[], bool], every: float = _EVERY, worked: float = _WORKED) -> None:
    """Give back what is free, every so many seconds in which so many were worked, until this is cancelled.

    Where nobody waits all garbage is looked for first, which stops everything for a tenth of a second. glibc alone
    gives memory back, and best where `PYTHONMALLOC` is `malloc`, as `toolgram serve` has it. A page goes back where
    nothing on it is in use any more: what is remembered of requests, a little here and there, keeps many. Where these
    are more than it takes to make it again, it is forgotten.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    before = time.process_time()
    while trim is not None:
        await asyncio.sleep(every)
        if time.process_time() - before < worked:
            continue
        idle = is_idle()
        if idle:
            gc.collect()
        await asyncio.to_thread(trim, 0)
        if not idle:
            continue  # what is left is done when nobody waits, however little is worked until then
        if unused() > _MOST_UNUSED:
            TOGETHER.forget()
            gc.collect()
            await asyncio.to_thread(trim, 0)
        before = time.process_time()


def unused() -> int:
    """How many bytes this process holds that are not in use; 0 where it cannot be told.

    glibc knows nothing of what Python keeps itself, and tells what is in use since 2.33.
    """
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None or os.environ.get("PYTHONMALLOC") != "malloc":
        return 0
    tell.restype = _Allocated
    allocated: _Allocated = tell()
    _, resident, shared, *_ = map(int, _STATM.read_text().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") - allocated.uordblks - allocated.hblkhd
