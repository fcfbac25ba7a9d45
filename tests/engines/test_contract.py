"""Every engine holds the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from engines.contract import CHECKS, Peer, run
from engines.peers import PEERS


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with PEERS[request.param]() as peer:
        yield peer


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_holds_the_contract(peer: Peer, check: Callable[[Peer], Awaitable[None]]) -> None:
    run(check, peer)
