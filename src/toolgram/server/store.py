"""Responses that were given, kept in memory for requests that go on from them: within a bound, and shared fairly.

A conversation is a chain of turns, of which each response holds the last one, and thereby all before it::

    response 1 ─► turn 1
                    ▲
    response 2 ─► turn 2        response 1 is forgotten: turn 1 stays as long as there is response 2
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count

LIFETIME = 3600.0
"""Seconds after which a response that nobody asked for is forgotten."""
_LARGEST = 8  # of what is kept, this part at most is one conversation
_LEAST = 512  # bytes that a turn, or a response, takes besides its JSON
_ITEM = 64  # and each of its items
_AT_ONCE = 64  # responses that are forgotten by the way where they are too old


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: `reader` is what only it may have, the same for all where there are no keys; `holder` has a share."""

    reader: bytes = b""
    holder: Hashable = ""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The items that a request brought, and those of its response, as JSON, behind those of the turn `before`.

    It counts in the share of `holder`, as all turns of its conversation do. `weight` is the bytes that it takes itself,
    `whole` those of the conversation up to its end, and `size` is what this has as JSON.
    """

    holder: Hashable
    before: Turn | None
    input: tuple[bytes, ...]
    output: tuple[bytes, ...]
    weight: int
    whole: int
    size: int

    @staticmethod
    def after(before: Turn | None, holder: Hashable, input_: tuple[bytes, ...], output: tuple[bytes, ...]) -> Turn:
        """A further turn of a conversation, or its first."""
        size = sum(map(len, input_)) + sum(map(len, output))
        weight = _LEAST + size + _ITEM * (len(input_) + len(output))
        if before is None:
            return Turn(holder, None, input_, output, weight, weight, size)
        return Turn(before.holder, before, input_, output, weight, before.whole + weight, before.size + size)

    @property
    def conversation(self) -> list[bytes]:
        """All items up to its end."""
        turns: list[Turn] = [self]
        while (before := turns[-1].before) is not None:
            turns.append(before)
        return [item for turn in reversed(turns) for item in (*turn.input, *turn.output)]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A response: its last turn, and as JSON its fields but for the output. Only `reader` may have it."""

    id: str
    reader: bytes
    turn: Turn
    fields: bytes

    @property
    def weight(self) -> int:
        """The bytes that it takes besides its turns."""
        return _LEAST + len(self.fields)


class Store:
    """What is kept, up to `most` bytes; what was asked for last stays longest, and an hour after that at most.

    Where there is no room for all, the holder that has most gives way. Safe to share between threads. What is done at a
    time does not grow with what is kept: to keep something costs what it forgets, which was kept once.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.largest = most // _LARGEST
        self.held = 0
        self._clock = clock
        self._kept = OrderedDict[str, tuple[Kept, float]]()
        self._of = dict[Hashable, OrderedDict[str, None]]()  # the ids of each holder, in the same order
        self._uses = Counter[Turn]()  # by how many responses and later turns one is held
        self._weights = _Weights()
        self._lock = threading.Lock()

    def find(self, reader: bytes, id_: str) -> Kept | None:
        """A response, if it is kept and this reader's; it is young again."""
        with self._lock:
            self._forget_old()
            kept, used = self._kept.get(id_, (None, 0.0))
            if kept is None or kept.reader != reader or self._is_old(used):
                return None
            self._kept[id_] = kept, self._clock()
            self._kept.move_to_end(id_)
            self._of[kept.turn.holder].move_to_end(id_)
            return kept

    def put(self, kept: Kept) -> bool:
        """Keep a response, and forget what there is no room for; not where its conversation would fill an eighth."""
        if kept.weight + kept.turn.whole > self.largest:
            return False
        holder = kept.turn.holder
        with self._lock:
            self._forget_old()
            self._kept[kept.id] = kept, self._clock()
            self._of.setdefault(holder, OrderedDict())[kept.id] = None
            self._weigh(holder, kept.weight)
            self._hold(kept.turn)
            while self.held > self.most:
                self._drop(next(iter(self._of[self._weights.heaviest])))
            return kept.id in self._kept

    def forget(self, reader: bytes, id_: str) -> bool:
        """Forget a response, if it is kept and this reader's; whether it was."""
        with self._lock:
            kept, used = self._kept.get(id_, (None, 0.0))
            if kept is None or kept.reader != reader or self._is_old(used):
                return False
            self._drop(id_)
            return True

    def forget_old(self) -> bool:
        """Forget some of what is too old; whether there may be more."""
        with self._lock:
            return self._forget_old()

    def _is_old(self, used: float) -> bool:
        return self._clock() - used > LIFETIME

    def _forget_old(self) -> bool:
        for _ in range(_AT_ONCE):
            oldest = next(iter(self._kept), None)
            if oldest is None or not self._is_old(self._kept[oldest][1]):
                return False
            self._drop(oldest)
        return True

    def _drop(self, id_: str) -> None:
        kept, _ = self._kept.pop(id_)
        holder = kept.turn.holder
        of_holder = self._of[holder]
        del of_holder[id_]
        if not of_holder:
            del self._of[holder]
        self._weigh(holder, -kept.weight)
        self._let_go(kept.turn)

    def _hold(self, turn: Turn | None) -> None:
        """One more holds a turn, which holds those before it; some may have been let go while a request ran."""
        while turn is not None:
            self._uses[turn] += 1
            if self._uses[turn] > 1:
                return
            self._weigh(turn.holder, turn.weight)
            turn = turn.before

    def _let_go(self, turn: Turn | None) -> None:
        while turn is not None:
            self._uses[turn] -= 1
            if self._uses[turn]:
                return
            del self._uses[turn]
            self._weigh(turn.holder, -turn.weight)
            turn = turn.before

    def _weigh(self, holder: Hashable, weight: int) -> None:
        self.held += weight
        self._weights.add(holder, weight)


class _Weights:
    """How much each holder has, and who has most."""

    def __init__(self) -> None:
        self._of = dict[Hashable, int]()
        self._heap: list[tuple[int, int, Hashable]] = []  # the heaviest first; what holds no more stays a while
        self._numbers = count()  # holders have no order

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, holder: Hashable) -> int:
        return self._of.get(holder, 0)

    @property
    def heaviest(self) -> Hashable:
        """Who has most. Raises IndexError where nobody has anything."""
        while True:
            weight, _, holder = self._heap[0]
            if self._of.get(holder) == -weight:
                return holder
            heapq.heappop(self._heap)

    def add(self, holder: Hashable, weight: int) -> None:
        """A holder has so much more, or less."""
        now = self[holder] + weight
        if not now:
            self._of.pop(holder, None)
            return
        self._of[holder] = now
        heapq.heappush(self._heap, (-now, next(self._numbers), holder))
        if len(self._heap) > 2 * len(self._of) + _AT_ONCE:
            self._heap = [(-has, next(self._numbers), one) for one, has in self._of.items()]
            heapq.heapify(self._heap)
