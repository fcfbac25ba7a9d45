"""What is kept of responses: its bound, its age, who may have it, and who gives way."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pytest

from toolgram.api.responses.input import Earlier
from toolgram.api.responses.request import sent_body
from toolgram.server.keeping import Found, drafted, keep
from toolgram.server.store import LIFETIME, Client, Kept, Store, Turn

MOST = 1 << 16


@dataclass(slots=True)
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def kept(id_: str, holder: str = "a", size: int = 1000, before: Kept | None = None, reader: bytes = b"") -> Kept:
    """A response that takes its size and some more."""
    return Kept(id_, reader, Turn.after(before and before.turn, holder, (b"x" * size,), ()), b"{}")


def ids(store: Store) -> list[str]:
    return list(store._kept)


def test_what_was_asked_for_last_stays_longest_within_the_bound() -> None:
    store = Store(MOST)
    for i in range(100):
        assert store.put(kept(f"r{i}"))
        assert store.find(b"", "r0")
        assert store.held <= MOST
    assert ids(store)[-1] == "r0"
    assert 20 < len(ids(store)) < MOST // 1000
    assert "r1" not in ids(store)


def test_what_would_fill_an_eighth_is_not_kept_and_pushes_nothing_out() -> None:
    store = Store(MOST)
    assert store.put(kept("small"))
    assert not store.put(kept("large", size=MOST // 8))
    assert ids(store) == ["small"]
    assert not Store(0).put(kept("any"))


def test_a_conversation_that_would_fill_an_eighth_is_not_kept_any_further() -> None:
    store, last = Store(MOST), None
    for i in range(100):
        last = kept(f"r{i}", before=last)
        assert store.put(last) == (i < 4)
    assert ids(store) == ["r0", "r1", "r2", "r3"]


def test_another_reader_neither_has_nor_forgets_it() -> None:
    store = Store(MOST)
    store.put(kept("r", reader=b"1"))
    assert store.find(b"2", "r") is None
    assert not store.forget(b"2", "r")
    assert store.find(b"1", "r")
    assert store.forget(b"1", "r")
    assert not store.forget(b"1", "r")
    assert store.held == 0


def test_it_is_forgotten_an_hour_after_it_was_last_asked_for() -> None:
    clock = Clock()
    store = Store(1 << 20, clock)
    for i in range(200):
        store.put(kept(f"r{i}"))
    clock.now = LIFETIME
    assert store.find(b"", "r150")
    clock.now = LIFETIME + 1
    assert store.find(b"", "r151") is None  # though it is not its turn yet to make room
    assert not store.forget(b"", "r152")
    steps = 0
    while store.forget_old():
        steps += 1
    assert steps == 2  # some at a time
    assert ids(store) == ["r150"]
    clock.now = 2 * LIFETIME + 1
    store.forget_old()
    assert (store.held, len(store._weights), len(store._of), len(store._uses)) == (0, 0, 0, 0)


def test_a_conversation_is_there_as_long_as_its_last_response() -> None:
    store = Store(MOST)
    first = kept("first")
    second = kept("second", before=first)
    store.put(first)
    store.put(second)
    both = store.held
    assert store.forget(b"", "first")
    assert both - 1000 < store.held < both
    found = store.find(b"", "second")
    assert found
    assert [len(item) for item in found.turn.conversation] == [1000, 1000]
    store.forget(b"", "second")
    assert store.held == 0


def test_what_was_forgotten_while_a_request_went_on_from_it_counts_again() -> None:
    store = Store(MOST)
    first = kept("first")
    store.put(first)
    store.forget(b"", "first")
    store.put(kept("second", before=first))
    assert store.held > 2000
    store.forget(b"", "second")
    assert store.held == 0


def test_a_long_conversation_takes_what_it_says_and_not_its_square() -> None:
    store, last = Store(1 << 26), None
    for i in range(5000):
        last = kept(f"r{i}", size=100, before=last)
        store.put(last)
    assert store.held < 5000 * 1500
    assert last
    assert len(last.turn.conversation) == 5000
    for i in range(5000):
        store.forget(b"", f"r{i}")
    assert store.held == 0
    del last
    gc.collect()  # a chain of any length ends without a deep stack


@pytest.mark.parametrize("flood", [1, 3])
def test_those_who_have_most_give_way(flood: int) -> None:
    store = Store(MOST)
    for i in range(200):
        store.put(kept(f"early{i}", f"greedy{i % flood}"))
    for i in range(4):
        store.put(kept(f"r{i}", "modest"))
    for i in range(500):
        store.put(kept(f"late{i}", f"greedy{i % flood}"))
    assert all(store.find(b"", f"r{i}") for i in range(4))
    assert store.held <= MOST


def test_nobody_has_more_than_a_share_where_all_want_more() -> None:
    store = Store(MOST)
    for i in range(100):
        store.put(kept(f"a{i}", "a"))
    for i in range(300):
        store.put(kept(f"b{i}", f"b{i % 3}"))
    shares = [store._weights[holder] for holder in ("a", "b0", "b1", "b2")]
    assert max(shares) - min(shares) <= 2100
    assert sum(shares) > MOST - 2100


def test_who_goes_on_from_anothers_response_counts_in_its_share() -> None:
    store, last = Store(1 << 21), None
    for i in range(100):  # each by another address
        last = kept(f"r{i}", f"address{i}", before=last)
        store.put(last)
    assert list(store._of) == ["address0"]


def test_very_many_holders_leave_nothing_behind() -> None:
    store = Store(MOST)
    for i in range(5000):
        store.put(kept(f"r{i}", f"address{i}", size=10))
    assert store.held <= MOST
    assert len(store._weights) == len(store._of) == len(ids(store))
    assert len(store._weights._heap) <= 2 * len(ids(store)) + 64


def _many_ids() -> Store:
    store = Store(1 << 22)
    for i in range(4000):
        turn = Turn.after(None, "a", tuple(b"%020d" % (i + j) for j in range(4)), (b"%030d" % i,))
        store.put(Kept(f"resp_{i:032}", b"", turn, b"%0100d" % i))
    return store


def _long_texts() -> Store:
    store = Store(1 << 22)
    for i in range(200):
        text = {"type": "message", "role": "user", "content": "word " * 8000}
        sent = sent_body({"model": "m", "input": [text]})
        draft = drafted(store, Client(), sent, Found(Earlier(), None), f"resp_{i}")
        assert draft is not None
        asyncio.run(keep(store, draft, {"id": f"resp_{i}", "output": [{**text, "role": "assistant"}]}))
    return store


def _held_and_taken(make: Callable[[], Store]) -> tuple[int, int]:
    gc.collect()
    tracemalloc.start()
    store = make()
    taken, _ = tracemalloc.get_traced_memory()
    return store.held, taken


@pytest.mark.parametrize("make", [_many_ids, _long_texts])
def test_what_it_says_it_holds_is_what_it_takes(make: Callable[[], Store]) -> None:
    # In a process of its own: here, threads that other tests have left may take memory meanwhile.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        held, taken = pool.submit(_held_and_taken, make).result()
    assert held > (1 << 22) / 2
    assert held / 2 < taken < held * 1.1


def test_threads_may_share_it() -> None:
    store = Store(MOST)

    def work(number: int) -> None:
        last = None
        for i in range(300):
            last = kept(f"{number}-{i}", f"holder{number % 3}", size=100, before=last if i % 3 else None)
            store.put(last)
            store.find(b"", f"{(number + 1) % 6}-{i}")
            store.forget(b"", f"{(number + 2) % 6}-{i - 1}")
            store.forget_old()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert store.held <= MOST
    for id_ in ids(store):
        assert store.forget(b"", id_)
    assert (store.held, len(store._weights), len(store._uses)) == (0, 0, 0)
