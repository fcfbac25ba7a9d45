"""What one request costs: a budget and a deadline, in turns with others, and nothing for a client that has left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import httpx2
import pytest

import toolgram
from live_server import serving
from situations import CHATML
from toolgram import work
from toolgram.api.generation import Generation
from toolgram.engines.replay import Replay
from toolgram.errors import InvalidRequest, OutOfTime, TooMuchWork
from toolgram.planning.turn import _Compilation
from toolgram.planning.turn_spec import CallableTool
from toolgram.server.settings import Settings
from toolgram.turns import Turns
from toolgram.wire.grammar import Callee

CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}]}


def functions(count: int) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    return [{"type": "function", "function": {"name": f"tool_{i}", "parameters": parameters}} for i in range(count)]


def costly(letters: str, count: int = 30) -> list[dict[str, Any]]:
    """Custom tools with counts inside of counts."""
    definitions = [f"start: /([{letters}]{{1,{30 + i}}}x){{1,30}}/" for i in range(count)]
    formats = [{"type": "grammar", "grammar": {"syntax": "lark", "definition": each}} for each in definitions]
    return [{"type": "custom", "custom": {"name": f"f{i}", "format": each}} for i, each in enumerate(formats)]


class Planning:
    """Plans of which those for the user "Slow." go on until they are stopped, or `free` is set."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.free = threading.Event()
        self.ended: list[str] = []

    def after(self, generation: Generation) -> None:
        if generation.request.messages[-1]["content"] != "Slow.":
            return
        self.begun.release()
        try:
            while not self.free.wait(0.001):
                work.give_way()
            self.ended.append("done")
        except (OutOfTime, TooMuchWork) as error:
            self.ended.append(type(error).__name__)
            raise


@pytest.fixture
def planning(monkeypatch: pytest.MonkeyPatch) -> Iterator[Planning]:
    plan, slow = Generation.plan, Planning()

    def slowly(self: Generation, *given: Any, **named: Any) -> Any:
        slow.after(self)
        return plan(self, *given, **named)

    monkeypatch.setattr(Generation, "plan", slowly)
    yield slow
    slow.free.set()


SLOW: dict[str, Any] = {"messages": [{"role": "user", "content": "Slow."}]}


@contextmanager
def asked(address: str, count: int, body: Any, **options: Any) -> Iterator[list[Any]]:
    with ThreadPoolExecutor(count) as pool:
        yield [pool.submit(httpx2.post, address + CHAT, json=body, **{"timeout": 60, **options}) for _ in range(count)]


def wait_for(holds: Any) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_is_planned_at_once_passes_what_takes_long(planning: Planning) -> None:
    with serving(Replay(*["a"] * 9)) as address, asked(address, 6, SLOW) as slow:
        for _ in slow:
            assert planning.begun.acquire(timeout=20)  # though two work at once, all have had a turn
        for tools in (None, functions(2)):
            answer = httpx2.post(address + CHAT, json={**HI, "tools": tools, "tool_choice": "none"}, timeout=30)
            assert answer.status_code == 200
        assert not planning.ended
        planning.free.set()
        assert [one.result().status_code for one in slow] == [200] * 6


def test_of_those_that_take_long_one_works_at_a_time_and_all_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_TURN", 0.0)
    turns, ended = Turns(2), threading.Event()
    at_work, most, order = set[int](), 0, list[int]()

    def long(number: int) -> None:
        nonlocal most
        errand = work.Errand(time.monotonic() + 60, turns)
        with errand.at_work():
            errand.give_way()  # from now on it takes long
            while not ended.is_set():
                at_work.add(number)
                most = max(most, len(at_work))
                time.sleep(0.001)
                at_work.discard(number)
                order.append(number)
                errand.give_way()

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(long, number) for number in range(3)]
        wait_for(lambda: set(order[:-40]) == {0, 1, 2})
        last = order[-30:]
        for _ in range(2):
            turns.take(None)  # is there at once for who begins
        ended.set()
        for one in working:
            one.result()
    assert most == 1
    assert all(set(last[at : at + 3]) == {0, 1, 2} for at in range(27))


def test_many_that_take_long_of_one_client_do_not_stand_before_that_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_TURN", 0.0)
    turns, ended = Turns(9), threading.Event()
    greedy, modest = (work.Client(nullcontext()) for _ in range(2))
    order: list[work.Client] = []

    def long(client: work.Client) -> None:
        errand = work.Errand(time.monotonic() + 60, turns, client)
        with errand.at_work():
            while not ended.is_set():
                errand.give_way()
                order.append(client)
                time.sleep(0.001)

    with ThreadPoolExecutor(9) as pool:
        working = [pool.submit(long, client) for client in (*[greedy] * 8, modest)]
        wait_for(lambda: order.count(modest) > 40)
        last = order[-60:]
        ended.set()
        for one in working:
            one.result()
    assert last.count(modest) > 12  # with nine in a row it would be six or seven


def test_a_client_has_so_many_threads_that_others_have_some_too(
    planning: Planning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgram.server.app._THREADS", 5)
    monkeypatch.setattr("toolgram.server.limits._THREADS_OF_ONE", 4)
    settings = Settings(api_keys=("greedy", "modest"))
    with (
        serving(Replay(*["a"] * 9), settings) as address,
        asked(address, 6, SLOW, headers={"x-api-key": "greedy"}) as slow,
    ):
        for _ in range(4):
            assert planning.begun.acquire(timeout=20)
        assert httpx2.post(address + CHAT, json=HI, headers={"x-api-key": "modest"}, timeout=30).status_code == 200
        assert not planning.begun.acquire(timeout=0.2)
        planning.free.set()
        assert [one.result().status_code for one in slow] == [200] * 6


def test_the_time_of_a_request_counts_its_planning(planning: Planning) -> None:
    with serving(Replay("a"), Settings(timeout=0.5)) as address:
        for stream in (False, True):
            answer = httpx2.post(address + CHAT, json={**SLOW, "stream": stream}, timeout=30)
            assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
        wait_for(lambda: planning.ended == ["OutOfTime"] * 2)
        assert httpx2.post(address + CHAT, json=HI, timeout=30).status_code == 200


def test_a_client_that_leaves_stops_its_planning(planning: Planning) -> None:
    with serving(Replay("a")) as address:
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(address + CHAT, json=SLOW, timeout=0.5)
        wait_for(lambda: planning.ended == ["OutOfTime"])


def test_the_work_of_a_request_is_bounded(planning: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_SECONDS", 0.01)
    with serving(Replay("a")) as address:
        answer = httpx2.post(address + CHAT, json=SLOW, timeout=60)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_costly")
    assert planning.ended == ["TooMuchWork"]


def test_an_ordinary_request_does_not_wait_for_costly_ones() -> None:
    with serving(Replay(*["a"] * 3)) as address, ThreadPoolExecutor() as pool:
        bodies = [{**HI, "tools": costly(letters)} for letters in ("a-c", "d-f")]
        attacks = [pool.submit(httpx2.post, address + CHAT, json=body, timeout=120) for body in bodies]
        wait_for(lambda: "toolgram_requests_planned 2.0" in httpx2.get(address + "/metrics").text)
        answer = httpx2.post(address + CHAT, json={**HI, "tools": functions(3), "tool_choice": "none"}, timeout=60)
        assert answer.status_code == 200
        assert not any(attack.done() for attack in attacks)
        assert [attack.result().status_code for attack in attacks] == [200, 200]


def test_the_tool_that_is_too_much_is_the_same_one_whatever_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.planning.turn.MAX_IN_ALL", 32_000)
    tools = costly("k-m", 3)
    assert toolgram.plan({**HI, "tools": tools[:1]}, CHATML).constraint  # known from now on
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="more work than a request may cost") as caught:
            toolgram.plan({**HI, "tools": tools}, CHATML)
        assert caught.value.pointer == "/tools/2/custom"


def test_tools_by_the_thousand_are_planned_or_the_one_too_many_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    callee = _Compilation.callee

    def exhausting(compilation: _Compilation, tool: CallableTool) -> Callee | None:
        errand = work.errand()
        if tool.name == "tool_100" and errand is not None:
            errand.at_most(-1)
        return callee(compilation, tool)

    monkeypatch.setattr(_Compilation, "callee", exhausting)
    with serving(Replay("a")) as address:
        answer = httpx2.post(address + CHAT, json={**HI, "tools": functions(3000)}, timeout=120)
    assert answer.status_code == 400
    assert answer.json()["error"]["pointer"] == "/tools/101/function"
    assert "more work than a request may cost" in answer.json()["error"]["message"]


LOOPING = (
    "{% set long = messages[0].role ~ ' www.a.de' * 5000 %}{% for i in range(1000) %}{{ long | urlize }}{% endfor %}"
)


def test_a_template_that_loops_keeps_nobody_waiting() -> None:
    with serving(Replay("a"), Settings(request_templates=True)) as address, ThreadPoolExecutor() as pool:
        sent = [{**HI, "chat_template": f"{LOOPING}{i}"} for i in range(2)]
        attacks = [pool.submit(httpx2.post, address + CHAT, json=body, timeout=120) for body in sent]
        wait_for(lambda: "toolgram_requests_planned 2.0" in httpx2.get(address + "/metrics").text)
        assert httpx2.post(address + CHAT, json=HI, timeout=60).status_code == 200
        assert not any(attack.done() for attack in attacks)
        assert [attack.result().status_code for attack in attacks] == [400, 400]
