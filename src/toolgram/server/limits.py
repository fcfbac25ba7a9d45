"""Who may be planned and run now, who waits, and who is told to come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgram.api.errors import ApiError
from toolgram.server.metrics import Metrics

_RETRY_AFTER = 1  # seconds
_PLANNERS = 2  # planning is Python: more threads plan no faster, but each keeps the streams waiting for its turn


class Admission:
    """At most `parallel` requests run and `queue` wait, in the order of their arrival; as many may be unplanned yet."""

    def __init__(self, parallel: int, queue: int, timeout: float, metrics: Metrics) -> None:
        self._slots = asyncio.Semaphore(parallel)
        self._planners = asyncio.Semaphore(_PLANNERS)
        self._unplanned = 0
        self._queue = queue
        self._most_unplanned = parallel + queue
        self._timeout = timeout
        self._metrics = metrics
        self.waiting = 0
        self.running = 0

    @asynccontextmanager
    async def planning(self) -> AsyncGenerator[None]:
        """A place to plan in, given back at the end. Raises ApiError, a 429, if too many wait."""
        if self._planners.locked() and self._unplanned >= self._most_unplanned:
            told = f"{self._unplanned} requests wait to be planned: try again later"
            raise ApiError(429, "too_many_requests", told, retry_after=_RETRY_AFTER)
        self._unplanned += 1
        try:
            await self._planners.acquire()
        finally:
            self._unplanned -= 1
        try:
            yield
        finally:
            self._planners.release()

    @asynccontextmanager
    async def work(self) -> AsyncGenerator[None]:
        """A place to work in, given back at the end. Raises ApiError: 429 if too many wait, 504 if it takes too long.

        To be entered and left in one task.
        """
        if self._slots.locked() and self.waiting >= self._queue:
            told = f"{self.running} requests run and {self.waiting} wait: try again later"
            raise ApiError(429, "too_many_requests", told, retry_after=_RETRY_AFTER)
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                self.waiting += 1
                try:
                    with self._metrics.waiting.track_inprogress():
                        await self._slots.acquire()
                finally:
                    self.waiting -= 1
                self.running += 1
                try:
                    with self._metrics.running.track_inprogress():
                        yield
                finally:
                    self.running -= 1
                    self._slots.release()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ApiError(504, "timeout", f"the answer took longer than {self._timeout:g} seconds") from error
