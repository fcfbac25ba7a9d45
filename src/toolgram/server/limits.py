"""Which requests may be planned and run now, which wait, and which are turned away."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgram.api.errors import ApiError
from toolgram.server.metrics import Metrics

_RETRY_AFTER = 1  # seconds
_PLANNERS = 2  # planning is Python: more threads plan no faster, and each delays the streams


class Admission:
    """At most `parallel` answers are written at once, and `queue` requests wait, in order of arrival.

    A request that wants several answers has one place for all of them, and more only where nobody waits for those. As
    many requests as may run and wait may wait to be planned.
    """

    def __init__(self, parallel: int, queue: int, timeout: float, metrics: Metrics) -> None:
        self.parallel = parallel
        self._places = _Places(parallel)
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
        if not self._places.free and self.waiting >= self._queue:
            message = f"{self.running} requests are running and {self.waiting} are waiting: try again later"
            raise ApiError(429, "too_many_requests", message, retry_after=_RETRY_AFTER)
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                self.waiting += 1
                try:
                    with self._metrics.waiting.track_inprogress():
                        await self._places.take()
                finally:
                    self.waiting -= 1
                self.running += 1
                try:
                    with self._metrics.running.track_inprogress():
                        yield
                finally:
                    self.running -= 1
                    self._places.give_back()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ApiError(504, "timeout", f"the answer took longer than {self._timeout:g} seconds") from error

    @asynccontextmanager
    async def spare(self) -> AsyncGenerator[None]:
        """A further place for a request that has one, returned at the end; whoever has none yet comes first."""
        await self._places.take(spare=True)
        try:
            yield
        finally:
            self._places.give_back()


class _Places:
    """A semaphore that who waits for a spare one passes last."""

    def __init__(self, count: int) -> None:
        self.free = count
        self._waiting = deque[asyncio.Future[None]]()
        self._waiting_for_spare = deque[asyncio.Future[None]]()

    async def take(self, *, spare: bool = False) -> None:
        if self.free:  # then nobody waits
            self.free -= 1
            return
        given = asyncio.get_running_loop().create_future()
        waiting = self._waiting_for_spare if spare else self._waiting
        waiting.append(given)
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        for waiting in (self._waiting, self._waiting_for_spare):
            while waiting:
                given = waiting.popleft()
                if not given.done():
                    given.set_result(None)
                    return
        self.free += 1
