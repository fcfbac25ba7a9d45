"""What a stream of events sends, and in how many pieces: an event at once, those that came with it in one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from typing import Any

import pytest

from toolgram.errors import ToolgramError
from toolgram.server.sse import EventStream

Events = AsyncGenerator[bytes, None]


def failed(error: ToolgramError) -> bytes:
    return f"failed: {error}\n".encode()


async def sent_of(events: Events, slow: asyncio.Event | None = None) -> list[bytes]:
    """The bodies that are sent of an answer; a client that is slow takes the first one only after that event."""
    bodies: list[bytes] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])
            if slow is not None:
                await slow.wait()

    await EventStream(events, nullcontext(), failed, {}, 60)({}, never, send)
    return bodies


async def never() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def at_once(count: int, error: ToolgramError | None = None) -> Events:
    for number in range(count):
        yield f"{number}\n".encode()
    if error is not None:
        raise error


def test_events_that_come_together_are_written_together() -> None:
    assert asyncio.run(sent_of(at_once(4))) == [b"0\n", b"1\n2\n3\n", b""]


def test_an_event_that_comes_alone_is_written_at_once() -> None:
    seen: list[bytes] = []

    async def one_by_one() -> Events:
        for number in range(3):
            yield f"{number}\n".encode()
            seen.append(b"%d" % number)
            await asyncio.sleep(0.001)

    assert asyncio.run(sent_of(one_by_one())) == [b"0\n", b"1\n", b"2\n", b""]
    assert seen == [b"0", b"1", b"2"]


def test_an_error_comes_behind_what_was_said() -> None:
    assert asyncio.run(sent_of(at_once(2, ToolgramError("gone")))) == [b"0\n", b"1\n", b"failed: gone\n", b""]


def test_an_error_before_the_first_event_is_raised() -> None:
    with pytest.raises(ToolgramError, match="gone"):
        asyncio.run(sent_of(at_once(0, ToolgramError("gone"))))


def test_a_slow_client_is_waited_for() -> None:
    made = list[int]()

    async def many() -> Events:
        for number in range(1000):
            made.append(number)
            yield b"x"
            await asyncio.sleep(0)

    async def run() -> list[bytes]:
        slow = asyncio.Event()
        sending = asyncio.create_task(sent_of(many(), slow))
        await asyncio.sleep(0.05)
        assert len(made) < 100
        slow.set()
        return await sending

    assert b"".join(asyncio.run(run())) == b"x" * 1000
