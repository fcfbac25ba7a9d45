"""How much work one document may take: counted in steps, so that a document ends in the same way on every machine.

`limited` sets the limit for what is done inside of it, `spend` counts; whoever runs out raises TooLarge.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

MAX_STEPS = 250_000
"""Of one automaton."""
MAX_WORK = 1_000_000
"""Of a whole document: two seconds or so."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class TooLarge(Exception):
    """An automaton or a type that would have too many states or cases, or take too long to make."""


class _Meter:
    """How many steps are left."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


_meter: ContextVar[_Meter | None] = ContextVar("_meter", default=None)


def spend(steps: int) -> None:
    """Counts steps. Raises TooLarge where there are no more left."""
    meter = _meter.get()
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise TooLarge


@contextmanager
def limited(steps: int) -> Generator[_Meter]:
    """What is done inside may take so many steps, whatever is left outside."""
    meter = _Meter(steps)
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def remembered(
    maxsize: int,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A bounded cache of what may raise TooLarge, that included; a result that is known costs as many steps as when it
    was made, or else it would depend on earlier documents which ones are too large."""

    def decorate(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @lru_cache(maxsize=maxsize)
        def made(*args: Hashable) -> tuple[tuple[_Result] | None, int]:
            with limited(MAX_WORK) as meter:
                try:
                    result = make(*args)  # pyright: ignore[reportCallIssue] # the same arguments, which lru_cache takes as any
                except TooLarge:
                    return None, MAX_STEPS
            return (result,), MAX_WORK - meter.left

        @wraps(make)
        def counted(*args: _Arguments.args, **_: _Arguments.kwargs) -> _Result:
            result, steps = made(*args)
            spend(steps)
            if result is None:
                raise TooLarge
            return result[0]

        vars(counted)["cache_clear"] = made.cache_clear  # as lru_cache names it
        return counted

    return decorate
