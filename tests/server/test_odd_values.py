"""Each value of a good body is replaced by odd ones: a client is told what is wrong with it, and never of a defect."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from live_server import listening
from request_bodies import BODIES, ODD, places, replaced
from sampled_engine import Sampled
from situations import CHATML
from toolgram.server.app import create_app
from toolgram.server.models import Served
from toolgram.server.settings import Settings


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    app = create_app([Served("sampled", CHATML, Sampled())], Settings(max_tokens=60, request_templates=True))
    with listening(app) as address, httpx2.Client(base_url=address, timeout=60) as client:
        yield client


def check(client: httpx2.Client, path: str, body: Any, at: tuple[str | int, ...], odd: Any) -> None:
    answer = client.post(path, content=json.dumps(replaced(body, at, odd)).encode())
    assert answer.status_code < 500, (path, at, odd, answer.text)
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert error["message"], (path, at, odd)
        assert path.startswith("/v1/messages") or not at or error["param"], (path, at, odd, answer.text)


@pytest.mark.parametrize("path", BODIES)
def test_an_odd_value_is_told_with_its_place(client: httpx2.Client, path: str) -> None:
    chance = random.Random(path)
    for body in BODIES[path]:
        for at in places(body):
            for odd in chance.sample(ODD, 4):
                check(client, path, body, at, odd)


@pytest.mark.fuzz
@pytest.mark.parametrize("path", BODIES)
def test_each_odd_value_at_each_place(client: httpx2.Client, path: str) -> None:
    for body in BODIES[path]:
        for at in places(body):
            for odd in ODD:
                check(client, path, body, at, odd)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"])
def test_fields_that_are_not_known_are_named(client: httpx2.Client, path: str) -> None:
    body = {**BODIES[path][-1], "odd_field": 1, "absent": None, "user": "u", "service_tier": "auto", "a b": 2}
    assert client.post(path, json={**body, "model": "sampled"}).headers["x-toolgram-ignored"].startswith("odd_field")
