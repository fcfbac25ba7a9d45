"""Which requests may be planned and run now, which wait, and which are turned away."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgram import work
from toolgram.api.errors import ApiError
from toolgram.server.metrics import Metrics

_RETRY_AFTER = 1  # seconds
_PLANNERS = 2  # threads: planning is Python, more of them plan no faster, and each delays the streams


class Admission:
    """At most `parallel` answers are written at once, and `queue` requests wait, in order of arrival.

    A request that wants several answers has one place for all of them, and more only where nobody waits for those. As
    many requests as may run and wait may wait to be planned: they are in turns, so that what is planned in no time does
    not wait for what takes long. What a request takes in all, from its first byte on, is at most `timeout` seconds.
    """

    def __init__(self, parallel: int, queue: int, timeout: float, metrics: Metrics) -> None:
        self.parallel = parallel
        self._places = _Places(parallel)
        self._turns = work.Turns(_PLANNERS)
        self._unplanned = 0
        self._queue = queue
        self._most_unplanned = parallel + queue + _PLANNERS
        self._timeout = timeout
        self._metrics = metrics
        self.waiting = 0
        self.running = 0

    def errand(self) -> work.Errand:
        """The work for a request that begins now."""
        return work.Errand(time.monotonic() + self._timeout, self._turns)

    @asynccontextmanager
    async def planning(self) -> AsyncGenerator[None]:
        """What is planned inside. Raises ApiError: 429 if too many are planned, 504 if it takes too long."""
        if self._unplanned >= self._most_unplanned:
            message = f"{self._unplanned - _PLANNERS} requests are waiting to be planned: try again later"
            raise ApiError(429, "too_many_requests", message, retry_after=_RETRY_AFTER)
        self._unplanned += 1
        try:
            with self._metrics.planned.track_inprogress():
                async with self._in_time():
                    yield
        finally:
            self._unplanned -= 1

    @asynccontextmanager
    async def work(self) -> AsyncGenerator[None]:
        """A slot for work, returned at the end. Raises ApiError: 429 if too many wait, 504 if it takes too long.

        It must be entered and left in the same task.
        """
        if not self._places.free and self.waiting >= self._queue:
            message = f"{self.running} requests are running and {self.waiting} are waiting: try again later"
            raise ApiError(429, "too_many_requests", message, retry_after=_RETRY_AFTER)
        async with self._in_time():
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

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        """Raises ApiError 504 where the time of the request is up."""
        errand = work.errand()
        limit = asyncio.timeout(self._timeout if errand is None else max(0.0, errand.until - time.monotonic()))
        try:
            async with limit:
                yield
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
