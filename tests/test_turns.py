"""Who comes next, where many wait."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st

from toolgram.turns import FairQueue, Shares


def all_of(queue: FairQueue[str]) -> list[str]:
    taken: list[str] = []
    while queue:
        taken.append(queue.take())
    return taken


def test_clients_come_in_turn_and_their_requests_in_order() -> None:
    queue = FairQueue[str]()
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queue.put(item[0], item)
    assert all_of(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_the_programs_of_a_client_come_in_turn() -> None:
    queue = FairQueue[str]()
    for client, program, item in (("a", "batch", "1"), ("a", "batch", "2"), ("a", "batch", "3"), ("a", "chat", "4")):
        queue.put(client, item, program)
    queue.put("b", "5")
    assert all_of(queue) == ["1", "5", "4", "2", "3"]


def test_a_client_that_may_not_have_its_turn_keeps_it() -> None:
    queue = FairQueue[str]()
    for item in ("a1", "b1", "b2"):
        queue.put(item[0], item)
    assert queue.take_if(lambda client: client == "b") == ("b", "b1")
    assert queue.take_if(lambda client: client == "c") is None
    assert all_of(queue) == ["a1", "b2"]


@given(st.lists(st.sampled_from("abc")))
def test_nobody_waits_for_more_than_one_of_each_other_client(clients: list[str]) -> None:
    queue = FairQueue[str]()
    for client in clients:
        queue.put(client, client)
    taken = "".join(all_of(queue))
    assert Counter(taken) == Counter(clients)
    for client in set(clients):
        *waits, _ = taken.split(client)
        assert all(len(set(others)) == len(others) for others in waits)


def test_beyond_what_there_may_be_each_client_has_its_part() -> None:
    shares = Shares(6)
    with ExitStack() as held:
        for _ in range(6):
            assert not shares.full("a")
            held.enter_context(shares.one("a"))
        assert shares.full("a")
        for _ in range(3):
            assert not shares.full("b")
            held.enter_context(shares.one("b"))
        assert shares.full("b")
        assert not shares.full("c")
    assert not shares.full("a")
