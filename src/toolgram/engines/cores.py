"""How many cores a pass of the model takes: those that nobody else wants.

The threads of llama.cpp wait for one another some hundred times in a pass. Where one of them has no core of its own,
all wait: a pass that takes 8 ms on two free cores, and 12 on one, may then take a second.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

_LOAD = Path("/proc/loadavg")
_WORTH_SHARING = 64  # tokens: then even a busy machine is faster with all its cores
_LOOKS = 8  # passes that are looked back on
_MAY_MISS = 3  # of them that may have found a core taken: by the rest of this process, mostly, for a moment


def run_elsewhere() -> int | None:
    """How many threads want to run just now, of all processes, besides this one; None where Linux does not tell."""
    try:
        running = _LOAD.read_text().split()[3].partition("/")[0]
    except (OSError, IndexError):
        return None
    return max(int(running) - 1, 0)


class Cores:
    """Tells each pass how many threads it has. `threads` are those of every pass; None for as many as are free."""

    def __init__(self, threads: int | None, elsewhere: Callable[[], int | None] = run_elsewhere) -> None:
        self._threads = threads
        self._elsewhere = elsewhere
        self._all = os.cpu_count() or 1
        self._most = max(min(self._all, 2), self._all // 2)  # half of what a machine counts as cores may be no more
        self._free = deque([1] * _LOOKS, maxlen=_LOOKS)

    def of_pass(self, tokens: int) -> int:
        """The threads of a pass with so many tokens."""
        if self._threads is not None:
            return self._threads
        if tokens >= _WORTH_SHARING:
            return self._all
        others = self._elsewhere()
        self._free.append(1 if others is None else max(self._all - others, 1))
        return min(sorted(self._free)[_MAY_MISS], self._most)
