"""Who comes next: clients in turn, of each its programs in turn, and the requests of one in their order."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")

_NOBODY = object()


class FairQueue(Generic[T]):
    """What waits, by whose it is: a hundred of one client do not stand before the one of another.

    Nor do, of one client, those of one program before the one of another: a batch and a chat on one machine are one.
    """

    def __init__(self) -> None:
        # Who has waited longest for a turn comes first.
        self._waiting = OrderedDict[Hashable, OrderedDict[Hashable, deque[T]]]()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, client: Hashable, item: T, program: Hashable = None) -> None:
        """Wait behind what is of the same client's same program."""
        self._waiting.setdefault(client, OrderedDict()).setdefault(program, deque()).append(item)

    def take(self) -> T:
        """The next one. Raises KeyError where nothing waits."""
        return self._take(next(iter(self._waiting), _NOBODY))

    def take_if(self, may: Callable[[Hashable], bool]) -> tuple[Hashable, T] | None:
        """The next one of a client that may have it, and whose it is."""
        client = next(filter(may, self._waiting), _NOBODY)
        return None if client is _NOBODY else (client, self._take(client))

    def _take(self, client: Hashable) -> T:
        programs = self._waiting.pop(client)
        program, items = programs.popitem(last=False)
        item = items.popleft()
        if items:
            programs[program] = items
        if programs:
            self._waiting[client] = programs
        return item


class Shares:
    """How many of something there are: `most`, and beyond that no more of any client than its part of these."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of = Counter[Hashable]()

    def __bool__(self) -> bool:
        return bool(self._of)

    def full(self, client: Hashable) -> bool:
        """Whether there can be no further one of this client."""
        if self._of.total() < self._most:
            return False
        clients = len({*self._of, client})
        return self._of[client] >= self._most // clients

    @contextmanager
    def one(self, client: Hashable) -> Generator[None]:
        """A further one, as long as this lasts."""
        self._of[client] += 1
        try:
            yield
        finally:
            self._of[client] -= 1
            if not self._of[client]:
                del self._of[client]


class Lane:
    """Places for threads."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._lock = threading.Lock()
        self._waiting = FairQueue[threading.Event]()

    def take(self, client: Hashable, program: Hashable = None) -> None:
        """Wait for a place."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            given = threading.Event()
            self._waiting.put(client, given, program)
        given.wait()

    def give_back(self) -> None:
        """Pass the place on."""
        with self._lock:
            if self._waiting:
                self._waiting.take().set()
            else:
                self._free += 1


class Turns:
    """Lets threads work in turns: `count` of them that have just begun, and one of those that take long.

    More of these would be no faster, since Python runs one thread at a time, and would delay all others more.
    """

    def __init__(self, count: int) -> None:
        self._short = Lane(count)
        self._long = Lane(1)

    def take(self, client: Hashable, program: Hashable = None, *, long: bool = False) -> None:
        """Wait for a turn."""
        (self._long if long else self._short).take(client, program)

    def give_back(self, *, long: bool = False) -> None:
        """Pass the turn on."""
        (self._long if long else self._short).give_back()
