"""The time that a template may take, of its thread's processor and not of the clock on the wall."""

from __future__ import annotations

import time

MAX_SECONDS = 1.5
_PAUSE = 0.5  # seconds that few steps never take: garbage was collected, in a large program


class Clock:
    """Runs from when it is made."""

    __slots__ = ("_begun", "_excused", "_looked")

    def __init__(self) -> None:
        self._begun = time.perf_counter(), time.thread_time()
        self._looked, self._excused = self._begun[0], 0.0

    def is_late(self) -> bool:
        """Whether the time is up, to be asked every few steps.

        The thread's processor time, costly to read, is never more than the time elapsed. A pause since the last look is
        excused, up to as much as the limit.
        """
        now = time.perf_counter()
        self._looked, between = now, now - self._looked
        if between > _PAUSE:
            self._excused = min(self._excused + between, MAX_SECONDS)
        elapsed, of_thread = self._begun
        most = MAX_SECONDS + self._excused
        return now - elapsed > most and time.thread_time() - of_thread > most
