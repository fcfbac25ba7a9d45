"""What chat front ends and automation tools send, and how they write a server's address.

The shapes are those of their sources and of threads, which each test names; the texts are ours.
"""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.replay import Replay

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
ASKED: Any = {"role": "user", "content": "What is there?"}
COMMON: Any = {"model": "recorded", "style": "hermes_2_pro"}

BODIES: dict[str, dict[str, Any]] = {
    CHAT: {**COMMON, "messages": [ASKED]},
    COMPLETIONS: {"model": "recorded", "prompt": "There is"},
    RESPONSES: {**COMMON, "input": [ASKED]},
}


def answer_to(path: str, **more: Any) -> Any:
    with serving(Replay("A cat.")) as address:
        return httpx2.post(address + path, json={**BODIES[path], **more})


# Fields -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [{}, {"stream": None}, {"stream": False}])
def test_options_of_a_stream_without_one_are_told(path: str, stream: Any) -> None:
    """LiteLLM sends them, and pr-agent by it (https://github.com/BerriAI/litellm/issues/29431)."""
    answer = answer_to(path, **stream, stream_options={"include_usage": True}).raise_for_status()
    assert answer.headers["x-toolgram-ignored"] == "stream_options"
    assert answer.json()["usage"]["total_tokens"] >= 0


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_options_of_a_stream_are_not_told_where_there_is_one(path: str) -> None:
    answer = answer_to(path, stream=True, stream_options={"include_usage": True}).raise_for_status()
    assert "x-toolgram-ignored" not in answer.headers
    assert "total_tokens" in answer.text
