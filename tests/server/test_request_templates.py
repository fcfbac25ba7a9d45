"""Chat templates that a request brings."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from live_server import serving
from situations import CHATML
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}]}
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{{ eos_token }}{% endfor %}"
OPEN = Settings(request_templates=True)


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        (TEMPLATE, "<s>[Hi.]<|im_end|>"),
        ({"template": TEMPLATE}, "<s>[Hi.]<|im_end|>"),
        ({"template": TEMPLATE, "bos_token": "", "eos_token": "<e>"}, "[Hi.]<e>"),
    ],
)
def test_a_template_of_the_request_stands_in_for_the_models(template: Any, prompt: str) -> None:
    engine = Replay("Hello.")
    with serving(engine, OPEN) as address:
        body = {**BODY, "chat_template": template}
        assert httpx2.post(f"{address}/v1/explain", json=body).json()["prompt"] == prompt
        assert httpx2.post(f"{address}/v1/chat/completions", json=body).status_code == 200
    assert engine.calls[0].text == prompt


@pytest.mark.parametrize(
    ("template", "pointer", "told"),
    [
        ("{% if %}", "/chat_template", "line 1"),
        ({"template": "{% if %}"}, "/chat_template/template", "line 1"),
        ("no conversation", "/messages", "nothing of the conversation"),
        (1, "/chat_template", "must be an object"),
        ({}, "/chat_template/template", "is missing"),
        ({"template": TEMPLATE, "bos_token": 1}, "/chat_template/bos_token", "must be a string"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "/messages", "too long"),
    ],
)
def test_what_is_wrong_with_it_is_told(template: Any, pointer: str, told: str) -> None:
    with serving(Replay(), OPEN) as address:
        answer = httpx2.post(f"{address}/v1/explain", json={**BODY, "chat_template": template}, timeout=60)
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, pointer)
    assert told in answer.json()["error"]["message"]


def test_no_template_is_taken_where_requests_are_not_trusted() -> None:
    with serving(Replay()) as address:
        answer = httpx2.post(f"{address}/v1/explain", json={**BODY, "chat_template": TEMPLATE})
    assert (answer.status_code, answer.json()["error"]["pointer"]) == (400, "/chat_template")
    assert "--trust-request-chat-template" in answer.json()["error"]["message"]


def test_a_models_template_is_told() -> None:
    with serving(Replay()) as address:
        told = httpx2.get(f"{address}/v1/models/recorded").json()["chat_template"]
    expected = {"template": CHATML.source, "bos_token": CHATML.bos_token, "eos_token": CHATML.eos_token}
    assert told == expected
