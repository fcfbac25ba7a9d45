"""Several servers that hold the same model: which one takes a request, and what happens when it cannot."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from toolgram.engines.remote.http import CHECK_SECONDS, Http, Unavailable
from toolgram.errors import EngineError

T = TypeVar("T")

_BLOCK = 512  # characters; prompts that have fewer in common are not worth a detour
_MOST_BLOCKS = 16_384  # 8 MB of prompts for each server
_SLACK = 2  # how many more requests a server may have than the idlest before a prefix is no reason to take it
_FIRST_REST, _LONGEST_REST = 1.0, 60.0


@dataclass(eq=False)
class _Server:
    http: Http
    running: int = 0
    served: int = 0
    rest: float = 0.0
    rests_until: float = 0.0
    blocks: OrderedDict[int, None] = field(default_factory=OrderedDict[int, None])

    @property
    def failed(self) -> bool:
        return self.rest > 0

    def fails(self) -> None:
        """Leave it alone for a while, each time for longer."""
        self.rest = min(self.rest * 2 or _FIRST_REST, _LONGEST_REST)
        self.rests_until = time.monotonic() + self.rest

    async def check(self) -> None:
        """Ask whether it is well again: of one that has failed, that it was a moment ago is no answer."""
        try:
            await self.http.get("/health", timeout=CHECK_SECONDS)
        except EngineError:
            self.fails()
        else:
            self.rest = 0.0

    def remember(self, blocks: Iterable[int]) -> None:
        """It has evaluated these."""
        for block in blocks:
            self.blocks[block] = None
            self.blocks.move_to_end(block)
        while len(self.blocks) > _MOST_BLOCKS:
            self.blocks.popitem(last=False)

    def knows(self, blocks: Sequence[int]) -> int:
        """How many of these, from the first on, it has evaluated."""
        return next((i for i, block in enumerate(blocks) if block not in self.blocks), len(blocks))


class Upstreams:
    """Gives each piece of work to a server that is well, has little to do, and knows the beginning of the prompt.

    A server that fails is left alone, for longer each time, and asked for its `/health` before it is used again.
    """

    def __init__(self, servers: Sequence[Http]) -> None:
        if not servers:
            raise EngineError("give the address of one server at least")
        self._servers = [_Server(http) for http in servers]

    async def run(self, prompt: str, work: Callable[[Http], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """What `work` gives on one server; where that one is unavailable before the first item, on another.

        Raises Unavailable where none can do it, or where one fails after the first item; other errors as they are.
        """
        blocks = _blocks(prompt)
        tried: dict[_Server, Unavailable] = {}
        while server := await self._choose(blocks, tried):
            begun = False
            server.running += 1
            server.served += 1
            server.remember(blocks)
            try:
                async with aclosing(work(server.http)) as items:
                    async for item in items:
                        begun = True
                        yield item
                return
            except Unavailable as error:
                server.fails()
                if begun:
                    raise
                tried[server] = error
            finally:
                server.running -= 1
        reasons = [str(error) for error in tried.values()] or [f"{each.http.url} is not well" for each in self._servers]
        raise Unavailable("; ".join(reasons))

    async def check(self) -> None:
        """Ask every server whether it is well. Raises Unavailable where none is."""
        asked = (server.http.check("/health") for server in self._servers)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        if len(failed) == len(answers):
            raise Unavailable("; ".join(map(str, failed)))

    async def aclose(self) -> None:
        """Close the connections; the servers stay."""
        await asyncio.gather(*(server.http.aclose() for server in self._servers))

    async def _choose(self, blocks: Sequence[int], tried: Iterable[_Server]) -> _Server | None:
        left = [server for server in self._servers if server not in tried]
        now = time.monotonic()
        await _check(server for server in left if server.failed and server.rests_until <= now)
        if all(server.failed for server in left):
            await _check(left)
        well = [server for server in left if not server.failed]
        if not well:
            return None
        most = min(server.running for server in well) + _SLACK
        idle = (server for server in well if server.running <= most)
        return max(idle, key=lambda server: (server.knows(blocks), -server.running, -server.served))


async def _check(servers: Iterable[_Server]) -> None:
    await asyncio.gather(*(server.check() for server in servers))


def _blocks(prompt: str) -> list[int]:
    """A number for each beginning of the prompt that is whole blocks long."""
    numbers: list[int] = []
    for end in range(_BLOCK, len(prompt) + 1, _BLOCK):
        numbers.append(hash((numbers[-1] if numbers else 0, prompt[end - _BLOCK : end])))
    return numbers
