"""How the time of the model is divided among clients that write, on machines of all kinds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from toolgram.engines.llama_cpp.turns import Pace, Turns


def choose(turns: Turns, clients: Sequence[str]) -> list[bool]:
    """Whether each of the answers of these clients is written on next."""
    waiting = turns.waiting(Counter(clients))
    ready = [client for client in clients if client not in waiting]
    chosen = iter(turns.choose(ready))
    return [client not in waiting and next(chosen) for client in clients]


def took(turns: Turns, clients: Sequence[str], seconds: float) -> None:
    turns.took([(client, 1) for client in clients], seconds)


def written(clients: Sequence[str], takes: Callable[[int], float], seconds: float = 300.0) -> tuple[float, list[int]]:
    """How long passes took that were as `Turns` says, and how many tokens each of these clients' answers got.

    At first there are fewer answers, as always where requests come one after the other.
    """
    turns, spent = Turns(), 0.0
    for count in range(1, len(clients) + 1):
        took(turns, clients[:count], takes(count))
    tokens = [0] * len(clients)
    while spent < seconds:
        chosen = choose(turns, clients)
        who = [client for client, is_chosen in zip(clients, chosen, strict=True) if is_chosen]
        assert who
        took(turns, who, takes(len(who)))
        spent += takes(len(who))
        tokens = [count + is_chosen for count, is_chosen in zip(tokens, chosen, strict=True)]
    return spent, tokens


@pytest.mark.parametrize("more", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("clients", ["abbb", "ab" + "b" * 30, "abcddddd", "aabbbbbbc", "ab", "aabb"])
def test_each_client_writes_as_if_its_part_of_the_time_were_its_own(clients: str, more: float) -> None:
    def takes(answers: int) -> float:
        return 1 + more * (answers - 1)

    spent, tokens = written(clients, takes)
    counts = Counter(clients)
    for client, count in counts.items():
        own = sum(got for got, one in zip(tokens, clients, strict=True) if one == client)
        together = min(count, 4)
        alone = together * spent / takes(together)
        assert own > 0.9 * alone / len(counts)


@pytest.mark.parametrize("clients", ["a", "aaaaaaaa", "ab", "abc", "aabb"])
def test_all_write_where_no_client_has_more_than_others(clients: str) -> None:
    turns = Turns()
    for _ in range(50):
        assert choose(turns, clients) == [True] * len(clients)
        took(turns, clients, 1.0 + len(clients))


def test_none_wait_long_where_one_more_takes_no_time() -> None:
    spent, tokens = written("abbb", lambda _: 1.0)
    assert min(tokens) > 0.9 * spent


def test_those_of_a_client_write_alike() -> None:
    chance = random.Random(8)
    for _ in range(30):
        clients = "".join(chance.choice("abc") for _ in range(chance.randint(1, 30)))
        _, tokens = written(clients, lambda answers: 2.0 + answers)
        for client in set(clients):
            own = [got for got, one in zip(tokens, clients, strict=True) if one == client]
            assert max(own) - min(own) <= 1


def test_who_comes_later_has_no_claim_to_what_others_had() -> None:
    turns = Turns()
    for _ in range(100):
        clients = [client for client, chosen in zip("abbb", choose(turns, "abbb"), strict=True) if chosen]
        took(turns, clients, float(len(clients)))
    passes: list[list[bool]] = []
    for _ in range(8):
        passes.append(choose(turns, "abbbc"))
        clients = [client for client, chosen in zip("abbbc", passes[-1], strict=True) if chosen]
        took(turns, clients, float(len(clients)))
    assert all(chosen[0] and chosen[4] for chosen in passes)
    assert any(chosen[1] for chosen in passes)


@pytest.mark.parametrize(("reading", "passes"), [(9.0, 0.11), (3.0, 0.33), (1.0, 1.0), (0.2, 1.0)])
def test_who_has_a_long_prompt_read_waits_for_who_writes(reading: float, passes: float) -> None:
    """As far as it takes time: `reading` is how many passes that write alone 63 tokens of a prompt take."""
    turns = Turns()
    took(turns, "a", 1.0)
    had = 0
    for _ in range(400):
        waiting = turns.waiting({"a": 1, "b": 1})
        assert "a" not in waiting
        both = "b" not in waiting
        turns.took([("a", 1), ("b", 63)] if both else [("a", 1)], 1.0 + reading * both)
        had += both
    assert had / 400 == pytest.approx(passes, abs=0.05)


def passes(turns: Turns, clients: Sequence[str], takes: Callable[[int], float], count: int) -> list[list[bool]]:
    """Which answers each of so many passes writes on."""
    found: list[list[bool]] = []
    for _ in range(count):
        found.append(choose(turns, clients))
        who = [client for client, is_chosen in zip(clients, found[-1], strict=True) if is_chosen]
        took(turns, who, takes(len(who)))
    return found


def test_a_short_answer_takes_about_as_long_as_alone() -> None:
    """24 tokens of ten milliseconds each, while another client has many long answers written."""

    def takes(answers: int) -> float:
        return 0.01 + 0.005 * (answers - 1)

    turns = Turns()
    for answers in (1, 2, 3, *[8] * 100):
        passes(turns, "b" * answers, takes, 1)
    written = passes(turns, "abbbbbbbb", takes, 24)
    assert all(chosen[0] for chosen in written)
    assert sum(any(chosen[1:]) for chosen in written) <= 2


def test_who_comes_for_several_answers_has_no_start() -> None:
    turns = Turns()
    passes(turns, "a", lambda answers: 0.01 * answers, 100)
    written = passes(turns, "abbb", lambda answers: 0.01 * answers, 40)
    assert written[0][0]
    assert sum(chosen[0] for chosen in written) >= 20


@pytest.mark.parametrize(("there", "part"), [("there", 0.45), ("there there there", 1 / 6)])
def test_who_was_there_has_a_part_of_the_time_however_many_come(there: str, part: float) -> None:
    """A half who writes one answer, as if one of those who come were always there, and a sixth who writes several."""
    turns, spent = Turns(), {True: 0.0, False: 0.0}
    for number in range(500):  # one after the other, each for a short answer
        clients = (f"new {number}", *there.split())
        for chosen in passes(turns, clients, lambda answers: 0.01 * answers, 32):
            for client, is_chosen in zip(clients, chosen, strict=True):
                spent[client == "there"] += 0.01 * is_chosen
    assert spent[True] >= part * sum(spent.values())


def test_who_comes_has_its_start_also_before_those_who_come_a_little_later() -> None:
    def takes(answers: int) -> float:
        return 0.01 * answers

    turns = Turns()
    passes(turns, "a", takes, 500)
    turns.pause()
    passes(turns, "a", takes, 4)
    written = passes(turns, "abbb", takes, 90)
    assert all(chosen[0] and not any(chosen[1:]) for chosen in written[:44])
    assert sum(any(chosen[1:]) for chosen in written[46:]) >= 14


def test_those_who_write_one_answer_have_no_start_before_each_other() -> None:
    turns = Turns()
    passes(turns, "a", lambda answers: 0.01 * answers, 40)
    assert all(map(all, passes(turns, "ab", lambda answers: 0.01 * answers, 40)))


def test_who_wrote_several_answers_for_long_does_not_wait_for_it_with_one() -> None:
    turns = Turns()
    passes(turns, "bbb", lambda answers: 0.01 * answers, 2000)
    passes(turns, "abbb", lambda answers: 0.01 * answers, 200)
    assert sum(chosen[1] for chosen in passes(turns, "ab", lambda answers: 0.01 * answers, 100)) >= 90


@pytest.mark.parametrize("seed", range(30))
def test_somebody_writes_whoever_comes_and_goes(seed: int) -> None:
    chance, turns = random.Random(seed), Turns()
    for _ in range(300):
        clients = "".join(each * chance.choice((0, 0, 1, 1, 1, 2, 5)) for each in "abcdef") or "a"
        for _ in range(chance.randint(1, 60)):
            chosen = choose(turns, clients)
            assert any(chosen)
            who = [client for client, is_chosen in zip(clients, chosen, strict=True) if is_chosen]
            took(turns, who, 0.002 + 0.003 * len(who))


def test_others_wait_for_none_who_comes_where_they_take_it_no_time() -> None:
    turns = Turns()
    for answers in (1, 2, 3, 4) * 30:
        passes(turns, "b" * answers, lambda _: 0.01, 1)
    assert sum(map(all, passes(turns, "abb", lambda _: 0.01, 10))) >= 9


def test_what_an_answer_more_takes_is_known_once_their_number_varied() -> None:
    pace = Pace()
    for _ in range(100):
        pace.learn(4, 2.0)
    assert pace.each == pytest.approx(0.5)
    for _ in range(100):
        pace.learn(1, 1.4)
    assert pace.each == pytest.approx(0.2, rel=0.01)
    for answers in (1, 4) * 100:  # the machine has less to do
        pace.learn(answers, 1.0)
    assert 0 < pace.each < 0.03
