"""Which requests may be planned and run now, which wait, and which are turned away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgram.api.errors import ApiError
from toolgram.server.metrics import Metrics

_RETRY_AFTER = 1  # seconds
_PLANNERS = 2  # planning is Python: more threads plan no faster, and each delays the streams


class Admission:
    """At most `parallel` requests run and `queue` wait, in order of arrival; as many more may wait to be planned."""

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
        """A slot for planning, returned at the end. Raises ApiError 429 if too many wait."""
        if self._planners.locked() and self._unplanned >= self._most_unplanned:
            message = f"{self._unplanned} requests are waiting to be planned: try again later"
            raise ApiError(429, "too_many_requests", message, retry_after=_RETRY_AFTER)
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
        """A slot for work, returned at the end. Raises ApiError: 429 if too many wait, 504 if it takes too long.

        It must be entered and left in the same task.
        """
        if self._slots.locked() and self.waiting >= self._queue:
            message = f"{self.running} requests are running and {self.waiting} are waiting: try again later"
            raise ApiError(429, "too_many_requests", message, retry_after=_RETRY_AFTER)
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
