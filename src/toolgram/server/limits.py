"""Which requests may be planned and run now, which wait, and which are turned away."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from toolgram import work
from toolgram.api.errors import ApiError
from toolgram.server.metrics import Metrics
from toolgram.spans import span
from toolgram.turns import FairQueue, Shares, Turns

_RETRY_AFTER = 1  # seconds
_PLANNERS = 2  # threads: planning is Python, more of them plan no faster, and each delays the streams
_THREADS_OF_ONE = 32  # which mostly wait for their turn: of those of the server others need some too


class Admission:
    """At most `parallel` answers are written at once, and `queue` requests wait.

    Where the engine lets clients write in turn, `beyond` more are, for clients that would have none.

    Clients have places in turn, of each its programs (as far as they tell who they are), and the requests of one in
    order of arrival. A client with few of them may have some wait though the queue is full of those of others.

    A request writes one answer after the other at its place, which whoever waits has in between, and more only where
    nobody waits for theirs. As many requests as may run and wait may wait to be planned: they are in turns, so that
    what is planned in no time does not wait for what takes long. What a request takes in all, from its first byte on,
    is at most `timeout` seconds.
    """

    def __init__(self, parallel: int, queue: int, timeout: float, metrics: Metrics, beyond: int = 0) -> None:
        self.parallel = parallel
        self._clients = WeakValueDictionary[Hashable, work.Client]()
        self._places = _Places(parallel, beyond)
        self._waiting = Shares(queue)
        self._turns = Turns(_PLANNERS)
        self._planned = Shares(parallel + queue + _PLANNERS)
        self._timeout = timeout
        self._metrics = metrics

    @property
    def idle(self) -> bool:
        """Whether no request is planned, and none has a place."""
        return self._places.free == self.parallel and not self._planned

    def errand(self, client: Hashable, program: str = "") -> work.Errand:
        """The work for a request of a client's program that begins now."""
        known = self._clients.get(client) or work.Client(asyncio.Semaphore(_THREADS_OF_ONE))
        self._clients[client] = known
        return work.Errand(time.monotonic() + self._timeout, self._turns, known, program)

    @asynccontextmanager
    async def planning(self) -> AsyncGenerator[None]:
        """What is planned inside. Raises ApiError: 429 if too many are planned, 504 if it takes too long."""
        client = work.client()
        if self._planned.full(client):
            raise _too_many("requests are waiting to be planned")
        with self._planned.one(client), self._metrics.planned.track_inprogress():
            async with self._in_time():
                yield

    @asynccontextmanager
    async def work(self) -> AsyncGenerator[None]:
        """What has its `place` inside. Raises ApiError: 429 if too many wait for theirs, 504 if it takes too long."""
        if not self._places.may(client := work.client()) and self._waiting.full(client):
            raise _too_many("requests are running and waiting")
        async with self._in_time():
            yield

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
        """A place to write an answer, returned at the end. It must be entered and left in the same task.

        What is given passes it on to those who wait, for the time until it is one's turn again.
        """
        client = work.client()

        async def pass_on() -> None:
            self._metrics.running.dec()
            try:
                with self._waiting.one(client), self._metrics.waiting.track_inprogress():
                    await self._places.pass_on(client)
            finally:
                self._metrics.running.inc()

        with self._waiting.one(client), self._metrics.waiting.track_inprogress(), span("queue", {}):
            await self._places.take(client)
        try:
            with self._metrics.running.track_inprogress():
                yield pass_on
        finally:
            self._places.give_back(client)

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
        with span("queue", {}):
            client = work.client()
        await self._places.take(client, spare=True)
        try:
            yield
        finally:
            self._places.give_back(client)


def _too_many(what: str) -> ApiError:
    return ApiError(429, "too_many_requests", f"too many {what}: try again later", retry_after=_RETRY_AFTER)


class _Places:
    """A semaphore that clients have in turn, and who waits for a spare place last.

    Whoever has none need not wait for one of the `beyond` that there are besides.
    """

    def __init__(self, count: int, beyond: int) -> None:
        self.free = count
        self._beyond = beyond
        self._of = Counter[Hashable]()
        self._waiting = FairQueue[asyncio.Future[None]]()
        self._waiting_for_spare = FairQueue[asyncio.Future[None]]()

    def may(self, client: Hashable) -> bool:
        """Whether the client may have a place now."""
        return self.free > 0 or (self.free > -self._beyond and not self._of[client])

    async def take(self, client: Hashable, *, spare: bool = False) -> None:
        """Wait for a place."""
        if self.free > 0 or (not spare and self.may(client)):  # then nobody waits whose turn it is
            self._add(client, 1)
            return
        given = asyncio.get_running_loop().create_future()
        (self._waiting_for_spare if spare else self._waiting).put(client, given, work.program())
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self.give_back(client)
            raise

    async def pass_on(self, client: Hashable) -> None:
        """Give a place back, and wait for one behind those who wait.

        Who is cancelled meanwhile still has to give one back: until then one is missing.
        """
        if not self._waiting:
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.put(client, given, work.program())
        self.give_back(client)
        try:
            await given
        except asyncio.CancelledError:
            if given.cancelled():
                self._add(client, 1)
            raise

    def give_back(self, client: Hashable) -> None:
        """Return a place."""
        self._add(client, -1)
        for waiting, may in ((self._waiting, self.may), (self._waiting_for_spare, self._is_free)):
            while (found := waiting.take_if(may)) is not None:
                client, given = found
                if not given.done():
                    self._add(client, 1)
                    given.set_result(None)

    def _is_free(self, _client: Hashable) -> bool:
        return self.free > 0

    def _add(self, client: Hashable, count: int) -> None:
        self.free -= count
        self._of[client] += count
        if not self._of[client]:
            del self._of[client]
