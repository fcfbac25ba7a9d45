"""From the engine's thread to the event loops of those who wait for it.

To wake a loop takes longer than to choose a token, and the loop then wants the interpreter while other tokens are to be
chosen. So a pass of the model tells all at once what came of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolgram.engines.base import Chunk
from toolgram.engines.llama_cpp.gguf_model import Cancel


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """Who waits for the chunks of a request, or the error that ends it: made, and asked, in an event loop."""

    cancel: Cancel = field(default_factory=Cancel)
    queue: asyncio.Queue[Chunk | Exception] = field(default_factory=asyncio.Queue[Chunk | Exception])
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def get(self) -> Chunk:
        """The next chunk. Raises the error that ends the request."""
        item = await self.queue.get()
        if isinstance(item, Exception):
            raise item
        return item


class _Item(NamedTuple):
    listener: Listener
    told: Chunk | Exception


class Outbox:
    """What is to be told, and has not been sent yet."""

    def __init__(self) -> None:
        self._items: dict[asyncio.AbstractEventLoop, list[_Item]] = {}

    def put(self, listener: Listener, told: Chunk | Exception) -> None:
        """Tell it with the next `send`."""
        self._items.setdefault(listener.loop, []).append(_Item(listener, told))

    def send(self) -> None:
        """Hand over all, without waiting."""
        sent, self._items = self._items, {}
        for loop, items in sent.items():
            try:
                loop.call_soon_threadsafe(_hand_over, items)
            except RuntimeError:  # the loop is closed: nobody listens any more
                for item in items:
                    item.listener.cancel.set()


def _hand_over(items: Sequence[_Item]) -> None:
    for listener, told in items:
        listener.queue.put_nowait(told)
