"""A bound on work, counted in steps, so that it is the same on every machine and in every run."""

from __future__ import annotations

from dataclasses import dataclass


class TooMuchWork(Exception):
    """The work is more than was allowed."""


@dataclass(slots=True)
class Work:
    """So many steps are left."""

    left: int

    def spend(self, steps: int) -> None:
        """Count some steps. Raises TooMuchWork when there are none left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork
