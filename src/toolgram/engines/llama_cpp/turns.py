"""Whose turn it is to write, where the many answers of one client would slow down the few of others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass

_TOGETHER = 4  # answers of a client that are written together, whatever others have: one by one takes longer
_LATEST = 1 / 32  # how much of what is known the latest pass is
_VARIED = 0.1  # variance of the numbers of answers, from which on their times tell what one more takes
_LEAST = 1 / 64  # of a pass, that one more takes: where nothing were known to, nobody would wait, and nothing be learnt
_START = 0.5  # seconds that one who comes has before others at most: a short answer takes little longer than alone
_STARTS = 2 / 3  # of the time, that those who come have so, however many do


class Pace:
    """What a pass takes by the number of answers that it writes on: a line through those that were, the latest first.

    On few cores one answer more may take as long as the first one does, on a large accelerator next to nothing.
    """

    def __init__(self) -> None:
        self._passes = 0
        self._means = (0.0, 0.0, 0.0, 0.0)  # of numbers, of times, of squared numbers, of numbers by times
        self._varied: float | None = None  # seconds that one more took when last their number varied

    def learn(self, answers: int, seconds: float) -> None:
        """Learn what a pass took that wrote on so many answers, and did nothing else."""
        self._passes += 1
        rate = max(1 / self._passes, _LATEST)
        new = (answers, seconds, answers * answers, answers * seconds)
        number, time, squares, products = (old + rate * (one - old) for old, one in zip(self._means, new, strict=True))
        self._means = (number, time, squares, products)
        if (variance := squares - number * number) > _VARIED:
            self._varied = (products - number * time) / variance

    @property
    def each(self) -> float:
        """Seconds that one answer more takes: until it is known, as long as the others."""
        number, time, *_ = self._means
        return time / max(number, 1) if self._varied is None else max(self._varied, time * _LEAST)

    @property
    def anyway(self) -> float:
        """Seconds that a pass takes besides that."""
        number, time, *_ = self._means
        return max(time - number * self.each, 0.0)

    @property
    def slowed(self) -> float:
        """By which part of its own time a client with one answer is slowed down by those of another: at most by 1."""
        each = self.each if self._varied is None else max(self._varied, 0.0)
        alone = self.anyway + self.each
        return min(_TOGETHER * each / alone, 1.0) if alone else 1.0


@dataclass(slots=True)
class _Account:
    """What a client has cost in seconds: `cost` among all, and `own` among those that write one answer each, while it
    is one of these.

    Until its cost is `even` it has its start.
    """

    own: float | None
    cost: float
    even: float
    turns: int = 0  # that its answers had


class Turns:
    """Divides the time of the model among clients: each gets on as fast as if it had its part of it for itself.

    A pass costs a client what its answers, prompts and drafts take, and its part of what a pass takes anyway. Who has
    cost more than another, by more than a pass for one answer, waits until that one has as much. Who comes for a single
    answer has a start before those who write several, where these would slow it down: what is short is done before it
    counts.
    """

    def __init__(self) -> None:
        self._pace = Pace()
        self._start = _START  # seconds that there are for those who come
        self._accounts: dict[Hashable, _Account] = {}  # of those that have something to do

    def waiting(self, answers: Mapping[Hashable, int]) -> set[Hashable]:
        """Those of the clients that have answers to be written who are no part of the next pass."""
        self._drop(self._accounts.keys() - answers.keys())
        singles = {client for client, count in answers.items() if count == 1}
        self._open(answers.keys() - self._accounts.keys(), singles)
        own = self._own(singles)
        waiting = self._ahead(own, own)
        costs = {client: self._accounts[client].cost for client in answers.keys() - waiting}
        several = {client: cost for client, cost in costs.items() if client not in singles}
        return waiting | self._ahead(several, costs) | self._ahead(costs, several)

    def _own(self, singles: Set[Hashable]) -> dict[Hashable, float]:
        """What each of those has cost that write one answer; who did not until now has as much as who has least."""
        before = {client: account.own for client, account in self._accounts.items() if client in singles}
        least = min((own for own in before.values() if own is not None), default=0.0)
        found = {client: least if own is None else own for client, own in before.items()}
        for client, account in self._accounts.items():
            account.own = found.get(client)
        return found

    def _ahead(self, costs: Mapping[Hashable, float], others: Mapping[Hashable, float]) -> set[Hashable]:
        """Those who have cost more than one of the others."""
        most = min(others.values(), default=math.inf) + self._pace.anyway + self._pace.each
        return {client for client, cost in costs.items() if cost > most}

    def pause(self) -> None:
        """Nobody has anything to do: who comes next has had nothing."""
        self._drop(self._accounts.keys())

    def _drop(self, clients: Set[Hashable]) -> None:
        """Forget those who are done; what they left of their start is there for others."""
        gone = [self._accounts.pop(client) for client in tuple(clients)]
        left = sum(max(account.even - account.cost, 0.0) for account in gone)
        self._start = min(self._start + left, _START)

    def _open(self, come: Set[Hashable], singles: Set[Hashable]) -> None:
        """An account for each who comes, even with who had least, or before it by its part of the start."""
        even = min((max(account.cost, account.even) for account in self._accounts.values()), default=0.0)
        start = self._start * self._pace.slowed / max(len(come & singles), 1)
        for client in come:
            first = start if client in singles else 0.0
            self._start -= first
            self._accounts[client] = _Account(None, even - first, even)

    def choose(self, clients: Sequence[Hashable]) -> list[bool]:
        """Which answers of these clients are written on together: of each as many as of the one with fewest, or a few,
        in turn."""
        own: dict[Hashable, list[int]] = {}
        for at, client in enumerate(clients):
            own.setdefault(client, []).append(at)
        together = max(min(map(len, own.values()), default=0), _TOGETHER)
        chosen = [False] * len(clients)
        for client, places in own.items():
            account = self._accounts[client]
            turns = range(account.turns, account.turns + min(together, len(places)))
            account.turns = turns.stop
            for turn in turns:
                chosen[places[turn % len(places)]] = True
        return chosen

    def took(self, tokens: Sequence[tuple[Hashable, int]], seconds: float) -> None:
        """Tell what a pass took, and how many tokens of whom it was about: of answers one each, else more."""
        self._start = min(self._start + seconds * _STARTS, _START)
        if all(count == 1 for _, count in tokens):
            self._pace.learn(len(tokens), seconds)
        read = sum(count for _, count in tokens if count > 1)
        each = min(self._pace.each, seconds / len(tokens))
        left = seconds - each * sum(count == 1 for _, count in tokens)
        anyway = min(self._pace.anyway, left) if read else left
        clients = Counter(client for client, _ in tokens)
        for client, count in tokens:
            if (account := self._accounts.get(client)) is not None:
                cost = each if count == 1 else (left - anyway) * count / read
                cost += anyway / len(clients) / clients[client]
                account.cost += cost
                if account.own is not None:
                    account.own += cost
