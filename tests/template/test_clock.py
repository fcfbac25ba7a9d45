"""How long a template may run: a pause of the program is not its own time, but much of its own is too much."""

from __future__ import annotations

import pytest

from toolgram.template import clock


class Times:
    """Both clocks of the system, which run as they are told to."""

    def __init__(self) -> None:
        self.now = self.of_thread = 0.0

    def perf_counter(self) -> float:
        """The time elapsed."""
        return self.now

    def thread_time(self) -> float:
        """The thread's own."""
        return self.of_thread


@pytest.mark.parametrize(
    ("steps", "busy", "late"),
    [
        ([0.1] * 14, True, False),
        ([0.1] * 16, True, True),
        ([0.1] * 100, False, False),  # another thread had the processor
        ([1.4, 0.1], True, False),  # one pause
        ([2.0, 0.1, 0.1], True, False),
        ([0.6] * 6, True, True),  # pauses without an end
    ],
)
def test_a_pause_is_excused_and_no_more_than_once(
    monkeypatch: pytest.MonkeyPatch, steps: list[float], busy: bool, late: bool
) -> None:
    times = Times()
    monkeypatch.setattr(clock, "time", times)
    runs = clock.Clock()
    found = False
    for step in steps:
        times.now += step
        times.of_thread += step if busy else 0.0
        found = runs.is_late()
    assert found is late
