"""Templates that are rendered in a process of their own: the same prompts and errors, and an end to what takes long."""

# The process itself must not be seen from outside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import io
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from situations import CHATML
from toolgram import work
from toolgram.errors import OutOfTime, TemplateError, TooMuchWork
from toolgram.template import apart_process
from toolgram.template.apart import Apart
from toolgram.template.bounds import TooMuch
from toolgram.template.chat_template import ChatTemplate
from toolgram.turns import Turns

NOW = datetime(2026, 11, 22, 12, 30)
TURNS = [{"role": "user", "content": "Hi, \ue000 \ud83d!"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "b": 1.0, "a": None}}}
LOOPING = (
    "{% set long = messages[0].role ~ ' www.a.de' * 5000 %}{% for i in range(1000) %}{{ long | urlize }}{% endfor %}"
)
TEMPLATES = {
    "chatml": CHATML.source,
    "variables": "{{ bos_token }}{{ messages }}{{ tools | tojson }}{{ strftime_now('%d %B') }}{{ odd }}{{ eos_token }}",
    "a refusal": "{{ raise_exception('roles must alternate') }}",
    "a mistake": "\n{{ messages[0].content.nothing() }}",
    "no template": "{% if %}",
    "a loop without an end": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
}


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    apart = Apart()
    yield apart
    apart.close()


def rendered(source: str) -> Any:
    """The prompt, or what is wrong and whether it is that it is too much."""
    try:
        return ChatTemplate(source, "<s>", "</s>").render(TURNS, [TOOL], now=NOW, odd={"b": [1, None], "a": "é"})
    except TemplateError as error:
        return str(error), isinstance(error.__cause__, TooMuch)


@pytest.mark.parametrize("name", TEMPLATES)
def test_prompts_and_errors_are_the_same(apart: Apart, name: str) -> None:
    here = rendered(TEMPLATES[name])
    with apart.rendering(20):
        assert rendered(TEMPLATES[name]) == here


def test_what_takes_too_long_is_ended_and_the_next_one_rendered(apart: Apart) -> None:
    def render() -> None:
        with apart.rendering(0):
            for number in range(9):
                with suppress(TemplateError):  # each time the sandbox ends it
                    ChatTemplate(f"{LOOPING}{number}").render(TURNS)

    with pytest.raises(TooMuchWork, match="chat template"):
        render()
    with apart.rendering(5):
        assert CHATML.render([{"role": "user", "content": "Hi."}])


def test_what_nobody_wants_any_more_is_ended(apart: Apart) -> None:
    errand = work.Errand(time.monotonic() + 60)

    def render() -> None:
        with work.on(errand), apart.rendering(20):
            ChatTemplate(LOOPING).render(TURNS)

    with ThreadPoolExecutor(1) as pool:
        rendering = pool.submit(render)
        while apart._process is None:
            time.sleep(0.01)
        process = apart._process
        errand.stop()
        with pytest.raises(OutOfTime):
            rendering.result(20)
    assert process.ended
    assert process._popen.returncode is not None


def test_one_renders_at_a_time_and_others_plan_meanwhile(apart: Apart) -> None:
    turns, begun = Turns(1), threading.Event()
    order: list[str] = []

    def render(name: str) -> None:
        errand = work.Errand(time.monotonic() + 60, turns)
        with work.on(errand), errand.at_work(), apart.rendering(20):
            order.append(name)
            begun.set()
            with suppress(TemplateError):
                ChatTemplate(LOOPING + name).render(TURNS)
            order.append(name)

    def plan() -> None:
        assert begun.wait(20)
        errand = work.Errand(time.monotonic() + 60, turns)
        with work.on(errand), errand.at_work():
            order.append("planned")

    with ThreadPoolExecutor(3) as pool:
        for one in [pool.submit(render, "first"), pool.submit(plan), pool.submit(render, "second")]:
            one.result(60)
    assert order.index("planned") == 1
    assert order[0] == order[2] != order[3] == order[4]


def answered(monkeypatch: pytest.MonkeyPatch, *questions: dict[str, Any]) -> list[Any]:
    """What the process answers, run here."""
    written = b"".join(len(each := json.dumps(question).encode()).to_bytes(8) + each for question in questions)
    told = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(told))
    monkeypatch.setattr(os, "nice", lambda _: 0)
    apart_process.main()
    told.seek(0)
    return [json.loads(told.read(int.from_bytes(size))) for size in iter(lambda: told.read(8), b"")]


ASKED = ({"seconds": 5}, {"template": ["{{ messages[0].content }}"], "arguments": {"messages": TURNS[:1]}})


def test_a_system_that_refuses_the_limit_of_memory_renders_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(limit: int, _: tuple[int, int]) -> None:
        if limit == resource.RLIMIT_AS:  # as macOS does
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert answered(monkeypatch, *ASKED) == [{"text": ""}, {"text": TURNS[0]["content"]}]


def test_a_limit_that_was_given_is_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (1, {resource.RLIMIT_AS: 1 << 29}.get(limit, 3600)))
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    answered(monkeypatch, *ASKED)
    assert limits[resource.RLIMIT_AS] == (1 << 29, 1 << 29)
    assert limits[resource.RLIMIT_CPU][0] < limits[resource.RLIMIT_CPU][1] == 3600
