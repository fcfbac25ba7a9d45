"""How much work may be done for whom: steps of a document, and the time of a request.

Steps are counted, so that a document ends in the same way on every machine: `limited` sets the limit for what is done
inside of it; `spend` counts, and whoever runs out raises TooLarge. `in_all` sets the limit of several together.

A request that others wait beside has an `Errand`: until when it may go on, and whether anybody still wants it. Loops
`look` at it, and raise what stops them. Where no lock is held they also give way to others when they have worked for
some time; whoever counts steps does.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Generator, Hashable
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from toolgram.caching import counted
from toolgram.errors import OutOfTime, TooMuchWork
from toolgram.turns import Turns

MAX_STEPS = 250_000
"""Of one automaton."""
MAX_WORK = 1_000_000
"""Of a whole document: two seconds or so."""
MAX_IN_ALL = 2 * MAX_WORK
"""Of all tools and schemas of a request: those of a large agent take a third of it."""
MAX_SECONDS = 20.0
"""Of a request, in processor time: what is not counted in steps ends here."""
_STEPS_PER_LOOK = 256
_TOO_MUCH = "this takes more work than a request may cost: make it smaller"
_TURN = 0.1  # seconds after which a turn passes to those who wait

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class TooLarge(Exception):
    """An automaton or a type that would have too many states or cases, or take too long to make."""


class _Meter:
    """How many steps are left."""

    __slots__ = ("left", "until_look")

    def __init__(self, left: int) -> None:
        self.left = left
        self.until_look = _STEPS_PER_LOOK


_meter: ContextVar[_Meter | None] = ContextVar("_meter", default=None)
_total: ContextVar[_Meter | None] = ContextVar("_total", default=None)


def spend(steps: int) -> None:
    """Counts steps, and gives way. Raises TooLarge where there are no more left, and as `look` does."""
    meter = _meter.get()
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise TooLarge
        meter.until_look -= steps
        if meter.until_look < 0:
            meter.until_look = _STEPS_PER_LOOK
            give_way()


@contextmanager
def limited(steps: int) -> Generator[_Meter]:
    """What is done inside may take so many steps, whatever is left outside; they count in the total that is set."""
    with _metered(steps) as meter:
        try:
            yield meter
        finally:
            charge(steps - max(meter.left, 0))


@contextmanager
def in_all(steps: int) -> Generator[_Meter]:
    """All that is `limited` inside may take so many steps together; beyond, TooMuchWork is raised."""
    meter = _Meter(steps)
    token = _total.set(meter)
    try:
        yield meter
    finally:
        _total.reset(token)


def charge(steps: int) -> None:
    """Counts steps in the total, such as those that something took when it was made. Raises TooMuchWork."""
    total = _total.get()
    if total is not None:
        total.left -= steps
        if total.left < 0:
            raise TooMuchWork(_TOO_MUCH)


@contextmanager
def _metered(steps: int) -> Generator[_Meter]:
    meter = _Meter(steps)
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def remembered(
    maxsize: int, keep: Callable[[int], Callable[[Callable[..., Any]], Callable[..., Any]]] = counted
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A bounded cache of what may raise TooLarge, of that too; `keep` is what remembers.

    A result that is known costs as many steps as when it was made: or else it would depend on earlier documents which
    ones are too large.
    """

    def decorate(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @keep(maxsize)
        def made(*args: Hashable) -> tuple[tuple[_Result] | None, int]:
            with _metered(MAX_WORK) as meter:
                try:
                    result = make(*args)  # pyright: ignore[reportCallIssue] # the same arguments, which lru_cache takes as any
                except TooLarge:
                    return None, MAX_STEPS
            return (result,), MAX_WORK - meter.left

        @wraps(make)
        def spending(*args: _Arguments.args, **_: _Arguments.kwargs) -> _Result:
            result, steps = made(*args)
            spend(steps)
            if result is None:
                raise TooLarge
            return result[0]

        if (clear := getattr(made, "cache_clear", None)) is not None:  # as lru_cache names it
            vars(spending)["cache_clear"] = clear
        return spending

    return decorate


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Client:
    """Who asks, as far as requests can be told apart by that; `threads` are those that may work for it at once."""

    threads: AbstractAsyncContextManager[Any]


class Errand:
    """The work for a request of a client's program: until when it may go on (in `time.monotonic`), for how much
    processor time.

    With `turns` it works in turns with others. Safe to share between threads.
    """

    def __init__(
        self, until: float, turns: Turns | None = None, client: Client | None = None, program: str = ""
    ) -> None:
        self.until = until
        self.client = client
        self.program = program
        self._turns = turns
        self._left = MAX_SECONDS
        self._over = False
        self._thread = threading.local()

    def stop(self) -> None:
        """Nobody wants it any more."""
        self._over = True

    def at_most(self, seconds: float) -> None:
        """What is left to do may take so many seconds of processor time."""
        spent = time.thread_time() - (getattr(self._thread, "begun", None) or time.thread_time())
        self._left = min(self._left, spent + seconds)

    @contextmanager
    def at_work(self) -> Generator[None]:
        """What this thread does inside is done for this errand, as soon as it is its turn."""
        if self._turns is not None:
            self._turns.take(self.client, self.program)
        self._thread.begun, self._thread.turn, self._thread.long = time.thread_time(), time.monotonic(), False
        try:
            yield
        finally:
            self._left -= time.thread_time() - self._thread.begun
            self._thread.begun = None
            if self._turns is not None:
                self._turns.give_back(long=self._thread.long)

    @contextmanager
    def away(self) -> Generator[None]:
        """Others have the turn, while this thread waits for something else."""
        turns, mine = self._turns, self._thread
        if turns is None or getattr(mine, "begun", None) is None:
            yield
            return
        turns.give_back(long=mine.long)
        try:
            yield
        finally:
            turns.take(self.client, self.program, long=mine.long)

    def look(self) -> None:
        """Raises OutOfTime or TooMuchWork where the errand has to end."""
        if self._over or time.monotonic() > self.until:
            raise OutOfTime("the request took longer than it may" if not self._over else "the request was given up")
        begun: float | None = getattr(self._thread, "begun", None)
        if begun is not None and time.thread_time() - begun > self._left:
            raise TooMuchWork(_TOO_MUCH)

    def give_way(self) -> None:
        """Let others have a turn where this one has lasted long."""
        self.look()
        turns, mine = self._turns, self._thread
        if turns is None or getattr(mine, "begun", None) is None or time.monotonic() - mine.turn < _TURN:
            return
        turns.give_back(long=mine.long)
        turns.take(self.client, self.program, long=True)
        mine.turn, mine.long = time.monotonic(), True
        self.look()


_errand: ContextVar[Errand | None] = ContextVar("_errand", default=None)


@contextmanager
def on(mine: Errand) -> Generator[None]:
    """What is done inside, and in tasks and threads that are begun inside, is for this errand, and ends with it."""
    token = _errand.set(mine)
    try:
        yield
    finally:
        mine.stop()
        _errand.reset(token)


def errand() -> Errand | None:
    """That of the request that this is done for."""
    return _errand.get()


def client() -> Client | None:
    """That of the request that this is done for."""
    return None if (mine := _errand.get()) is None else mine.client


def program() -> str:
    """That of the request that this is done for."""
    return "" if (mine := _errand.get()) is None else mine.program


@contextmanager
def away() -> Generator[None]:
    """Others have a turn inside, where this thread waits for something else."""
    mine = _errand.get()
    with nullcontext() if mine is None else mine.away():
        yield


def look() -> None:
    """Raises OutOfTime or TooMuchWork where the request that this is done for has to end."""
    if (mine := _errand.get()) is not None:
        mine.look()


def give_way() -> None:
    """As `look`, and lets others have a turn; to be called where no lock is held."""
    if (mine := _errand.get()) is not None:
        mine.give_way()


@contextmanager
def undisturbed() -> Generator[None]:
    """Python does not look for garbage while what is done inside makes many objects that stay.

    It would look through all that the process holds again and again, and find next to nothing. The switch is the whole
    process's. Where there is an errand, others wait beside it, and it is left alone: a server says for itself how often
    it looks.
    """
    if errand() is not None or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def in_thread(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """What the function gives, in a thread, in turns with what is done for other requests."""
    mine = _errand.get()

    def done() -> _Result:
        if mine is None:
            return function(*args, **kwargs)
        with mine.at_work():
            mine.look()
            return function(*args, **kwargs)

    import asyncio  # which is slow to import, and grammars count their steps without it

    async with nullcontext() if mine is None or mine.client is None else mine.client.threads:
        return await asyncio.to_thread(done)
