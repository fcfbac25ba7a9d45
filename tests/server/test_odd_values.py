"""Each value of a good body is replaced by odd ones: a client is told what is wrong with it, and never of a defect."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from live_server import listening
from request_bodies import BODIES, ODD, message_of, places, replaced
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
        told, error = message_of(answer.json()), answer.json()["error"]
        assert told, (path, at, odd)
        assert isinstance(error, str) == path.startswith("/api/")
        if at and not path.startswith("/v1/messages"):
            assert has_place(error), (path, at, odd, answer.text)


def has_place(error: Any) -> bool:
    """Whether an error says where; the name of a model stands in the sentence itself."""
    return error.startswith(("/", "there is no model")) if isinstance(error, str) else bool(error["param"])


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


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat"]
)
def test_fields_that_are_not_known_are_named(client: httpx2.Client, path: str) -> None:
    body = {**BODIES[path][-1], "odd_field": 1, "absent": None, "user": "u", "service_tier": "auto", "a b": 2}
    assert client.post(path, json={**body, "model": "sampled"}).headers["x-toolgram-ignored"].startswith("odd_field")


BIG, BIGGER = "1234567890123456789012345678", "-" + "9" * 300


def test_integers_beyond_64_bits_are_read_shown_and_echoed_as_they_are(client: httpx2.Client) -> None:
    schema = f'{{"type": "object", "properties": {{"n": {{"enum": [{BIG}, {BIGGER}]}}}}, "required": ["n"]}}'
    tool = f'{{"type": "function", "name": "f", "parameters": {schema}}}'
    chat = f'{{"type": "function", "function": {{"name": "f", "parameters": {schema}}}}}'
    hello = '{"role": "user", "content": "Hi."}'
    explained = client.post("/v1/explain", content=f'{{"messages": [{hello}], "tools": [{chat}]}}')
    assert BIG in explained.json()["prompt"]
    assert f"{BIG[0]}.{BIG[1:]}e+27" in explained.json()["grammar"]["text"]
    used = (
        f'{{"role": "assistant", "content": [{{"type": "tool_use", "id": "a", "name": "f", "input": {{"n": {BIG}}}}}]}}'
    )
    result = '{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}'
    tools = f'[{{"name": "f", "input_schema": {schema}}}]'
    for path, body in (
        ("/v1/responses", f'{{"input": "Hi.", "tools": [{tool}], "tool_choice": "required"}}'),
        ("/v1/responses", f'{{"input": "Hi.", "tools": [{tool}], "tool_choice": "required", "stream": true}}'),
        ("/v1/chat/completions", f'{{"messages": [{hello}], "tools": [{chat}], "tool_choice": "required"}}'),
        ("/v1/messages", f'{{"messages": [{hello}, {used}, {result}], "tools": {tools}, "max_tokens": 60}}'),
    ):
        answer = client.post(path, content=body)
        assert answer.status_code == 200, answer.text
        if path == "/v1/responses":
            assert f"[{BIG},{BIGGER}]" in answer.text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 400])
@pytest.mark.parametrize("path", BODIES)
def test_numbers_that_json_does_not_have_are_refused(client: httpx2.Client, path: str, number: str) -> None:
    body = json.dumps({**BODIES[path][0], "metadata": {"n": "@"}}).replace('"@"', number)
    answer = client.post(path, content=body)
    assert (answer.status_code, "is not JSON" in message_of(answer.json())) == (400, True)


@pytest.mark.parametrize("most", [2**32, 2**63, 10**30])
def test_a_bound_that_nothing_comes_near_refuses_no_request(client: httpx2.Client, most: int) -> None:
    items = {"type": "array", "items": {"type": "string", "maxLength": most}, "maxItems": most}
    members = {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": most}
    schema = {"type": "object", "properties": {"items": items, "members": members}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    body = {"messages": [{"role": "user", "content": "Hi."}], "tools": [tool]}
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    explained = client.post("/v1/explain", json={**body, "dialect": "lark"}).json()
    assert explained["relaxations"] == []
    assert str(most) not in explained["grammar"]["text"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\uDE00 \ud83d\ud83d\ude00", "\ufffd \ufffd\U0001f600"),
        (r"\\ud83d \\\ud83d", "\\ud83d \\\ufffd"),
        (r"\ud83d 1234567890123456789012345", "\ufffd 1234567890123456789012345"),
    ],
)
def test_half_a_character_of_a_client_is_replaced(client: httpx2.Client, written: str, read: str) -> None:
    explained = client.post("/v1/explain", content=f'{{"messages": [{{"role": "user", "content": "{written}"}}]}}')
    assert f"<|im_start|>user\n{read}<|im_end|>" in explained.json()["prompt"]


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(("body", "what"), [("null", "null"), ("[]", "a list"), ("5", "a number")])
def test_a_body_that_is_no_object_is_told_so(client: httpx2.Client, path: str, body: str, what: str) -> None:
    answer = client.post(path, content=body)
    assert answer.status_code == 400
    assert f"must be an object, not {what}" in message_of(answer.json())
