"""Memory that requests had and have no more goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from collections.abc import Callable

_EVERY = 10.0  # seconds
_WORKED = 0.1  # seconds of the processor: one large body leaves thirty megabytes in a second


async def give_back(is_idle: Callable[[], bool], every: float = _EVERY, worked: float = _WORKED) -> None:
    """Give back what is free, every so many seconds in which so many were worked, until this is cancelled.

    Where nobody waits all garbage is looked for first, which stops everything for a tenth of a second. glibc alone
    gives memory back, and best where `PYTHONMALLOC` is `malloc`, as `toolgram serve` has it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    before = time.process_time()
    while trim is not None:
        await asyncio.sleep(every)
        if time.process_time() - before >= worked:
            if is_idle():
                gc.collect()
            await asyncio.to_thread(trim, 0)
            before = time.process_time()
