"""How many cores a pass of the model takes: those that nobody else wants.

The threads of llama.cpp wait for one another some hundred times in a pass. Where one of them has no core of its own,
all wait: what takes 25 ms on two free cores, and 43 on one, may then take 60. With many tokens there is less to lose:
what takes 75 ms on two free cores, and 135 on one, then takes 160.

A single token of a small model has one thread: two take a tenth less time and half as much of the processor more.
That of a larger one has half of the cores, whatever else the machine does: llama.cpp adds up what the token attends to
in as many parts as there are threads, so that with another number the same prompt may get another answer. More tokens
are not divided so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from toolgram.engines.llama_cpp.machine import cores

_STAT = Path("/proc/stat")
_MOMENT = 0.1  # seconds that are looked back on; Linux counts in hundredths
_LONG_AGO = 1.0  # seconds, over which the others tell nothing of what they do now
_MANY, _MOST = 8, 64  # tokens, from which a part of a core is enough, and any part
_WHOLE, _PART = 0.8, 0.3  # of a core: what must be free for one more thread
_SMALL = 400_000_000  # bytes of a model


def busy() -> float | None:
    """How many seconds all cores together have worked since the machine started; None where Linux does not tell."""
    try:
        user, nice, system, _idle, _waiting, *interrupts = map(int, _STAT.read_text().split("\n", 1)[0].split()[1:8])
        return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


class Cores:
    """Tells each pass of a model of `size` bytes how many threads it has.

    `threads` are those of every pass; None for as many as are free, or half of all where the system does not tell, and
    no more than this process may use.
    """

    def __init__(
        self,
        threads: int | None,
        size: int,
        busy: Callable[[], float | None] = busy,
        own: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._threads = threads
        self._small = size < _SMALL
        self._busy, self._own, self._clock = busy, own, clock
        self._all = os.cpu_count() or 1
        self._allowed = min(cores(), self._all)
        # Half of what a machine counts as cores may be no more.
        self._most = max(min(self._allowed, 2), self._allowed // 2)
        self._free = float(self._all)
        self._looked = self._look()

    def of_pass(self, tokens: int) -> int:
        """The threads of a pass with so many tokens."""
        if self._threads is not None:
            return self._threads
        if tokens == 1:
            return 1 if self._small else self._most
        if tokens >= _MOST:
            return self._allowed
        self._update()
        wanted = _PART if tokens >= _MANY else _WHOLE
        return min(max(int(self._free + 1 - wanted), 1), self._most)

    def _update(self) -> None:
        """See how many cores the other processes left free since the last look, if that was a moment ago.

        After a pause nothing is known of them: then all are free until the next look.
        """
        then, busy_then, own_then = self._looked
        if self._clock() - then < _MOMENT:
            return
        self._looked = now, busy, own = self._look()
        if now - then > _LONG_AGO:
            self._free = float(self._all)
            return
        others = (busy - busy_then) - (own - own_then) if busy else 0.0
        self._free = self._all - max(others, 0.0) / (now - then)

    def _look(self) -> tuple[float, float, float]:
        return self._clock(), self._busy() or 0.0, self._own()
