"""Every answer and every event holds what the types of the newest SDKs demand, which the SDKs themselves do not check.

An SDK makes objects of whatever it is given: a field that is missing is found by who reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic.types as of_anthropic
import httpx2
import openai.types as of_openai
import openai.types.chat as of_chat
import openai.types.responses as of_responses
import pytest
from pydantic import TypeAdapter

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

ANTHROPIC = {"anthropic-version": "2023-06-01"}
SCHEMA: Any = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD: Any = {"name": "add", "parameters": SCHEMA}
SAY: Any = {"type": "custom", "name": "say"}
HI: Any = [{"role": "user", "content": "Hi."}]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
INPUT = '<tool_call>\n{"name": "say", "arguments": {"input": "ho"}}\n</tool_call>'
THOUGHT = "<think>\nHm, hm.\n</think>\n\n"
ANSWERS = {
    "text": "It rains.",
    "thought": f"{THOUGHT}It rains.",
    "calls": f"{THOUGHT}Let me see.\n{CALL}\n{CALL}",
    "call that is cut": f"{THOUGHT}{CALL[:50]}",
    "thought that is cut": THOUGHT[:12],
    "nothing": "",
}

CHAT: Any = {"messages": HI, "tools": [{"type": "function", "function": ADD}]}
RESPONSES: Any = {"input": HI, "tools": [{"type": "function", **ADD}, SAY]}
MESSAGES: Any = {"messages": HI, "max_tokens": 999, "tools": [{"name": "add", "input_schema": SCHEMA}]}


def checked(kind: Any, value: Any) -> None:
    TypeAdapter(kind).validate_python(value)


def answers(path: str, body: Any, said: str, cut: bool = False) -> tuple[Any, list[Any]]:
    """The whole answer, and the events of the streamed one."""
    pieces = [said[at : at + 3] for at in range(0, len(said), 3)]
    limit = {("max_output_tokens" if "input" in body else "max_tokens"): len(pieces)} if cut else {}
    pieces += ["and more"] if cut else []
    with serving(Replay(pieces, pieces), Settings(style="hermes")) as address:
        whole = httpx2.post(address + path, json={**body, **limit}).json()
        streamed = httpx2.post(address + path, json={**body, **limit, "stream": True}).text
    return whole, list(_events(streamed))


def _events(streamed: str) -> Iterator[Any]:
    name = None
    for line in streamed.splitlines():
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data" and value != "[DONE]":
            event = json.loads(value)
            assert name in (None, event.get("type"))
            yield event


@pytest.mark.parametrize("answer", ANSWERS)
def test_chat_completions(answer: str) -> None:
    said = ANSWERS[answer]
    body = {**CHAT, "parallel_tool_calls": True}
    whole, chunks = answers("/v1/chat/completions", body, said, cut="cut" in answer)
    checked(of_chat.ChatCompletion, whole)
    for chunk in chunks:
        checked(of_chat.ChatCompletionChunk, chunk)


@pytest.mark.parametrize("more", [{}, {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}])
@pytest.mark.parametrize("answer", [*ANSWERS, "input"])
def test_responses(answer: str, more: Any) -> None:
    said = ANSWERS.get(answer, f"{THOUGHT}{INPUT}")
    whole, events = answers("/v1/responses", {**RESPONSES, **more}, said, cut="cut" in answer)
    checked(of_responses.Response, whole)
    for event in events:
        checked(of_responses.ResponseStreamEvent, event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@pytest.mark.parametrize("answer", ANSWERS)
def test_messages(answer: str) -> None:
    whole, events = answers("/v1/messages", MESSAGES, ANSWERS[answer], cut="cut" in answer)
    checked(of_anthropic.Message, whole)
    for event in events:
        checked(of_anthropic.RawMessageStreamEvent, event)


def test_models() -> None:
    with serving(Replay()) as address:
        for model in httpx2.get(f"{address}/v1/models").json()["data"]:
            checked(of_openai.Model, model)
        for model in httpx2.get(f"{address}/v1/models", headers=ANTHROPIC).json()["data"]:
            checked(of_anthropic.ModelInfo, model)
